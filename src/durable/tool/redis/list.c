/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/redis.h"

#include "durable/tool/dump.h"
#include "durable/tool/line.h"
#include "durable/tool/print.h"
#include "durable/tool/progress.h"
#include "durable/tool/redis/seen.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum { SERIAL_BYTES = 8 };

#define SIGN_4 (UINT32_C(1) << 31)

struct listing {
	struct twi_tool_redis *redis;
	const struct twi_tool_output *output;
	struct twi_tool_progress progress;
	struct twi_tool_seen *seen; /* serials that the dump has written; NULL if this is no dump */
	uint64_t count;
};

/*
 * Returns 1 if a dump leaves a row out, 0 if not, or -ENOMEM. A dump leaves out a row that it has
 * written already. It also leaves out a timer whose serial was reserved after the program
 * connected: the serial in the head is lower, so a load would reject the timer.
 */
static int left_out(struct listing *listing, uint64_t serial)
{
	if (listing->seen == NULL)
		return 0;
	return serial >= listing->redis->serial ? 1 : twi_tool_seen_add(listing->seen, serial);
}

static int row_print(struct listing *listing, const struct tw_durable_row *row,
		     const int64_t *ended_ns)
{
	const struct twi_tool_output *output = listing->output;
	int out = left_out(listing, row->id.serial);

	if (out != 0)
		return out < 0 ? out : 0;
	twi_tool_print(output->out, &listing->redis->kinds, row, ended_ns, output->json);
	twi_tool_progress(&listing->progress, ++listing->count);
	return 0;
}

static int timer_print(void *to, const struct tw_durable_row *row)
{
	return row_print(to, row, NULL);
}

/* Prints a dead letter. Returns 1 if the limit of the output is reached, 0, or an error. */
static int letter_print(void *to, const struct tw_durable_row *row, int64_t ended_ns)
{
	struct listing *listing = to;
	int error = row_print(listing, row, &ended_ns);

	return error == 0 && listing->count >= listing->output->limit ? 1 : error;
}

int twi_tool_redis_list(struct twi_tool_redis *redis, const struct twi_tool_output *output)
{
	struct listing listing = {.redis = redis, .output = output};

	if (!twi_tool_redis_want(redis, output->kind))
		return 0;
	return twi_redis_near(&redis->store, NULL, INT64_MAX, output->limit, timer_print, &listing);
}

static int letters_give(struct twi_tool_redis *redis, const redisReply *reply,
			int (*give)(void *to, const struct tw_durable_row *row, int64_t ended_ns),
			void *to, struct tw_durable_id *ret_last)
{
	int error = 0;

	for (size_t i = 0; i + 1 < reply->elements && error == 0; i += 2) {
		const redisReply *serial = reply->element[i], *letter = reply->element[i + 1];
		struct tw_durable_row row;

		if (serial->len != SERIAL_BYTES ||
		    !twi_redis_row_dead(&redis->store, serial->str, letter, &row))
			return -EUCLEAN;
		*ret_last = row.id;
		if (row.kind != UINT32_MAX || redis->all)
			error = give(to, &row, twi_redis_get_signed(letter->str));
	}
	return error;
}

int twi_tool_redis_letters(struct twi_tool_redis *redis,
			   int (*give)(void *to, const struct tw_durable_row *row,
				       int64_t ended_ns),
			   void *to)
{
	struct tw_durable_id last = {0, 0};
	int error = 0;
	bool more = true;

	while (error == 0 && more) {
		struct twi_arguments *arguments = twi_redis_link_begin(&redis->store.link);
		redisReply *reply = NULL;

		if (last.serial != 0) {
			twi_argument_4(arguments, (uint32_t)last.place ^ SIGN_4);
			twi_argument_8(arguments, last.serial);
		}
		twi_argument_end(arguments);
		twi_arguments_number(arguments, TWI_REDIS_ROWS_MAX);
		error = twi_redis_link_run(&redis->store.link, TWI_REDIS_DEAD, &reply);
		if (error != 0)
			return error;
		more = reply->elements == 2 * (size_t)TWI_REDIS_ROWS_MAX;
		error = letters_give(redis, reply, give, to, &last);
		freeReplyObject(reply);
	}
	return error < 0 ? error : 0;
}

int twi_tool_redis_dead(struct twi_tool_redis *redis, const struct twi_tool_output *output)
{
	struct listing listing = {.redis = redis, .output = output};

	if (!twi_tool_redis_want(redis, output->kind))
		return 0;
	return twi_tool_redis_letters(redis, letter_print, &listing);
}

/*
 * Prints a timer or a dead letter from the reply of rows.lua or find_key.lua. Returns -ENOENT if
 * there is neither.
 */
static int found_print(struct listing *listing, const char *serial, redisReply *const *found,
		       const struct tw_durable_id *id)
{
	bool dead = found[0]->type == REDIS_REPLY_NIL;
	struct tw_durable_row row;
	int64_t ended_ns = 0;

	if (dead && (found[2] == NULL || found[2]->type == REDIS_REPLY_NIL))
		return -ENOENT;
	if (!(dead ? twi_redis_row_dead(&listing->redis->store, serial, found[2], &row)
		   : twi_redis_row(&listing->redis->store, serial, found[0], found[1], &row)))
		return -EUCLEAN;
	if (id != NULL && row.id.place != id->place)
		return -ENOENT;
	if (dead)
		ended_ns = twi_redis_get_signed(found[2]->str);
	return row_print(listing, &row, dead ? &ended_ns : NULL);
}

int twi_tool_redis_show(struct twi_tool_redis *redis, const struct twi_tool_output *output,
			struct tw_durable_id id)
{
	struct listing listing = {.redis = redis, .output = output};
	struct twi_arguments *arguments = twi_redis_link_begin(&redis->store.link);
	redisReply *reply = NULL;
	int error;

	twi_arguments_8(arguments, id.serial);
	error = twi_redis_link_run(&redis->store.link, TWI_REDIS_ROWS, &reply);
	if (error != 0)
		return error;
	error = found_print(&listing, twi_arguments_get(arguments, 1, &(size_t){0}), reply->element,
			    &id);
	freeReplyObject(reply);
	return error;
}

int twi_tool_redis_find(struct twi_tool_redis *redis, const struct twi_tool_output *output,
			const char *key)
{
	struct listing listing = {.redis = redis, .output = output};
	redisReply *reply = NULL, *found[3] = {NULL};
	int error;

	twi_arguments_text(twi_redis_link_begin(&redis->store.link), key);
	error = twi_redis_link_run(&redis->store.link, TWI_REDIS_FIND_KEY, &reply);
	if (error != 0)
		return error;
	if (reply->elements != 3) {
		error = -ENOENT;
	} else if (reply->element[0]->len != SERIAL_BYTES) {
		error = -EUCLEAN;
	} else {
		found[0] = reply->element[1];
		found[1] = reply->element[2];
		error = found_print(&listing, reply->element[0]->str, found, NULL);
	}
	freeReplyObject(reply);
	return error;
}

static void head_print(const struct twi_tool_redis *redis, FILE *out)
{
	fprintf(out,
		"{\"tickwheel_durable_dump\":%d,\"serial\":%" PRIu64 ",\"clean\":true,\"kinds\":",
		TWI_TOOL_FORMAT, redis->serial);
	twi_tool_print_kinds(out, &redis->kinds, false);
	if (twi_tool_any_paused(&redis->kinds)) {
		fputs(",\"paused\":", out);
		twi_tool_print_kinds(out, &redis->kinds, true);
	}
	fputs("}\n", out);
}

int twi_tool_redis_dump(struct twi_tool_redis *redis, const struct twi_tool_output *output)
{
	struct twi_tool_output all = *output;
	struct twi_tool_seen seen = {.count = 0};
	struct listing listing = {.redis = redis, .output = &all, .seen = &seen};
	int error = 0;

	all.json = true;
	all.limit = SIZE_MAX;
	twi_tool_progress_begin(&listing.progress, "rows", 0);
	head_print(redis, output->out);
	if (twi_tool_redis_want(redis, output->kind))
		error = twi_redis_near(&redis->store, NULL, INT64_MAX, SIZE_MAX, timer_print,
				       &listing);
	if (error == 0)
		error = twi_tool_redis_letters(redis, letter_print, &listing);
	twi_tool_progress_end(&listing.progress);
	twi_tool_seen_free(&seen);
	if (error == 0)
		fprintf(output->out, "{\"rows\":%" PRIu64 "}\n", listing.count);
	return error;
}
