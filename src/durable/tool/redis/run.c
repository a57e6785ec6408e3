/* SPDX-License-Identifier: MIT */
/* The commands of the program on timers in Redis. */
#include "durable/tool/redis/redis.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int cancel_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_cancel(redis, arguments->id);
}

static int check_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_check(redis, &arguments->output);
}

static int count_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_count(redis, &arguments->output);
}

static int dead_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_dead(redis, &arguments->output);
}

static int dump_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_dump(redis, &arguments->output);
}

static int find_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_find(redis, &arguments->output, arguments->argument);
}

static int list_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_list(redis, &arguments->output);
}

static int pause_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_pause(redis, arguments->argument, true);
}

static int resume_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_pause(redis, arguments->argument, false);
}

static int revive_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_revive(redis, arguments->id);
}

static int sessions_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_sessions(redis, &arguments->output);
}

static int show_run(void *redis, const struct twi_tool_arguments *arguments)
{
	return twi_tool_redis_show(redis, &arguments->output, arguments->id);
}

const struct twi_tool_command twi_tool_redis_commands[] = {
	{"cancel", TWI_TOOL_AN_ID, cancel_run},
	{"check", TWI_TOOL_NOTHING, check_run},
	{"count", TWI_TOOL_NOTHING, count_run},
	{"dead", TWI_TOOL_NOTHING, dead_run},
	{"dump", TWI_TOOL_NOTHING, dump_run},
	{"find", TWI_TOOL_A_TEXT, find_run},
	{"list", TWI_TOOL_NOTHING, list_run},
	{"pause", TWI_TOOL_A_TEXT, pause_run},
	{"resume", TWI_TOOL_A_TEXT, resume_run},
	{"revive", TWI_TOOL_AN_ID, revive_run},
	{"sessions", TWI_TOOL_NOTHING, sessions_run},
	{"show", TWI_TOOL_AN_ID, show_run},
	{NULL, TWI_TOOL_NOTHING, NULL},
};

static const char *text_of(int error)
{
	switch (error) {
	case -EBUSY:
		return "the timer runs now";
	case -ENOENT:
		return "there are no durable timers";
	case -ENOTSUP:
		return "they have another version, or the server is part of a cluster";
	case -EUCLEAN:
		return "the keys are not those of durable timers";
	case -ECONNRESET:
		return "the connection broke: nobody knows whether it was done";
	case -EROFS:
		return "the server is a replica";
	case -ENOSPC:
		return "the server has no memory left";
	default:
		return strerror(-error);
	}
}

static int told(const struct twi_tool_arguments *arguments, int error)
{
	fprintf(stderr, "tickwheel-durable: Redis: the prefix %s: %s\n", arguments->prefix,
		text_of(error));
	return -ECANCELED;
}

int twi_tool_redis_command_run(const struct twi_tool_command *command,
			       const struct twi_tool_arguments *arguments)
{
	struct twi_tool_redis redis;
	int error;

	if (!twi_redis_prefix_right(arguments->prefix))
		return told(arguments, -EINVAL);
	error = twi_tool_redis_open(&redis, arguments);
	if (error != 0)
		return told(arguments, error);
	error = command->run(&redis, arguments);
	twi_tool_redis_close(&redis);
	return error == 0 || error == -ENOENT ? error : told(arguments, error);
}
