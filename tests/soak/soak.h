/* SPDX-License-Identifier: MIT */
/*
 * What the parts of the soak share: the items, the engines they are scheduled on, the seats whose
 * threads come and go, and the books.
 *
 * An item is a timeout's argument. Its seat's thread alone schedules it; who ends it says so by one
 * exchange of its life, and whoever finds another life than PENDING there has found a timeout that
 * ended twice. What an engine still has pending when its stop has returned was lost.
 */
#ifndef SOAK_H
#define SOAK_H

#include "../race/race.h"
#include "random.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

enum {
	SEATS = 4,
	ITEMS = 8192, /* of each seat: the most that it has pending */
	ENGINES = 2,
};

enum life {
	LIFE_FREE = 0, /* its seat's thread may schedule it */
	LIFE_PENDING = 1,
	LIFE_BETWEEN = 2, /* its callback schedules it again */
};

struct item {
	_Atomic uint32_t life; /* enum life */
	uint32_t engine;       /* number; counts while pending */
	uint32_t links;        /* of its callback: times that it still schedules the item again */
	bool chained;          /* its callback schedules it again, and nobody cancels it */
	bool counted_by_finaliser;   /* else by the callback, the canceller, the hand-back */
	_Atomic int64_t deadline_ns; /* in the engine's time, or TW_NEVER */
	struct tw_handle handle;     /* of its seat's thread; not of a chained one */
};

/* Since the start, over all engines. */
struct books {
	_Atomic uint64_t scheduled, expired, cancelled, handed_back, refused;
	_Atomic uint64_t threads, engines;
};

extern struct books books;
extern struct item items[SEATS][ITEMS];

/* engines.c: the engines, made anew now and then while the seats go on. */
void engines_open(void);
/* Stops one, checks its books and that no item of it is left, and makes it anew. */
void engine_renew(uint32_t number);
/* The same without a successor. */
void engines_close(void);
/* Keeps the engines from being destroyed; they may be stopped meanwhile. */
void engines_hold(void);
void engines_release(void);
struct tw_engine *engine_of(uint32_t number);
uint64_t engines_pending(void);

/* items.c: what happens to an item. */
void item_schedule(struct item *item, uint32_t engine, struct random *random);
void item_cancel(struct item *item, bool wait);
tw_hand_back item_hand_back;
/* How late timeouts were since the last call, one line of text. */
void lateness_tell(void);

/* seats.c: threads that come and go. */
void seats_open(uint64_t seed);
void seats_close(void);

#endif
