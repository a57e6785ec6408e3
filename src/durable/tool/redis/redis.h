/* SPDX-License-Identifier: MIT */
/*
 * Shows and changes durable timers in Redis. The program has no session: it claims nothing, and
 * processes with timers do not notice it. If the server reports an error, the message goes to
 * stderr.
 *
 * Each step of a command is one script, so a step reads the timers of one moment. A command that
 * reads all timers needs many steps. If a timer is moved between two of them, the command may find
 * the timer twice or not at all.
 */
#ifndef TWI_DURABLE_TOOL_REDIS_REDIS_H
#define TWI_DURABLE_TOOL_REDIS_REDIS_H

#include "durable/redis/store.h"
#include "durable/tool/arguments.h"
#include "durable/tool/kinds.h"

/* The scripts in the folder lua/. Each is run behind the common part of the store's scripts. */
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
	struct twi_redis store; /* kinds have the same numbers here as in the server */
	struct twi_tool_kinds kinds;
	bool all;        /* timers of all kinds are wanted */
	uint64_t serial; /* the first serial that was not reserved when the program connected */
	char *texts[TWI_TOOL_REDIS_LINES_COUNT];
};

/*
 * Connects. Returns 0, -ENOENT if there are no timers of this prefix, or a code of
 * durable/redis/errors.h.
 */
int twi_tool_redis_open(struct twi_tool_redis *redis, const struct twi_tool_arguments *arguments);
void twi_tool_redis_close(struct twi_tool_redis *redis);

/*
 * Runs a script with the arguments that were added since twi_redis_link_begin(). Returns 0 and
 * *ret, which the caller frees, or an error.
 */
int twi_tool_redis_run(struct twi_tool_redis *redis, enum twi_tool_redis_script script,
		       redisReply **ret);

/*
 * Restricts the following reads to timers of this kind. NULL stands for all kinds. Returns false if
 * there is no kind of this name.
 */
bool twi_tool_redis_want(struct twi_tool_redis *redis, const char *kind);

/*
 * list.c, count.c, check.c: do the same as the functions of list.h, dump.h and check.h, for Redis.
 */
int twi_tool_redis_check(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_count(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_list(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_dead(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_dump(struct twi_tool_redis *redis, const struct twi_tool_output *output);
int twi_tool_redis_show(struct twi_tool_redis *redis, const struct twi_tool_output *output,
			struct tw_durable_id id);
int twi_tool_redis_find(struct twi_tool_redis *redis, const struct twi_tool_output *output,
			const char *key);
/* sessions.c: prints the processes that have a session, and how many timers each has. */
int twi_tool_redis_sessions(struct twi_tool_redis *redis, const struct twi_tool_output *output);

/*
 * change.c: change a timer, a dead letter or a kind. Return 0, -ENOENT if there is no such timer,
 * dead letter or kind, -EBUSY if the timer runs now, or an error.
 */
int twi_tool_redis_cancel(struct twi_tool_redis *redis, struct tw_durable_id id);
int twi_tool_redis_revive(struct twi_tool_redis *redis, struct tw_durable_id id);
int twi_tool_redis_pause(struct twi_tool_redis *redis, const char *kind, bool paused);

/*
 * Passes the dead letters of the wanted kinds to `give`, in the order of their ids, each with the
 * time when it ended.
 */
int twi_tool_redis_letters(struct twi_tool_redis *redis,
			   int (*give)(void *to, const struct tw_durable_row *row,
				       int64_t ended_ns),
			   void *to);

#endif
