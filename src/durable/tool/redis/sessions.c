/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/redis.h"

#include "durable/tool/print.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Counts the timers that a session has claimed and not started. */
static int waiting_count(struct twi_tool_redis *redis, const redisReply *session, uint64_t *ret)
{
	char place[20];
	size_t place_bytes = 0;
	int error = 0;

	*ret = 0;
	do {
		struct twi_arguments *arguments = twi_redis_link_begin(&redis->store.link);
		redisReply *reply = NULL;

		twi_argument_bytes(arguments, session->str, session->len);
		twi_argument_end(arguments);
		twi_argument_bytes(arguments, place, place_bytes);
		twi_argument_end(arguments);
		twi_arguments_number(arguments, TWI_REDIS_ROWS_MAX);
		error = twi_redis_link_run(&redis->store.link, TWI_REDIS_HELD, &reply);
		if (error != 0)
			return error;
		*ret += reply->elements - 1;
		place_bytes = reply->element[0]->len == sizeof place ? sizeof place : 0;
		memcpy(place, reply->element[0]->str, place_bytes);
		freeReplyObject(reply);
	} while (place_bytes != 0);
	return 0;
}

static void session_print(const struct twi_tool_output *output, redisReply *const *session,
			  uint64_t waiting)
{
	uint64_t number = twi_redis_get8(session[0]->str);
	uint64_t held = (uint64_t)session[3]->integer;
	uint64_t running = held > waiting ? held - waiting : 0;
	double left_s = strtod(session[2]->str, NULL) / 1e6;

	if (!output->json) {
		fprintf(output->out,
			"%" PRIu64 "  %s %.1f s  %12" PRIu64 " timers  %6" PRIu64 " running  ",
			number, left_s > 0 ? "ends in" : "over for", left_s > 0 ? left_s : -left_s,
			held, running);
		fwrite(session[1]->str, 1, session[1]->len, output->out);
		putc('\n', output->out);
		return;
	}
	fprintf(output->out,
		"{\"session\":%" PRIu64 ",\"left_s\":%.3f,\"timers\":%" PRIu64
		",\"running\":%" PRIu64 ",\"name\":",
		number, left_s, held, running);
	twi_tool_json_text(output->out, session[1]->str, session[1]->len);
	fputs("}\n", output->out);
}

int twi_tool_redis_sessions(struct twi_tool_redis *redis, const struct twi_tool_output *output)
{
	enum { PER_SESSION = 4 };
	redisReply *reply = NULL;
	int error;

	(void)twi_redis_link_begin(&redis->store.link);
	error = twi_tool_redis_run(redis, TWI_TOOL_REDIS_SESSIONS, &reply);
	if (error != 0)
		return error;
	for (size_t i = 0; i + PER_SESSION <= reply->elements && error == 0; i += PER_SESSION) {
		uint64_t waiting = 0;

		error = reply->element[i]->len == sizeof(uint64_t)
				? waiting_count(redis, reply->element[i], &waiting)
				: -EUCLEAN;
		if (error == 0)
			session_print(output, &reply->element[i], waiting);
	}
	freeReplyObject(reply);
	return error;
}
