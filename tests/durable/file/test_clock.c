/* SPDX-License-Identifier: MIT */
/*
 * Tests what the file does for kinds that count elapsed time: it stores a clock, and loads near
 * timers of some kinds only. Also: a file of version 1, which has no table for the clock.
 *
 * Seen to fail with these defects: the migration from version 1 does not create the table, or does
 * not change the version; the clock is not synced; the clock is read without a check of its
 * checksum; a load of near timers returns all kinds.
 */
#include "check.h"
#include "model.h"
#include "version1.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_NS INT64_C(1767225600000000000)
#define SECOND INT64_C(1000000000)

enum { PLACE = BEGIN_NS / (64 * SECOND) };

static char directory[64], path[80];
static struct tw_durable_store store;
static const struct tw_durable_clock first = {"boot-1", 5, -7};

static int try_open(void)
{
	static const char *const kinds[] = {"order", "mail"};
	struct tw_durable_opened opened;

	check_int(tw_durable_store_file(path, &store), 0);
	return store.ops->open(store.store, kinds, 2, &opened);
}

static void setup(void)
{
	snprintf(directory, sizeof directory, "/tmp/tickwheel-durable-XXXXXX");
	cr_assert(mkdtemp(directory) != NULL);
	snprintf(path, sizeof path, "%s/timers", directory);
}

static void teardown(void)
{
	char command[128];

	store.ops->close(store.store, 1);
	snprintf(command, sizeof command, "rm -rf %s", directory);
	check_int(system(command), 0);
}

static void execute(const char *sql)
{
	sqlite3 *db = NULL;

	check_int(sqlite3_open(path, &db), SQLITE_OK);
	check_int(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	check_int(sqlite3_close(db), SQLITE_OK);
}

static void check_clock(const struct tw_durable_clock *wanted)
{
	struct tw_durable_clock clock;

	check_int(store.ops->clock(store.store, &clock), 0);
	check_int(strcmp(clock.boot, wanted->boot), 0);
	check_int(clock.base_ns, wanted->base_ns);
	check_int(clock.step_ns, wanted->step_ns);
}

Test(clock, last_stored_clock_survives_a_crash, .init = setup, .fini = teardown)
{
	const struct tw_durable_clock second = {"boot-2", INT64_MIN, INT64_MAX};
	struct tw_durable_clock clock;

	check_int(try_open(), 0);
	check_int(store.ops->clock(store.store, &clock), -ENOENT);
	check_int(store.ops->clock_set(store.store, &first), 0);
	check_clock(&first);
	check_int(store.ops->clock_set(store.store, &second), 0);
	/* Closes in a way that is not clean, as after a crash. */
	store.ops->close(store.store, 0);
	check_int(try_open(), 0);
	check_clock(&second);
}

Test(clock, a_text_without_an_end_is_refused, .init = setup, .fini = teardown)
{
	struct tw_durable_clock clock;

	check_int(try_open(), 0);
	memset(&clock, 'x', sizeof clock);
	check_int(store.ops->clock_set(store.store, &clock), -EINVAL);
	check_int(store.ops->clock(store.store, &clock), -ENOENT);
}

Test(clock, damaged_clock_is_reported, .init = setup, .fini = teardown)
{
	static const char *const damages[] = {
		"UPDATE clock SET boot = 'boot-0'",           "UPDATE clock SET base = base + 1",
		"UPDATE clock SET step = step + 1",           "UPDATE clock SET crc = crc + 1",
		"UPDATE clock SET boot = hex(zeroblob(500))",
	};
	struct tw_durable_clock clock;

	for (size_t i = 0; i < sizeof damages / sizeof damages[0]; i++) {
		check_int(try_open(), 0);
		check_int(store.ops->clock_set(store.store, &first), 0);
		store.ops->close(store.store, 1);
		execute(damages[i]);
		check_int(try_open(), 0);
		check_int(store.ops->clock(store.store, &clock), -EUCLEAN);
		store.ops->close(store.store, 1);
	}
	check_int(try_open(), 0);
}

/* Records the serials and the kinds of the rows that the store returned. */
struct given {
	uint64_t serials[8];
	uint32_t kinds[8];
	int64_t due_ns[8];
	size_t count;
};

static int note(void *to, const struct tw_durable_row *row)
{
	struct given *given = to;

	given->serials[given->count] = row->id.serial;
	given->due_ns[given->count] = row->due_ns;
	given->kinds[given->count++] = row->kind;
	return 0;
}

static void check_version1(void)
{
	struct given given = {.count = 0};
	struct tw_durable_row row = {.id = {PLACE, 4}};

	check_int(store.ops->near(store.store, NULL, INT64_MAX, 8, note, &given), 0);
	check_int(given.count, 3);
	check_int(given.serials[0], 1);
	check_int(given.kinds[0], 1);
	check_int(given.serials[1], 2);
	check_int(given.kinds[1], 0);
	check_int(given.serials[2], 3);
	check_int(given.due_ns[2], BEGIN_NS + 3600 * SECOND);
	given.count = 0;
	check_int(store.ops->find_key(store.store, "key", 3, note, &given), 0);
	check_int(given.serials[0], 2);
	check_int(store.ops->find(store.store, row.id, note, &given), 0);
	check_int(given.kinds[1], 0);
}

Test(clock, a_file_of_version_1_is_brought_forward, .init = setup, .fini = teardown)
{
	struct tw_durable_clock clock;
	uint64_t serial;

	execute(version1);
	check_int(try_open(), 0);
	check_version1();
	check_int(store.ops->clock(store.store, &clock), -ENOENT);
	check_int(store.ops->reserve(store.store, 1, &serial), 0);
	check_int(serial, 11);
	check_int(store.ops->clock_set(store.store, &first), 0);
	store.ops->close(store.store, 1);
	execute("INSERT INTO clock SELECT user_version, '', 0, 0, 0 FROM pragma_user_version;"
		"DELETE FROM clock WHERE id = 3");
	check_int(try_open(), 0);
	check_version1();
	check_clock(&first);
}

Test(clock, a_file_of_version_2_is_brought_forward, .init = setup, .fini = teardown)
{
	execute(version1);
	execute("CREATE TABLE clock (id INTEGER PRIMARY KEY, boot TEXT NOT NULL, base INTEGER NOT"
		" NULL, step INTEGER NOT NULL, crc INTEGER NOT NULL); PRAGMA user_version = 2");
	check_int(try_open(), 0);
	check_version1();
	check_int(store.ops->clock_set(store.store, &first), 0);
	store.ops->close(store.store, 1);
	check_int(try_open(), 0);
	check_version1();
	check_clock(&first);
}

Test(clock, a_file_of_version_3_is_brought_forward, .init = setup, .fini = teardown)
{
	unsigned char paused[2];

	execute(version1);
	execute("CREATE TABLE clock (id INTEGER PRIMARY KEY, boot TEXT NOT NULL, base INTEGER NOT"
		" NULL, step INTEGER NOT NULL, crc INTEGER NOT NULL);"
		"CREATE TABLE ended (number INTEGER PRIMARY KEY, place INTEGER NOT NULL,"
		" serial INTEGER NOT NULL, crc INTEGER NOT NULL); PRAGMA user_version = 3");
	check_int(try_open(), 0);
	check_version1();
	check_int(store.ops->paused(store.store, paused), 0);
	check_int(paused[0] + paused[1], 0);
	check_int(store.ops->pause(store.store, 1, 1), 0);
	store.ops->close(store.store, 1);
	check_int(try_open(), 0);
	check_version1();
	check_int(store.ops->paused(store.store, paused), 0);
	check_int(paused[0] * 10 + paused[1], 1);
}

Test(clock, some_kinds_have_a_window_of_their_own, .init = setup, .fini = teardown)
{
	const unsigned char mail[] = {0, 1}, none[] = {0, 0};
	struct tw_durable_row after = {.id = {PLACE, 1}, .due_ns = BEGIN_NS};
	struct given given = {.count = 0};

	execute(version1);
	check_int(try_open(), 0);
	/* The limit of 2 counts only rows of the requested kinds. */
	check_int(store.ops->near_kinds(store.store, mail, NULL, INT64_MAX, 2, note, &given), 0);
	check_int(given.count, 2);
	check_int(given.serials[0], 1);
	check_int(given.serials[1], 3);
	given.count = 0;
	check_int(store.ops->near_kinds(store.store, mail, &after, INT64_MAX, 8, note, &given), 0);
	check_int(given.count, 1);
	check_int(given.serials[0], 3);
	given.count = 0;
	check_int(store.ops->near_kinds(store.store, none, NULL, INT64_MAX, 8, note, &given), 0);
	check_int(given.count, 0);
}
