/* SPDX-License-Identifier: MIT */
/*
 * Shared by the parts of the soak: the items, their engines, the seats with threads that come and
 * go, and the counts.
 *
 * An item is a timeout's argument. Only its seat's thread schedules it. The thread that ends an
 * item swaps the item's life once. If this thread finds another life than PENDING there, the
 * timeout has ended twice. If an item is still pending when the stop of its engine has returned, it
 * was lost.
 */
#ifndef SOAK_H
#define SOAK_H

#include "race.h"
#include "random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

enum {
	SEATS = 4,
	/* how many items each seat has, and so the most timeouts that it has pending */
	ITEMS = 8192,
	ENGINES = 2,
	CROWD_MAX = 1024,
	CROWD_ITEMS = 8, /* how many items each thread in the crowd has */
};

#define NS_PER_SECOND INT64_C(1000000000)

enum life {
	LIFE_FREE = 0, /* its seat's thread may schedule it */
	LIFE_PENDING = 1,
	LIFE_BETWEEN = 2, /* its callback schedules it again */
};

struct item {
	_Atomic uint32_t life; /* enum life */
	uint32_t engine;       /* the engine's number; valid while pending */
	uint32_t links;        /* how often its callback will still schedule it again */
	/* whether its callback schedules it again, and no thread cancels it */
	bool chained;
	/*
	 * whether the finaliser counts its end; if not, the callback, the canceller or the
	 * hand-back does
	 */
	bool counted_by_finaliser;
	_Atomic int64_t deadline_ns; /* its deadline in the engine's time, or TW_NEVER */
	struct tw_handle handle;     /* only its seat's thread uses it; unused if chained */
};

/* Sums since the start, over all engines. */
struct books {
	_Atomic uint64_t scheduled, expired, cancelled, unexpired, rejected;
	_Atomic uint64_t threads, engines;
};

extern struct books books;
extern struct item items[SEATS][ITEMS], crowd_items[CROWD_MAX][CROWD_ITEMS];

/* engines.c: opens the engines, which are renewed from time to time while the seats work. */
void engines_open(void);
/* Stops one engine, checks its counters and that all its items have ended, and creates it again. */
void engine_renew(uint32_t number);
/* Stops and checks every engine in this way, and creates none again. */
void engines_close(void);
/* Holds the engines. While a thread holds them, they must not be destroyed, but may be stopped. */
void engines_hold(void);
void engines_release(void);
struct tw_engine *engine_of(uint32_t number);
uint64_t engines_pending(void);

/* items.c: schedules, cancels and ends items. */
void item_schedule(struct item *item, uint32_t engine, struct random *random);
void item_cancel(struct item *item, bool wait);
/* Treats a timeout as a server would: leaves it alone, cancels it, or schedules it again. */
void item_treat(struct item *item, struct random *random);
tw_unexpired_hook item_hand_back;
/* Prints how late timeouts were since the last call, in one line. */
void lateness_tell(void);

/* seats.c: starts the threads of the seats, which come and go. */
void seats_open(uint64_t seed);
void seats_close(void);

/* crowd.c: starts `count` threads that do little and are replaced; 0: none. */
void crowd_open(uint32_t count, uint64_t seed);
void crowd_close(void);

#endif
