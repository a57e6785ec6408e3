/* SPDX-License-Identifier: MIT */
#include "durable/tool/list.h"

#include "durable/file/dead.h"
#include "durable/file/near.h"
#include "durable/tool/print.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

struct listing {
	struct twi_tool_file *file;
	const struct twi_tool_output *output;
	uint64_t count;
};

static bool kind_wanted(const struct listing *listing, uint32_t number)
{
	return twi_tool_wanted(&listing->file->kinds, listing->output->kind, number);
}

static int print_row(struct listing *listing, const struct tw_durable_row *row)
{
	twi_tool_print(listing->output->out, &listing->file->kinds, row, NULL,
		       listing->output->json);
	listing->count++;
	return 0;
}

/* Statements that count pending timers by kind and hour, and dead letters by kind. */
static const char *const count_texts[2] = {
	"SELECT kind, (due - (due < 0) * 3599999999999) / 3600000000000 AS hour, count(*) FROM"
	" (SELECT kind, due FROM timer WHERE (bucket, serial) NOT IN"
	" (SELECT place, serial FROM ended) UNION ALL SELECT kind, due FROM inbox)"
	" GROUP BY kind, hour ORDER BY kind, hour",
	"SELECT kind, 0, count(*) FROM dead GROUP BY kind ORDER BY kind",
};

static void print_count(const struct listing *listing, sqlite3_stmt *statement, bool dead)
{
	const char *kind =
		twi_tool_kind(&listing->file->kinds, (uint32_t)sqlite3_column_int64(statement, 0));
	int64_t hour = sqlite3_column_int64(statement, 1);

	twi_tool_print_count(listing->output->out, kind, dead ? NULL : &hour,
			     (uint64_t)sqlite3_column_int64(statement, 2), listing->output->json);
}

static int count_table(struct listing *listing, bool dead)
{
	sqlite3_stmt *statement = NULL;
	int result = twi_database_error(sqlite3_prepare_v2(
		listing->file->database.sqlite, count_texts[dead], -1, &statement, NULL));

	if (result == 0)
		while ((result = twi_database_step(statement)) == 1)
			if (kind_wanted(listing, (uint32_t)sqlite3_column_int64(statement, 0)))
				print_count(listing, statement, dead);
	sqlite3_finalize(statement);
	return result;
}

int twi_tool_count(struct twi_tool_file *file, const struct twi_tool_output *output)
{
	struct listing listing = {.file = file, .output = output};
	int result = count_table(&listing, false);

	if (result == 0)
		result = count_table(&listing, true);
	if (result == 0)
		twi_tool_print_paused(output->out, &file->kinds, output->kind, output->json);
	return result;
}

static bool near_known(const void *to, uint32_t kind)
{
	(void)to;
	(void)kind;
	return true;
}

static bool near_wanted(const void *to, uint32_t kind)
{
	return kind_wanted(to, kind);
}

static int near_give(void *to, const struct tw_durable_row *row)
{
	return print_row(to, row);
}

int twi_tool_list(struct twi_tool_file *file, const struct twi_tool_output *output)
{
	struct listing listing = {.file = file, .output = output};
	const struct twi_near near = {NULL,        INT64_MAX - 1, output->limit, near_known,
				      near_wanted, near_give,     &listing};

	return twi_near_load(&file->timers, &near);
}

static int dead_give(void *to, const struct twi_tool_entry *entry)
{
	struct listing *listing = to;
	const struct twi_tool_output *output = listing->output;

	if (entry->error != 0 || listing->count == output->limit)
		return entry->error != 0 ? entry->error : -EXFULL;
	if (!kind_wanted(listing, entry->row.kind))
		return 0;
	twi_tool_print(output->out, &listing->file->kinds, &entry->row, &entry->ended_ns,
		       output->json);
	listing->count++;
	return 0;
}

int twi_tool_dead(struct twi_tool_file *file, const struct twi_tool_output *output)
{
	struct listing listing = {.file = file, .output = output};
	int result = twi_tool_walk(file, TWI_TOOL_DEAD, dead_give, &listing);

	return result == -EXFULL ? 0 : result;
}

int twi_tool_show(struct twi_tool_file *file, const struct twi_tool_output *output,
		  struct tw_durable_id id)
{
	struct tw_durable_row row;
	int result = twi_timers_get(&file->timers, id, &row);

	if (result == 0)
		result = twi_dead_get(&file->timers, id, &row);
	if (result == 1)
		twi_tool_print(output->out, &file->kinds, &row, NULL, output->json);
	return result == 0 ? -ENOENT : result < 0 ? result : 0;
}

int twi_tool_find(struct twi_tool_file *file, const struct twi_tool_output *output, const char *key)
{
	struct tw_durable_id id;
	int result = twi_timers_key_get(&file->timers, key, (uint32_t)strlen(key), &id);

	if (result == 0)
		return -ENOENT;
	return result < 0 ? result : twi_tool_show(file, output, id);
}
