/* SPDX-License-Identifier: MIT */
/*
 * Shared by the programs that test layers above the engine: an engine in virtual time, a dispatch
 * hook that keeps the offered timeouts, and a thread that makes one call and stops in it.
 */
#ifndef FREEZE_LAYER_H
#define FREEZE_LAYER_H

#include "race.h"
#include "stand.h"

#include <pthread.h>
#include <tickwheel.h>

enum {
	TICK_NS = 1000000,
	/* the result of a call that has not returned */
	VICTIM_LEFT = 1000,
};

extern struct tw_engine *engine;

/*
 * The timeout that the dispatch hook accepted last, and the number of timeouts that it has
 * accepted.
 */
extern struct tw_due due;
extern _Atomic unsigned dues;

/*
 * Creates an engine and does not start it. If `dispatching` is false, the hook rejects all
 * timeouts.
 */
void layer_open(bool dispatching);

/* Destroys the engine, which must be stopped. */
void layer_close(void);

void stop(void);

/* Moves the clock, and waits until all due timeouts have run. */
void advance(int64_t ticks);

/* The thread that stops in its call. */
struct victim {
	struct stand stand;
	int (*call)(void);
	int result;
	pthread_t thread;
};

/* Makes the victim call `call`. Returns when the victim has stopped at the point. */
void victim_stop(struct victim *victim, const char *point, int (*call)(void));

/*
 * Lets the victim continue. Its call must return `result`. With VICTIM_LEFT the call must end the
 * thread instead.
 */
void victim_go_on(struct victim *victim, int result);

#endif
