/* SPDX-License-Identifier: MIT */
#include "durable/file/file.h"

#include "durable/file/log.h"

#include "base/test_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	/* Enough space for the log, and for the pages that a checkpoint can add to the database. */
	RESERVE_BYTES = 2 * TWI_LOG_PAGES * 4096,
};

/* How far the highest time in the file may be behind the highest time of all commits. */
#define BEHIND_NS INT64_C(1000000000)

/* Writes the record of the file in a transaction of its own. */
static int meta_commit(struct twi_file *file, const struct twi_meta *meta)
{
	int result = twi_database_begin(&file->database);

	if (result != 0)
		return result;
	result = twi_meta_set(&file->database, meta);
	if (result != 0)
		twi_database_rollback(&file->database);
	else
		result = twi_database_commit(&file->database);
	if (result == 0)
		file->meta = *meta;
	return result;
}

/* Begins a new epoch (the time of one open), and stores its number before any timer runs in it. */
static int epoch_begin(struct twi_file *file)
{
	struct twi_meta meta;
	int result = twi_meta_get(&file->database, &file->meta);

	if (result != 0)
		return result;
	file->was_clean = file->meta.clean != 0;
	meta = file->meta;
	meta.epoch++;
	meta.clean = 0;
	TWI_TEST_POINT("file:epoch");
	return meta_commit(file, &meta);
}

static int tables_open(struct twi_file *file)
{
	struct twi_database *database = &file->database;
	int version = twi_schema_look(database);
	int result = version < 0 ? version : 0;

	if (result == 0)
		result = twi_database_execute(database, "PRAGMA journal_mode = WAL");
	if (result == 0)
		result = twi_log_settle(database);
	if (result == 0 && version < TWI_SCHEMA_VERSION)
		result = twi_schema_make(database, version);
	if (result == 0)
		result = twi_database_prepare(database);
	return result;
}

static int contents_open(struct twi_file *file)
{
	int result = twi_database_open(&file->database, file->files.path);

	if (result == 0)
		result = tables_open(file);
	if (result == 0)
		result = epoch_begin(file);
	if (result == 0)
		result = twi_timers_init(&file->timers, &file->database, file->meta.serial - 1);
	/* A new file has no highest time. The caller gets 0 then. */
	file->highest_ns = file->meta.wall_ns == INT64_MIN ? 0 : file->meta.wall_ns;
	return result;
}

int twi_file_open(struct twi_file *file, const char *path)
{
	int result;

	*file = (struct twi_file){.files = {.lock = -1, .claim = -1}};
	result = twi_files_take(path, &file->files);
	if (result != 0)
		return result;
	file->reserve = twi_files_name(file->files.path, "-reserve");
	result = file->reserve == NULL ? -ENOMEM : contents_open(file);
	file->open = result == 0;
	if (file->open)
		twi_file_room_take(file);
	return result;
}

/* Marks the file as clean, and empties the log, so that the database file alone is a whole copy. */
static void end_cleanly(struct twi_file *file)
{
	struct twi_meta meta = file->meta;

	meta.clean = 1;
	meta.wall_ns = file->highest_ns;
	TWI_TEST_POINT("file:closing");
	if (meta_commit(file, &meta) == 0 && twi_log_settle(&file->database) == 0)
		/* SQLite may now remove the log, which is empty. */
		sqlite3_db_config(file->database.sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
}

void twi_file_close(struct twi_file *file, bool clean)
{
	if (file->open && clean && file->database.frozen == 0)
		end_cleanly(file);
	twi_timers_done(&file->timers);
	twi_database_close(&file->database);
	if (file->open)
		twi_files_drop(&file->files);
	else
		twi_files_undo(&file->files);
	free(file->reserve);
	file->reserve = NULL;
	file->open = false;
}

int twi_file_reserve(struct twi_file *file, uint64_t count, uint64_t *ret)
{
	struct twi_meta meta = file->meta;
	int result;

	if (count > (uint64_t)(INT64_MAX - meta.serial))
		return -ERANGE;
	meta.serial += (int64_t)count;
	TWI_TEST_POINT("file:reserving");
	result = meta_commit(file, &meta);
	if (result == 0)
		*ret = (uint64_t)meta.serial - count;
	else if (result != -EBUSY && result != -ENOSPC)
		twi_file_freeze(file, result);
	return result;
}

/*
 * Ends a transaction: commits it if `result`, the result of its one write, is 0, otherwise rolls it
 * back.
 */
static int end(struct twi_file *file, int result)
{
	if (result != 0)
		twi_database_rollback(&file->database);
	else
		result = twi_database_commit(&file->database);
	if (result != 0 && result != -EBUSY && result != -ENOSPC)
		twi_file_freeze(file, result);
	return result;
}

int twi_file_clock_set(struct twi_file *file, const struct tw_durable_clock *clock)
{
	int result = twi_database_begin(&file->database);

	if (result != 0)
		return result;
	result = twi_clock_set(&file->database, clock);
	TWI_TEST_POINT("file:clocking");
	return end(file, result);
}

int twi_file_pause(struct twi_file *file, uint32_t number, bool paused)
{
	int result = twi_database_begin(&file->database);

	return result != 0 ? result : end(file, twi_paused_set(&file->database, number, paused));
}

int twi_file_time(struct twi_file *file, int64_t now_ns)
{
	struct twi_meta meta = file->meta;
	int result;

	if (now_ns > file->highest_ns)
		file->highest_ns = now_ns;
	file->timers.ends.now_bucket = twi_bucket(file->highest_ns);
	/*
	 * The time is written only when its second has changed. Otherwise each commit would write
	 * one page more. A time in the file that is a little too old does no harm.
	 */
	if (file->highest_ns / BEHIND_NS == meta.wall_ns / BEHIND_NS)
		return 0;
	meta.wall_ns = file->highest_ns;
	result = twi_meta_set(&file->database, &meta);
	/*
	 * If the transaction is rolled back, the file keeps an older time until a commit in a later
	 * second.
	 */
	if (result == 0)
		file->meta = meta;
	return result;
}

void twi_file_freeze(struct twi_file *file, int error)
{
	if (file->database.frozen == 0)
		file->database.frozen = error;
}

void twi_file_guard(struct twi_file *file)
{
	int moved = 0;

	(void)sqlite3_file_control(file->database.sqlite, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
	if (moved != 0 || !twi_files_held(&file->files))
		twi_file_freeze(file, -ESTALE);
}

void twi_file_room_take(struct twi_file *file)
{
	int fd = open(file->reserve, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd < 0)
		return;
	file->reserved = posix_fallocate(fd, 0, RESERVE_BYTES) == 0;
	/* A reserve file that is too small would only take up space. */
	if (!file->reserved && ftruncate(fd, 0) != 0)
		file->reserved = false;
	close(fd);
}

void twi_file_room_give(struct twi_file *file)
{
	(void)unlink(file->reserve);
	file->reserved = false;
}
