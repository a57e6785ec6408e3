/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/redis.h"

#include "durable/tool/print.h"
#include "durable/tool/progress.h"

#include <errno.h>
#include <string.h>

/* The tables of durable timers. Each number is the index of the table's key in KEYS of page.lua. */
enum table {
	SESSION = 2,
	BEAT,
	TIMER = 5,
	RUN,
	FREE,
	HELD,
	KEY,
	DEAD,
	BURIED,
	ENDED,
};

static const struct {
	enum table table;
	bool rows; /* the rows are timers or dead letters, and count as checked rows */
} tables[] = {
	{TIMER, true}, {RUN, false},    {FREE, false},  {HELD, false},    {KEY, false},
	{DEAD, true},  {BURIED, false}, {ENDED, false}, {SESSION, false}, {BEAT, false},
};

struct check {
	struct twi_tool_redis *redis;
	FILE *out; /* receives a line for each defect */
	struct twi_tool_progress progress;
	uint64_t rows, defects;
};

/*
 * Checks one page of a table. `rows`: its entries count as checked rows. `cursor` names the page.
 * Afterwards `cursor` names the next page, or is "0" if there is none.
 */
static int page_check(struct check *check, enum table table, bool rows, char (*cursor)[32])
{
	enum { PER_PAGE = 200, FIRST = 2 };
	struct twi_arguments *arguments = twi_redis_link_begin(&check->redis->store.link);
	redisReply *reply = NULL;
	int error;

	twi_arguments_number(arguments, table);
	twi_arguments_text(arguments, *cursor);
	twi_arguments_number(arguments, PER_PAGE);
	error = twi_tool_redis_run(check->redis, TWI_TOOL_REDIS_PAGE, &reply);
	if (error != 0)
		return error;
	snprintf(*cursor, sizeof *cursor, "%s", reply->element[0]->str);
	if (rows)
		check->rows += (uint64_t)reply->element[1]->integer;
	for (size_t i = FIRST; i < reply->elements; i++)
		fprintf(check->out, "%s\n", reply->element[i]->str);
	check->defects += reply->elements - FIRST;
	freeReplyObject(reply);
	twi_tool_progress(&check->progress, check->rows);
	return 0;
}

static int table_check(struct check *check, enum table table, bool rows)
{
	char cursor[32] = "0";
	int error;

	do
		error = page_check(check, table, rows, &cursor);
	while (error == 0 && strcmp(cursor, "0") != 0);
	return error;
}

int twi_tool_redis_check(struct twi_tool_redis *redis, const struct twi_tool_output *output)
{
	struct check check = {.redis = redis, .out = output->json ? stderr : output->out};
	int error = 0;

	twi_tool_progress_begin(&check.progress, "rows", 0);
	for (size_t i = 0; i < sizeof tables / sizeof *tables && error == 0; i++)
		error = table_check(&check, tables[i].table, tables[i].rows);
	twi_tool_progress_end(&check.progress);
	if (error != 0)
		return error;
	twi_tool_print_checked(output->out, check.rows, check.defects, output->json);
	return check.defects != 0 ? -ENOENT : 0;
}
