/* SPDX-License-Identifier: MIT */
/*
 * While a reader uses an old state of the database, SQLite's log cannot be written again from its
 * beginning, so it grows. The store must report the log's length, must continue to work, and must
 * reuse the log when the reader has ended.
 *
 * Seen to fail with these defects: the reported length counts only what was written since the last
 * checkpoint; the reported length stays the same if the reader has ended and nothing more is
 * written.
 */
#include "check.h"
#include "model.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COMMITS = 200 };

static char directory[64], path[80], log_path[96];
static struct model model;
static sqlite3 *reader;

static void setup(void)
{
	snprintf(directory, sizeof(directory), "/tmp/tickwheel-durable-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof(path), "%s/timers", directory);
	snprintf(log_path, sizeof(log_path), "%s-wal", path);
	model_init(&model, path, 1);
	check_int(model_open(&model), 0);
}

static void teardown(void)
{
	char command[128];

	model_close(&model, true);
	snprintf(command, sizeof(command), "rm -rf %s", directory);
	check_int(system(command), 0);
}

static void commits(int count)
{
	for (int i = 0; i < count; i++)
		check_int(model_commit(&model), 0);
}

static uint64_t log_bytes(void)
{
	return model.store.ops->log_bytes(model.store.store);
}

static long long log_file_bytes(void)
{
	struct stat status;

	check_int(stat(log_path, &status), 0);
	return (long long)status.st_size;
}

static void reader_begin(void)
{
	check_int(sqlite3_open_v2(path, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	check_int(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM timer;", NULL, NULL, NULL),
		  SQLITE_OK);
}

static void reader_end(void)
{
	check_int(sqlite3_close(reader), SQLITE_OK);
}

Test(reader, a_log_that_a_reader_needs_grows, .init = setup, .fini = teardown)
{
	uint64_t before;

	commits(20);
	reader_begin();
	commits(COMMITS);
	before = log_bytes();
	/* Each commit writes at least two pages. */
	check_at_least(before, 2 * COMMITS * 4096);
	check_at_most(before, log_file_bytes());
	commits(COMMITS);
	check_at_least(log_bytes(), 2 * before * 3 / 4);
	reader_end();
	check_int(log_bytes(), 0);
	cr_assert(model_check(&model), "%s", model.failure);
}

Test(reader, the_log_is_used_again_when_the_reader_has_ended, .init = setup, .fini = teardown)
{
	long long size;

	reader_begin();
	commits(COMMITS);
	reader_end();
	check_int(log_bytes(), 0);
	size = log_file_bytes();
	commits(COMMITS);
	check_int(log_file_bytes(), size);
	/* The limit: the pages at which the store makes a checkpoint, plus those of one batch. */
	check_at_most(log_bytes(), 4096 * 100);
	cr_assert(model_check(&model), "%s", model.failure);
}

Test(reader, without_a_reader_the_log_stays_short, .init = setup, .fini = teardown)
{
	for (int i = 0; i < COMMITS; i++) {
		commits(1);
		check_at_most(log_bytes(), 4096 * 100);
	}
}
