/* SPDX-License-Identifier: MIT */
/*
 * Tests the simulated disk itself, with SQLite alone on it. The disk must lose writes that were not
 * synced, and keep those that were. One test shows the trap that the store avoids.
 */
#include "check.h"
#include "cycle.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	INSERTS = 20,
};

static struct cycle cycle;

static void setup(void)
{
	cycle_create(&cycle);
	cycle_begin(&cycle, 1);
}

static void teardown(void)
{
	cycle_destroy(&cycle);
}

static int execute(sqlite3 *db, const char *sql)
{
	return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

static sqlite3 *database(const char *settings)
{
	sqlite3 *db = NULL;

	(void)sqlite3_open(cycle.path, &db);
	(void)execute(db, "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 3");
	(void)execute(db, settings);
	return db;
}

/* Returns how many inserts were acknowledged. */
static int insert(sqlite3 *db, int count)
{
	int done = 0;

	if (execute(db, "CREATE TABLE IF NOT EXISTS t (a)") != SQLITE_OK)
		return 0;
	while (done < count && execute(db, "INSERT INTO t VALUES (randomblob(900))") == SQLITE_OK)
		done++;
	return done;
}

static int rows(sqlite3 *db)
{
	sqlite3_stmt *statement = NULL;
	int count = 0;

	(void)sqlite3_prepare_v2(db, "SELECT count(*) FROM t", -1, &statement, NULL);
	if (sqlite3_step(statement) == SQLITE_ROW)
		count = sqlite3_column_int(statement, 0);
	sqlite3_finalize(statement);
	return count;
}

/*
 * Ends the process or the power at each call in turn. Returns how many of these runs lost
 * acknowledged rows.
 */
static int losses(const char *settings, enum disk_loss loss)
{
	bool struck = true;
	int lost = 0;

	for (uint64_t nth = 1; struck; nth++) {
		sqlite3 *db;
		int acked;

		cycle_begin(&cycle, nth);
		disk_die(nth);
		db = database(settings);
		acked = insert(db, INSERTS);
		sqlite3_close(db);
		struck = disk_struck();
		disk_restart(loss, nth);
		db = database(settings);
		lost += rows(db) < acked;
		sqlite3_close(db);
	}
	return lost;
}

Test(disk, synced_commits_survive, .init = setup, .fini = teardown)
{
	check_int(losses("PRAGMA synchronous = FULL", DISK_KEEP), 0);
	check_int(losses("PRAGMA synchronous = FULL", DISK_DROP), 0);
	check_int(losses("PRAGMA synchronous = FULL", DISK_RANDOM), 0);
}

Test(disk, commits_without_sync_are_lost_with_the_power_only, .init = setup, .fini = teardown)
{
	check_int(losses("PRAGMA synchronous = OFF", DISK_KEEP), 0);
	check_at_least(losses("PRAGMA synchronous = OFF", DISK_DROP), INSERTS);
	check_at_least(losses("PRAGMA synchronous = OFF", DISK_RANDOM), 1);
}

/*
 * Shows the trap. After a failed sync, the end of the log is readable but never durable. SQLite
 * alone treats this end as committed and appends to it. A power failure then loses these commits.
 */
Test(disk, sqlite_alone_loses_commits_after_a_failed_sync, .init = setup, .fini = teardown)
{
	bool struck = true;
	int lost = 0;

	for (uint64_t nth = 1; struck; nth++) {
		sqlite3 *db;
		int before;

		cycle_begin(&cycle, nth);
		db = database("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
		check_int(insert(db, 5), 5);
		disk_fail(DISK_SYNC, nth, EIO, true);
		(void)insert(db, 5);
		struck = disk_struck();
		disk_die(1);
		sqlite3_close(db);
		disk_heal();
		db = database("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0");
		(void)insert(db, 5);
		before = rows(db);
		disk_die(1);
		sqlite3_close(db);
		disk_restart(DISK_DROP, 0);
		db = database("PRAGMA synchronous = FULL");
		lost += rows(db) < before;
		sqlite3_close(db);
	}
	check_at_least(lost, 1);
}

static int file_of(const char *text, bool synced, bool name_synced)
{
	int directory = open(cycle.directory, O_RDONLY | O_DIRECTORY);
	int fd = open(cycle.path, O_RDWR | O_CREAT, 0600);

	check_int(pwrite(fd, text, strlen(text), 0), strlen(text));
	if (synced)
		check_int(fsync(fd), 0);
	if (name_synced)
		check_int(fsync(directory), 0);
	close(directory);
	return fd;
}

Test(disk, name_without_sync_of_its_directory_is_lost, .init = setup, .fini = teardown)
{
	close(file_of("text", true, false));
	disk_restart(DISK_DROP, 0);
	check_int(access(cycle.path, F_OK), -1);
}

Test(disk, name_with_sync_stays_and_comes_back, .init = setup, .fini = teardown)
{
	close(file_of("text", true, true));
	check_int(unlink(cycle.path), 0);
	disk_restart(DISK_DROP, 0);
	check_int(access(cycle.path, F_OK), 0);
}

Test(disk, write_is_torn_at_sectors, .init = setup, .fini = teardown)
{
	static char old[4096], new[4096], left[4096];
	int torn = 0;

	memset(old, 'o', sizeof(old));
	memset(new, 'n', sizeof(new));
	for (uint64_t seed = 0; seed < 20; seed++) {
		int fd = file_of("", true, true), changes = 0;

		check_int(pwrite(fd, old, sizeof(old), 0), sizeof(old));
		check_int(fsync(fd), 0);
		check_int(pwrite(fd, new, sizeof(new), 0), sizeof(new));
		close(fd);
		disk_restart(DISK_RANDOM, seed);
		fd = open(cycle.path, O_RDONLY);
		check_int(pread(fd, left, sizeof(left), 0), sizeof(left));
		close(fd);
		for (size_t i = 1; i < sizeof(left); i++) {
			changes += left[i] != left[i - 1];
			cr_assert(left[i] == left[i - 1] || i % 512 == 0);
		}
		torn += changes > 0;
	}
	check_at_least(torn, 1);
}
