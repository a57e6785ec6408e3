/* SPDX-License-Identifier: MIT */
/*
 * usage: event_random OPERATIONS SEED
 *
 * Compares the timers of tickwheel-event with libevent's own, by random operations.
 *
 * The program works like uv_random.c. libevent does not order timers with equal times, so no two
 * timers are ever due at the same microsecond: each has its own fraction of a millisecond.
 *
 * Seen to fail with these defects: events run in the order of their adds instead of their times; an
 * add during the loop's pass over due events does not withdraw the event's pending callback; the
 * next run of a persistent event counts from its last run; an active event runs before those that
 * already wait; a break does not end the pass; the adapter's own timer, the driver, keeps a base
 * without timers alive.
 */
#include "clock.h"
#include "random.h"

#include <event2/event.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/event.h>

enum { TIMERS = 8, EVENTS = 1 << 14, NS_PER_MS = 1000000, US_PER_MS = 1000, APART_US = 125 };

struct seen {
	const char *name;
	unsigned timer;
	int64_t result;
};

struct side;

struct place {
	struct side *side;
	struct event *stock;
	struct tw_event *wheel;
};

struct side {
	bool ours;
	struct event_base *base;
	struct tw_events *events;
	struct place place[TIMERS];
	int64_t now_ns;
	struct random random;
	unsigned seen_count;
	unsigned break_after;
	uint64_t operations;
	uint64_t callbacks;
	struct seen seen[EVENTS];
};

static struct side side[2];

static void note(struct side *self, const char *name, unsigned timer, int64_t result)
{
	if (self->seen_count < EVENTS)
		self->seen[self->seen_count++] = (struct seen){name, timer, result};
}

static void some_operations(struct side *self, unsigned most);

static void expired(int none, short what, void *argument)
{
	struct place *place = argument;
	struct side *self = place->side;

	(void)none;
	note(self, "expired", (unsigned)(place - self->place), what);
	note(self, "at", 0, self->now_ns);
	self->callbacks++;
	some_operations(self, 4);
	if (self->break_after != 0 && --self->break_after == 0)
		note(self, "break", 0, event_base_loopbreak(self->base));
}

static short kind_of(unsigned i)
{
	return i == 0 ? EV_PERSIST : 0;
}

static void make(struct side *self, unsigned i)
{
	struct place *place = &self->place[i];

	place->side = self;
	if (!self->ours)
		place->stock = event_new(self->base, -1, kind_of(i), expired, place);
	else if (tw_event_new(self->events, kind_of(i), expired, place, &place->wheel) != 0)
		abort();
}

static void unmake(struct side *self, unsigned i)
{
	if (self->ours)
		(void)tw_event_free(self->place[i].wheel);
	else
		event_free(self->place[i].stock);
}

static uint64_t any_ms(struct random *random)
{
	switch (random_below(random, 8)) {
	case 0:
		return 0;
	case 1:
		return random_below(random, 100000);
	default:
		return random_below(random, 12);
	}
}

static void add(struct side *self, unsigned i)
{
	uint64_t ms = any_ms(&self->random);
	/* Timer 0 is persistent, so its interval must be a whole number of milliseconds.
	 * Otherwise its fraction of a millisecond would change. */
	uint64_t us = i == 0 ? (ms + 1) * US_PER_MS : ms * US_PER_MS + i * APART_US;
	struct timeval wait = {(time_t)(us / 1000000), (suseconds_t)(us % 1000000)};
	bool none = random_below(&self->random, 32) == 0;

	note(self, "add", i,
	     self->ours ? tw_event_add(self->place[i].wheel, none ? NULL : &wait)
			: event_add(self->place[i].stock, none ? NULL : &wait));
}

static void del(struct side *self, unsigned i)
{
	note(self, "del", i,
	     self->ours ? tw_event_del(self->place[i].wheel) : event_del(self->place[i].stock));
}

static void activate(struct side *self, unsigned i)
{
	short what = random_below(&self->random, 2) == 0 ? EV_TIMEOUT : EV_READ;

	if (self->ours)
		(void)tw_event_active(self->place[i].wheel, what);
	else
		event_active(self->place[i].stock, what, 1);
}

static void look(struct side *self, unsigned i)
{
	short what = EV_TIMEOUT | EV_READ;

	note(self, "pending", i,
	     self->ours ? tw_event_pending(self->place[i].wheel, what, NULL)
			: event_pending(self->place[i].stock, what, NULL));
}

static void renew(struct side *self, unsigned i)
{
	unmake(self, i);
	make(self, i);
}

typedef void operation(struct side *self, unsigned i);

static void some_operations(struct side *self, unsigned most)
{
	/* An operation that is listed more often is chosen more often. */
	static operation *const all[] = {add, add,  add,  add,  add,      add,  add,
					 del, look, look, look, activate, renew};

	for (uint64_t n = random_below(&self->random, most); n > 0; n--) {
		unsigned i = (unsigned)random_below(&self->random, TIMERS);

		self->operations++;
		all[random_below(&self->random, sizeof all / sizeof all[0])](self, i);
	}
}

static void open_side(struct side *self, bool ours, uint64_t seed)
{
	self->ours = ours;
	self->random.state = seed;
	self->now_ns = INT64_C(1000000000000);
	clock_ns = &self->now_ns;
	self->base = event_base_new();
	if (self->base == NULL || tw_events_create(self->base, &self->events) != 0)
		abort();
	for (unsigned i = 0; i < TIMERS; i++)
		make(self, i);
}

/* Runs the loop: either until some callbacks have run or nothing is pending, or for one pass that
 * does not block. */
static void step(struct side *self)
{
	bool blocks;

	clock_ns = &self->now_ns;
	self->seen_count = 0;
	some_operations(self, 8);
	blocks = random_below(&self->random, 4) == 0;
	if (!blocks)
		self->now_ns += (int64_t)random_below(&self->random, 8) * NS_PER_MS;
	self->break_after = blocks || random_below(&self->random, 8) == 0
				    ? 1 + (unsigned)random_below(&self->random, 5)
				    : 0;
	note(self, "loop", 0, event_base_loop(self->base, blocks ? 0 : EVLOOP_NONBLOCK));
	note(self, "now", 0, self->now_ns);
}

static void seen_print(const char *who, const struct side *self, unsigned i)
{
	if (i < self->seen_count)
		(void)fprintf(stderr, "  %s: %s timer %u: %" PRId64 "\n", who, self->seen[i].name,
			      self->seen[i].timer, self->seen[i].result);
}

static bool same(uint64_t steps)
{
	unsigned most =
		side[0].seen_count > side[1].seen_count ? side[0].seen_count : side[1].seen_count;

	for (unsigned i = 0; i < most; i++) {
		const struct seen *left = &side[0].seen[i];
		const struct seen *right = &side[1].seen[i];

		if (i < side[0].seen_count && i < side[1].seen_count && left->name == right->name &&
		    left->timer == right->timer && left->result == right->result)
			continue;
		(void)fprintf(stderr, "step %" PRIu64 ", event %u differs:\n", steps, i);
		for (unsigned j = i < 5 ? 0 : i - 5; j <= i; j++) {
			seen_print("libevent", &side[0], j);
			seen_print("ours    ", &side[1], j);
		}
		return false;
	}
	return true;
}

static bool close_side(struct side *self)
{
	clock_ns = &self->now_ns;
	for (unsigned i = 0; i < TIMERS; i++)
		unmake(self, i);
	if (tw_events_close(self->events) != 0)
		return false;
	event_base_free(self->base);
	return true;
}

int main(int argc, char **argv)
{
	uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;

	open_side(&side[0], false, seed);
	open_side(&side[1], true, seed);
	for (uint64_t steps = 0; side[0].operations < operations; steps++) {
		step(&side[0]);
		step(&side[1]);
		if (!same(steps)) {
			(void)fprintf(stderr, "seed %" PRIu64 "\n", seed);
			return 1;
		}
	}
	(void)printf("%" PRIu64 " operations, %" PRIu64 " callbacks, no difference\n",
		     side[0].operations, side[0].callbacks);
	return close_side(&side[0]) && close_side(&side[1]) ? 0 : 1;
}
