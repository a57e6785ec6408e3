/* SPDX-License-Identifier: MIT */
/*
 * Durable timers in Redis, as the program shows and changes them. It is no session: it claims
 * nothing, and processes with timers do not notice it. What the server says of a failure goes to
 * stderr.
 *
 * Each step of a command is one script, so it sees one moment. A command that reads all timers
 * takes many: a timer that is moved meanwhile may come twice or not at all.
 */
#ifndef TWI_DURABLE_TOOL_REDIS_REDIS_H
#define TWI_DURABLE_TOOL_REDIS_REDIS_H

#include "durable/redis/store.h"
#include "durable/tool/arguments.h"
#include "durable/tool/kinds.h"

/* The scripts of lua/, after the common part of the store's. */
enum twi_tool_redis_script {
	TWI_TOOL_REDIS_CHANGE,
	TWI_TOOL_REDIS_HOUR,
	TWI_TOOL_REDIS_KINDS,
	TWI_TOOL_REDIS_PAGE,
	TWI_TOOL_REDIS_PAUSE,
	TWI_TOOL_REDIS_SESSIONS,
	TWI_TOOL_REDIS_LINES_COUNT,
};

extern const char *const *const twi_tool_redis_lines[TWI_TOOL_REDIS_LINES_COUNT];

struct twi_tool_redis {
	struct twi_redis store; /* its numbers of kinds are those of the server */
	struct twi_tool_kinds kinds;
	bool all;        /* timers of all kinds are wanted */
	uint64_t serial; /* the first one that is not given out */
	char *texts[TWI_TOOL_REDIS_LINES_COUNT];
};

/* 0; -ENOENT: there are no timers of this prefix; or a code of durable/redis/errors.h. */
int twi_tool_redis_open(struct twi_tool_redis *redis, const struct twi_tool_arguments *arguments);
void twi_tool_redis_close(struct twi_tool_redis *redis);

/*
 * Runs a script with the arguments that twi_redis_link_begin() began. 0 and *ret, which the caller
 * frees.
 */
int twi_tool_redis_run(struct twi_tool_redis *redis, enum twi_tool_redis_script script,
		       redisReply **ret);

/* Reads give timers of this kind only (NULL: of each). False: there is none of this name. */
bool twi_tool_redis_want(struct twi_tool_redis *redis, const char *kind);

/* list.c, count.c, check.c, sessions.c: as the functions of list.h, dump.h and check.h. */
int twi_tool_redis_check(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_count(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_list(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_dead(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_dump(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_show(struct twi_tool_redis *redis, const struct twi_tool_output *output,
			struct tw_durable_id id);
int twi_tool_redis_find(struct twi_tool_redis *redis, const struct twi_tool_output *output,
			const char *key);
/* Processes that share the timers. */
int twi_tool_redis_sessions(struct twi_tool_redis *redis, const struct twi_tool_output *output);

/* change.c: -ENOENT: there is none; -EBUSY: the timer runs now. */
int twi_tool_redis_cancel(struct twi_tool_redis *redis, struct tw_durable_id id);
int twi_tool_redis_revive(struct twi_tool_redis *redis, struct tw_durable_id id);
int twi_tool_redis_pause(struct twi_tool_redis *redis, const char *kind, bool paused);

/*
 * Gives dead letters of the kinds that are wanted, in the order of their ids, with the time of
 * their end.
 */
int twi_tool_redis_letters(struct twi_tool_redis *redis,
			   int (*give)(void *to, const struct tw_durable_row *row,
				       int64_t ended_ns),
			   void *to);

#endif
