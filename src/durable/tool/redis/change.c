/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/redis.h"

#include <errno.h>

#define SIGN_4 (UINT32_C(1) << 31)

/* The results of change.lua and pause.lua. */
enum outcome {
	DONE,
	ABSENT,
	RUNNING,
};

static int change(struct twi_tool_redis *redis, enum twi_tool_redis_script script)
{
	redisReply *reply = NULL;
	int error = twi_tool_redis_run(redis, script, &reply);
	long long outcome;

	if (error != 0)
		return error;
	outcome = reply->integer;
	freeReplyObject(reply);
	return outcome == DONE ? 0 : outcome == RUNNING ? -EBUSY : -ENOENT;
}

static int timer_change(struct twi_tool_redis *redis, const char *what, struct tw_durable_id id)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&redis->store.link);

	/* In Redis a place has 32 bits, so no timer there has this id. */
	if ((int64_t)id.place != (int32_t)id.place)
		return -ENOENT;
	twi_arguments_text(arguments, what);
	twi_arguments_8(arguments, id.serial);
	twi_argument_4(arguments, (uint32_t)id.place ^ SIGN_4);
	twi_argument_end(arguments);
	return change(redis, TWI_TOOL_REDIS_CHANGE);
}

int twi_tool_redis_cancel(struct twi_tool_redis *redis, struct tw_durable_id id)
{
	return timer_change(redis, "cancel", id);
}

int twi_tool_redis_revive(struct twi_tool_redis *redis, struct tw_durable_id id)
{
	return timer_change(redis, "revive", id);
}

int twi_tool_redis_pause(struct twi_tool_redis *redis, const char *kind, bool paused)
{
	struct twi_arguments *arguments = twi_redis_link_begin(&redis->store.link);

	twi_arguments_text(arguments, kind);
	twi_arguments_number(arguments, paused);
	return change(redis, TWI_TOOL_REDIS_PAUSE);
}
