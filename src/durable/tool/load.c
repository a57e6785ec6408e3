/* SPDX-License-Identifier: MIT */
#include "durable/tool/load.h"

#include "durable/file/dead.h"
#include "durable/file/files.h"
#include "durable/tool/line.h"
#include "durable/tool/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define BIT TWI_TOOL_BIT

/* The members that each sort of line must have, and those that it may have. */
#define CLOCK_BITS (BIT(TWI_TOOL_BOOT) | BIT(TWI_TOOL_BASE) | BIT(TWI_TOOL_STEP))
#define HEAD_BITS                                                                                  \
	(BIT(TWI_TOOL_DUMP) | BIT(TWI_TOOL_SERIAL) | BIT(TWI_TOOL_CLEAN) | BIT(TWI_TOOL_KINDS))
#define ROW_BITS                                                                                   \
	(BIT(TWI_TOOL_ID) | BIT(TWI_TOOL_DUE_NS) | BIT(TWI_TOOL_KIND) | BIT(TWI_TOOL_ATTEMPT) |    \
	 BIT(TWI_TOOL_VERSION))
#define ROW_MAY_BITS                                                                               \
	(BIT(TWI_TOOL_DUE) | BIT(TWI_TOOL_STARTED) | BIT(TWI_TOOL_IS_DEAD) | BIT(TWI_TOOL_ENDED) | \
	 BIT(TWI_TOOL_KEY) | BIT(TWI_TOOL_KEY_HEX) | BIT(TWI_TOOL_PAYLOAD) |                       \
	 BIT(TWI_TOOL_PAYLOAD_HEX))

struct load {
	const char *dump; /* name of the dump, for messages */
	FILE *in;
	char *text; /* the line that was read last */
	size_t room;
	uint64_t number, bytes, rows;
	bool ended;
	struct twi_tool_line line;
	struct twi_tool_progress progress;
	struct twi_database database;
	struct twi_timers timers;
	struct twi_meta meta;
	char **kinds; /* names of the kinds; the index is the number minus 1 */
	size_t kind_count;
};

/* Prints the error of the line. */
static int rejected(const struct load *load, const char *wrong)
{
	fprintf(stderr, "tickwheel-durable: %s:%" PRIu64 ": the line %s\n", load->dump,
		load->number, wrong);
	return -ECANCELED;
}

/* Prints an error, unless it was printed already. Returns 0 or -ECANCELED. */
static int failed(const char *path, int error)
{
	if (error != 0 && error != -ECANCELED)
		fprintf(stderr, "tickwheel-durable: %s: %s\n", path, strerror(-error));
	return error != 0 ? -ECANCELED : 0;
}

/* Reads the next line. Returns 1 if there is one, 0 at the end, or an error. */
static int line_next(struct load *load)
{
	ssize_t length = getline(&load->text, &load->room, load->in);
	int result;

	if (length < 0)
		return ferror(load->in) != 0 ? failed(load->dump, -EIO) : 0;
	load->number++;
	load->bytes += (uint64_t)length;
	twi_tool_progress(&load->progress, load->bytes);
	if (load->text[length - 1] != '\n')
		return rejected(load, "is cut");
	result = twi_tool_line_read(&load->line, load->text, (size_t)length - 1);
	if (result == -EINVAL)
		return rejected(load, load->line.wrong);
	return result == 0 ? 1 : failed(load->dump, result);
}

static bool has(const struct load *load, enum twi_tool_member member)
{
	return (load->line.seen & BIT(member)) != 0;
}

static int kind_add(struct load *load, const char *name)
{
	char **kinds = realloc(load->kinds, (load->kind_count + 1) * sizeof(*kinds));
	char *copy = strdup(name);

	if (kinds != NULL)
		load->kinds = kinds;
	if (kinds == NULL || copy == NULL) {
		free(copy);
		return -ENOMEM;
	}
	kinds[load->kind_count++] = copy;
	return twi_kind_add(&load->database, (uint32_t)load->kind_count, name);
}

/* Returns the number of a kind, or 0 if there is no such kind. */
static uint32_t kind_number(const struct load *load, const char *name)
{
	for (size_t i = 0; i < load->kind_count; i++)
		if (strcmp(load->kinds[i], name) == 0)
			return (uint32_t)i + 1;
	return 0;
}

static int kind_pause(struct load *load, const char *name)
{
	uint32_t number = kind_number(load, name);

	return number == 0 ? rejected(load, "pauses a kind that it does not have")
			   : twi_paused_set(&load->database, number, true);
}

/* Passes each name of an array of kinds to `give`. */
static int names_read(struct load *load, enum twi_tool_member member,
		      int (*give)(struct load *load, const char *name))
{
	sqlite3_stmt *walk = load->line.walk;
	const struct twi_tool_text *kinds = &load->line.texts[member];
	int result = 0;

	sqlite3_bind_text(walk, 1, kinds->bytes, (int)kinds->count, SQLITE_STATIC);
	while (result == 0 && sqlite3_step(walk) == SQLITE_ROW) {
		const char *name = (const char *)sqlite3_column_text(walk, 3);

		if (name == NULL || name[0] == '\0' || sqlite3_column_type(walk, 3) != SQLITE_TEXT)
			result = rejected(load, "has a kind without a name");
		else
			result = give(load, name);
	}
	sqlite3_reset(walk);
	return result;
}

static int kinds_read(struct load *load)
{
	int result = names_read(load, TWI_TOOL_KINDS, kind_add);

	if (result == -EUCLEAN)
		return rejected(load, "has a kind twice");
	return result == 0 && has(load, TWI_TOOL_PAUSED)
		       ? names_read(load, TWI_TOOL_PAUSED, kind_pause)
		       : result;
}

static int clock_read(struct load *load)
{
	const struct twi_tool_line *line = &load->line;
	struct tw_durable_clock clock = {
		.base_ns = line->numbers[TWI_TOOL_BASE],
		.step_ns = line->numbers[TWI_TOOL_STEP],
	};

	if (line->texts[TWI_TOOL_BOOT].count >= sizeof clock.boot)
		return rejected(load, "names the boot by too long a text");
	strcpy(clock.boot, line->texts[TWI_TOOL_BOOT].bytes);
	return twi_clock_set(&load->database, &clock);
}

static int head_read(struct load *load)
{
	struct twi_tool_line *line = &load->line;
	int result;

	if (!has(load, TWI_TOOL_DUMP))
		return rejected(load, "is not the head of a dump");
	if (line->numbers[TWI_TOOL_DUMP] != TWI_TOOL_FORMAT)
		return rejected(load, "is of another version of dumps");
	if (twi_tool_line_check(line, HEAD_BITS | (has(load, TWI_TOOL_BOOT) ? CLOCK_BITS : 0),
				BIT(TWI_TOOL_HIGHEST) | BIT(TWI_TOOL_PAUSED)) != 0)
		return rejected(load, line->wrong);
	load->meta = (struct twi_meta){
		.serial = line->numbers[TWI_TOOL_SERIAL],
		.clean = line->numbers[TWI_TOOL_CLEAN] != 0,
		.wall_ns =
			has(load, TWI_TOOL_HIGHEST) ? line->numbers[TWI_TOOL_HIGHEST] : INT64_MIN,
	};
	if (load->meta.serial < 1)
		return rejected(load, "has a number out of range");
	result = twi_meta_set(&load->database, &load->meta);
	if (result == 0 && has(load, TWI_TOOL_BOOT))
		result = clock_read(load);
	return result == 0 ? kinds_read(load) : result;
}

/* Adds a dead letter. Returns 0, 1 if an earlier line has its id, or an error. */
static int dead_read(struct load *load, const struct tw_durable_row *row)
{
	struct tw_durable_row other;
	int result = twi_timers_get(&load->timers, row->id, &other);

	if (result == 0)
		result = twi_dead_get(&load->timers, row->id, &other);
	return result == 0 ? twi_dead_put(&load->timers, row, load->line.numbers[TWI_TOOL_ENDED])
			   : result;
}

/* Looks the key of a timer up. Returns 1 if another timer has it, 0 if not, or an error. */
static int key_taken(struct load *load, const struct tw_durable_row *row)
{
	struct tw_durable_id id;

	return row->key_bytes == 0 || row->dead != 0
		       ? 0
		       : twi_timers_key_get(&load->timers, row->key, row->key_bytes, &id);
}

static int row_put(struct load *load, const struct tw_durable_row *row)
{
	int result = key_taken(load, row);

	if (result == 1)
		return rejected(load, "has a key that a timer before it has");
	if (result == 0)
		result = row->dead != 0 ? dead_read(load, row)
					: twi_timers_put(&load->timers, row, false);
	return result == 1 ? rejected(load, "has an id that a line before it has") : result;
}

static int row_read(struct load *load)
{
	struct twi_tool_line *line = &load->line;
	struct tw_durable_row row;

	if (twi_tool_line_check(line, ROW_BITS, ROW_MAY_BITS) != 0 ||
	    twi_tool_line_row(line, &row) != 0)
		return rejected(load, line->wrong);
	row.kind = kind_number(load, line->texts[TWI_TOOL_KIND].bytes);
	if (row.kind == 0)
		return rejected(load, "has a kind that the head does not have");
	if (row.id.serial >= (uint64_t)load->meta.serial)
		return rejected(load, "has a serial that the head says was not given out");
	load->rows++;
	return row_put(load, &row);
}

static int end_read(struct load *load)
{
	if (twi_tool_line_check(&load->line, BIT(TWI_TOOL_ROWS), 0) != 0)
		return rejected(load, load->line.wrong);
	if ((uint64_t)load->line.numbers[TWI_TOOL_ROWS] != load->rows)
		return rejected(load, "has another number of timers than there are");
	load->ended = true;
	return 0;
}

static int lines_read(struct load *load)
{
	int result = line_next(load);

	if (result == 1)
		result = head_read(load);
	while (result == 0 && (result = line_next(load)) == 1) {
		if (load->ended)
			return rejected(load, "is behind the last line of the dump");
		result = has(load, TWI_TOOL_ROWS) ? end_read(load) : row_read(load);
	}
	if (result == 0 && !load->ended) {
		fprintf(stderr, "tickwheel-durable: %s: the dump is cut after line %" PRIu64 "\n",
			load->dump, load->number);
		return -ECANCELED;
	}
	return result;
}

/*
 * Makes the tables of the new file. No process uses the file before its rename. So it is written
 * without a log, and synced at the end.
 */
static int file_begin(struct load *load, const char *path)
{
	int result = twi_database_open(&load->database, path);

	/* The close of the connection must remove the log, even after a failure. */
	if (result == 0)
		sqlite3_db_config(load->database.sqlite, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
	if (result == 0)
		result = twi_schema_make(&load->database, 0);
	if (result == 0)
		result = twi_database_execute(&load->database, "PRAGMA journal_mode = OFF;"
							       "PRAGMA synchronous = OFF;"
							       "PRAGMA cache_size = -65536;"
							       "PRAGMA cache_spill = ON");
	if (result == 0)
		result = twi_database_prepare(&load->database);
	/* INT64_MAX: the dump may have an id twice, so each id is looked up before it is put. */
	if (result == 0)
		result = twi_timers_init(&load->timers, &load->database, INT64_MAX);
	if (result == 0)
		result = twi_tool_line_open(&load->line, &load->database);
	return result == 0 ? twi_database_begin(&load->database) : result;
}

static int file_end(struct load *load)
{
	int result = twi_database_commit(&load->database);

	return result == 0 ? twi_database_execute(&load->database, "PRAGMA journal_mode = WAL")
			   : result;
}

static void file_close(struct load *load)
{
	twi_tool_line_close(&load->line);
	if (load->timers.database != NULL)
		twi_timers_done(&load->timers);
	if (load->database.sqlite != NULL)
		twi_database_close(&load->database);
	for (size_t i = 0; i < load->kind_count; i++)
		free(load->kinds[i]);
	free(load->kinds);
	free(load->text);
}

static uint64_t size_of(FILE *in)
{
	struct stat status;

	return fstat(fileno(in), &status) == 0 && S_ISREG(status.st_mode) ? (uint64_t)status.st_size
									  : 0;
}

static int file_write(FILE *in, const char *dump, const char *path)
{
	struct load load = {.dump = dump, .in = in};
	int result;

	twi_tool_progress_begin(&load.progress, "bytes", size_of(in));
	result = file_begin(&load, path);
	if (result == 0)
		result = lines_read(&load);
	if (result == 0)
		result = file_end(&load);
	twi_tool_progress_end(&load.progress);
	file_close(&load);
	return failed(path, result);
}

/*
 * Makes the file durable under its final name. Fails if another process has taken that name
 * meanwhile.
 */
static int file_publish(const char *written, const char *path)
{
	int fd = open(written, O_RDONLY | O_CLOEXEC);
	int result = fd < 0 || fsync(fd) != 0 || link(written, path) != 0 ? -errno : 0;

	if (fd >= 0)
		close(fd);
	if (result == 0 && unlink(written) != 0)
		result = -errno;
	return failed(path, result == 0 ? twi_files_sync_directory(path) : result);
}

static int file_make(FILE *in, const char *dump, const char *path)
{
	char *written = twi_files_name(path, "-load");
	int result = written == NULL ? failed(path, -ENOMEM) : 0;
	int fd = result == 0 ? open(written, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;

	if (fd < 0 && result == 0 && errno == EEXIST)
		fprintf(stderr,
			"tickwheel-durable: %s: another load makes it, or one was killed: then "
			"remove it\n",
			written);
	else if (fd < 0 && result == 0)
		(void)failed(written, -errno);
	if (fd < 0) {
		free(written);
		return -ECANCELED;
	}
	close(fd);
	result = file_write(in, dump, written);
	if (result == 0)
		result = file_publish(written, path);
	if (result != 0)
		unlink(written);
	free(written);
	return result;
}

int twi_tool_load(const char *path, const char *dump)
{
	bool standard = strcmp(dump, "-") == 0;
	int result = twi_tool_new(path);
	FILE *in;

	if (result == -EEXIST)
		fprintf(stderr, "tickwheel-durable: %s: it, or its log (-wal), is there already\n",
			path);
	if (result != 0)
		return result == -EEXIST ? -ECANCELED : failed(path, result);
	in = standard ? stdin : fopen(dump, "re");
	if (in == NULL)
		return failed(dump, -errno);
	result = file_make(in, standard ? "the input" : dump, path);
	if (!standard)
		fclose(in);
	return result;
}
