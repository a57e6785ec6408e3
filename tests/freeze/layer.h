/* SPDX-License-Identifier: MIT */
/*
 * What the programs about the layers above the engine share: an engine in virtual time, whose dispatch
 * hook keeps what it is given; and a thread that makes one call, and stands in it.
 */
#ifndef FREEZE_LAYER_H
#define FREEZE_LAYER_H

#include "../race/race.h"
#include "stand.h"

#include <pthread.h>
#include <tickwheel.h>

enum {
	TICK_NS = 1000000,
	/* The result of a call that has not returned. */
	VICTIM_LEFT = 1000,
};

extern struct tw_engine *engine;

/* What the dispatch hook has accepted last, and how often it has. */
extern struct tw_due due;
extern _Atomic unsigned dues;

/* An engine that has not been started. Without `dispatching` the hook refuses all. */
void layer_open(bool dispatching);

/* Destroys it, once it is stopped. */
void layer_close(void);

void stop(void);

/* Moves the clock, and waits until all that is due has run. */
void advance(int64_t ticks);

/* The thread that stands. */
struct victim {
	struct stand stand;
	int (*call)(void);
	int result;
	pthread_t thread;
};

/* Returns when it stands at the point. */
void victim_stop(struct victim *victim, const char *point, int (*call)(void));

/* Its call then returns that, or, with VICTIM_LEFT, ends its thread. */
void victim_go_on(struct victim *victim, int result);

#endif
