/* SPDX-License-Identifier: MIT */
/*
 * A keeper stores timers that outlive their process. Each call is for up to a thousand timers, and
 * returns when the keeper has acknowledged all of them.
 */
#ifndef PERF_DURABLE_PEER_H
#define PERF_DURABLE_PEER_H

#include <stddef.h>
#include <stdint.h>

enum {
	KEEPER_BATCH = 1000,
	KEEPER_PAYLOAD = 64,
};

struct keeper {
	const char *name;
	/* `address`: a folder, or the socket of a server. */
	void (*open)(const char *address);
	/* Schedules new timers, due at `due_s` (seconds since 1970). */
	void (*schedule)(size_t count, int64_t due_s);
	/* Cancels the timers that were scheduled last. NULL: the keeper cannot cancel. */
	void (*cancel)(size_t count);
	/*
	 * Takes timers that are due, and ends them. Returns how many. NULL: the keeper has no such
	 * call.
	 */
	size_t (*take)(size_t most);
	/* Closes the keeper. If the client simulates a kill, it does not call this function. */
	void (*close)(void);
};

extern const struct keeper keeper_log, keeper_tickwheel, keeper_beanstalkd, keeper_redis;
#ifdef HAVE_POSTGRES
extern const struct keeper keeper_postgres;
#ifdef HAVE_TICKWHEEL_POSTGRES
extern const struct keeper keeper_shared;
#endif
#endif

extern const char keeper_payload[KEEPER_PAYLOAD + 1];

/* Prints a message, and ends the process. */
_Noreturn void keeper_fail(const char *what, const char *why);

#endif
