/* SPDX-License-Identifier: MIT */
/*
 * usage: uv_random OPERATIONS SEED
 *
 * Compares the timers of tickwheel-uv-timer with libuv's own, by random operations.
 *
 * Two loops get the same operations: between iterations, in callbacks of timers, in close
 * callbacks, and in a uv_prepare_t. One loop has libuv's timers, the other has ours. All results of
 * operations and callbacks must be the same: order, times, states, and whether the loop is alive.
 * Each loop has its own substituted time.
 *
 * Seen to fail with these defects: timers with equal times run in the order of their creation
 * instead of their starts; a repeat starts only after its callback; a start at an earlier time
 * leaves the timer at its old time in the engine; close callbacks run in the order of the closes;
 * an unref does not reach the adapter's own timer, the driver; a stop does not take the timer out
 * of the list of due timers.
 */
#include "clock.h"
#include "random.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/uv_timer.h>
#include <uv.h>

enum { TIMERS = 24, EVENTS = 1 << 16, NS_PER_MS = 1000000 };

/* What the test records: the name of an operation or a callback, its timer, and a result. */
struct event {
	const char *name;
	unsigned timer;
	uint64_t result;
};

struct side {
	bool ours;
	uv_loop_t loop;
	uv_prepare_t prepare;
	struct tw_uv_timers *timers;
	uv_timer_t stock[TIMERS];
	struct tw_uv_timer wheel[TIMERS];
	bool closing[TIMERS];
	int64_t now_ns;
	struct random random;
	unsigned events;
	unsigned stop_after; /* after how many callbacks uv_stop is called; 0: never */
	uint64_t operations;
	uint64_t callbacks;
	bool quiet; /* set at the end: no timer is started any more */
	struct event event[EVENTS];
};

static struct side side[2];

static void note(struct side *self, const char *name, unsigned timer, uint64_t result)
{
	if (self->events == EVENTS)
		return;
	self->event[self->events++] = (struct event){name, timer, result};
}

static uint64_t any_time(struct random *random)
{
	switch (random_below(random, 16)) {
	case 0:
	case 1:
		return 0;
	case 2:
		return random_below(random, 64) == 0 ? UINT64_MAX - random_below(random, 3)
						     : random_below(random, 100000);
	case 3:
		return random_below(random, 5000);
	case 4:
		return (uint64_t)random_magnitude(random, 20);
	default:
		return random_below(random, 12);
	}
}

static void some_operations(struct side *self, unsigned most);

static void seen(struct side *self, const char *name, unsigned timer)
{
	note(self, name, timer, uv_now(&self->loop));
	self->callbacks++;
	if (self->stop_after != 0 && --self->stop_after == 0)
		uv_stop(&self->loop);
	some_operations(self, 4);
}

static void stock_expired(uv_timer_t *timer)
{
	struct side *self = timer->data;

	seen(self, "expired", (unsigned)(timer - self->stock));
}

static void wheel_expired(struct tw_uv_timer *timer)
{
	struct side *self = timer->data;

	seen(self, "expired", (unsigned)(timer - self->wheel));
}

/*
 * Does the same as the first callback, under another name, so that the test sees which of the two
 * runs.
 */
static void stock_other(uv_timer_t *timer)
{
	struct side *self = timer->data;

	seen(self, "other expired", (unsigned)(timer - self->stock));
}

static void wheel_other(struct tw_uv_timer *timer)
{
	struct side *self = timer->data;

	seen(self, "other expired", (unsigned)(timer - self->wheel));
}

static void timer_init(struct side *self, unsigned i)
{
	self->closing[i] = false;
	self->stock[i].data = self;
	self->wheel[i].data = self;
	note(self, "init", i,
	     self->ours ? (uint64_t)tw_uv_timer_init(self->timers, &self->wheel[i])
			: (uint64_t)uv_timer_init(&self->loop, &self->stock[i]));
}

static void closed(struct side *self, unsigned i)
{
	seen(self, "closed", i);
	if (!self->quiet)
		timer_init(self, i);
}

static void stock_closed(uv_handle_t *timer)
{
	struct side *self = timer->data;

	closed(self, (unsigned)((uv_timer_t *)timer - self->stock));
}

static void wheel_closed(struct tw_uv_timer *timer)
{
	struct side *self = timer->data;

	closed(self, (unsigned)(timer - self->wheel));
}

static void start(struct side *self, unsigned i)
{
	uint64_t timeout = any_time(&self->random);
	uint64_t repeat = random_below(&self->random, 4) == 0 ? any_time(&self->random) : 0;
	bool other = random_below(&self->random, 2) == 0;
	int result =
		self->ours ? tw_uv_timer_start(&self->wheel[i], other ? wheel_other : wheel_expired,
					       timeout, repeat)
			   : uv_timer_start(&self->stock[i], other ? stock_other : stock_expired,
					    timeout, repeat);

	note(self, "start", i, (uint64_t)result);
}

static void stop(struct side *self, unsigned i)
{
	note(self, "stop", i,
	     (uint64_t)(self->ours ? tw_uv_timer_stop(&self->wheel[i])
				   : uv_timer_stop(&self->stock[i])));
}

static void again(struct side *self, unsigned i)
{
	note(self, "again", i,
	     (uint64_t)(self->ours ? tw_uv_timer_again(&self->wheel[i])
				   : uv_timer_again(&self->stock[i])));
}

static void set_repeat(struct side *self, unsigned i)
{
	uint64_t repeat = random_below(&self->random, 3) == 0 ? 0 : any_time(&self->random);

	if (self->ours)
		(void)tw_uv_timer_set_repeat(&self->wheel[i], repeat);
	else
		uv_timer_set_repeat(&self->stock[i], repeat);
}

static void hold(struct side *self, unsigned i)
{
	bool ref = random_below(&self->random, 2) == 0;
	uv_handle_t *stock = (uv_handle_t *)&self->stock[i];

	if (self->ours)
		(void)(ref ? tw_uv_timer_ref(&self->wheel[i]) : tw_uv_timer_unref(&self->wheel[i]));
	else if (ref)
		uv_ref(stock);
	else
		uv_unref(stock);
}

/*
 * Records a timer's state. For a closing timer it does not read the due time, because the due time
 * of our timers differs from libuv's on purpose (docs/hosts.md).
 */
static void look(struct side *self, unsigned i)
{
	const struct tw_uv_timer *wheel = &self->wheel[i];
	const uv_timer_t *stock = &self->stock[i];
	const uv_handle_t *handle = (const uv_handle_t *)stock;

	note(self, "repeat", i,
	     self->ours ? tw_uv_timer_get_repeat(wheel) : uv_timer_get_repeat(stock));
	if (!self->closing[i])
		note(self, "due in", i,
		     self->ours ? tw_uv_timer_get_due_in(wheel) : uv_timer_get_due_in(stock));
	note(self, "active", i,
	     (uint64_t)(self->ours ? tw_uv_timer_is_active(wheel) : uv_is_active(handle)));
	note(self, "closing", i,
	     (uint64_t)(self->ours ? tw_uv_timer_is_closing(wheel) : uv_is_closing(handle)));
	note(self, "referenced", i,
	     (uint64_t)(self->ours ? tw_uv_timer_has_ref(wheel) : uv_has_ref(handle)));
}

static void timer_close(struct side *self, unsigned i)
{
	if (self->closing[i])
		return;
	self->closing[i] = true;
	if (self->ours)
		note(self, "close", i, (uint64_t)tw_uv_timer_close(&self->wheel[i], wheel_closed));
	else {
		uv_close((uv_handle_t *)&self->stock[i], stock_closed);
		note(self, "close", i, 0);
	}
}

static void pass(struct side *self, uint64_t most_ms)
{
	self->now_ns += (int64_t)random_below(&self->random, most_ms * NS_PER_MS);
	uv_update_time(&self->loop);
}

static void pass_some(struct side *self, unsigned i)
{
	(void)i;
	pass(self, 4);
}

typedef void operation(struct side *self, unsigned i);

static void some_operation(struct side *self)
{
	/* An operation that is listed more often is chosen more often. */
	static operation *const all[] = {
		start, start,       start, start, start, start,      start,      start, start,
		start, start,       start, start, start, stop,       stop,       stop,  stop,
		again, again,       again, hold,  hold,  set_repeat, set_repeat, look,  look,
		look,  timer_close, look,  look,  look,  pass_some,
	};
	unsigned i = (unsigned)random_below(&self->random, TIMERS);

	self->operations++;
	all[random_below(&self->random, sizeof all / sizeof all[0])](self, i);
}

static void some_operations(struct side *self, unsigned most)
{
	if (self->quiet)
		return;
	for (uint64_t n = random_below(&self->random, most); n > 0; n--)
		some_operation(self);
}

/* Makes operations only if the loop does not wait. While it waits, a loop with our timers may wake
 * up more often, and so would make more operations than the other loop. */
static void prepared(uv_prepare_t *prepare)
{
	struct side *self = prepare->data;

	if (self->stop_after == 0)
		some_operations(self, 3);
}

static void open_side(struct side *self, bool ours, uint64_t seed)
{
	memset(self, 0, sizeof *self);
	self->ours = ours;
	self->random.state = seed;
	self->now_ns = (int64_t)random_below(&self->random, 1) + INT64_C(1000000000000);
	clock_ns = &self->now_ns;
	if (uv_loop_init(&self->loop) != 0 || uv_prepare_init(&self->loop, &self->prepare) != 0)
		abort();
	self->prepare.data = self;
	(void)uv_prepare_start(&self->prepare, prepared);
	uv_unref((uv_handle_t *)&self->prepare);
	if (tw_uv_timers_create(&self->loop, &self->timers) != 0)
		abort();
	for (unsigned i = 0; i < TIMERS; i++)
		timer_init(self, i);
}

/* Returns how long the loop would wait. With our driver it may be less than with libuv's timers,
 * but not more. */
static int backend_timeout(const struct side *self)
{
	return uv_backend_timeout(&self->loop);
}

static void step(struct side *self)
{
	bool blocks;

	clock_ns = &self->now_ns;
	self->events = 0;
	some_operations(self, 12);
	blocks = random_below(&self->random, 4) == 0;
	if (!blocks)
		self->now_ns += (int64_t)random_below(&self->random, 8 * NS_PER_MS);
	self->stop_after = blocks ? 1 + (unsigned)random_below(&self->random, 6) : 0;
	note(self, "run", 0,
	     (uint64_t)uv_run(&self->loop, blocks ? UV_RUN_DEFAULT : UV_RUN_NOWAIT));
	self->stop_after = 0;
	note(self, "alive", 0, (uint64_t)uv_loop_alive(&self->loop));
	note(self, "now", 0, uv_now(&self->loop));
}

static bool same_event(const struct event *left, const struct event *right)
{
	return left->name == right->name && left->timer == right->timer &&
	       left->result == right->result;
}

static void event_print(const char *who, const struct side *self, unsigned i)
{
	if (i < self->events)
		(void)fprintf(stderr, "  %s: %s timer %u: %" PRId64 "\n", who, self->event[i].name,
			      self->event[i].timer, (int64_t)self->event[i].result);
}

static bool same(uint64_t steps)
{
	unsigned most = side[0].events > side[1].events ? side[0].events : side[1].events;

	for (unsigned i = 0; i < most; i++) {
		if (i < side[0].events && i < side[1].events &&
		    same_event(&side[0].event[i], &side[1].event[i]))
			continue;
		(void)fprintf(stderr, "step %" PRIu64 ", event %u differs:\n", steps, i);
		for (unsigned j = i < 5 ? 0 : i - 5; j <= i; j++) {
			event_print("libuv", &side[0], j);
			event_print("ours ", &side[1], j);
		}
		return false;
	}
	return true;
}

/*
 * Returns whether our loop sleeps as it should. With our timers a loop may sleep for less time than
 * with libuv's, but not for more. It must not sleep for ever if libuv's does not.
 */
static bool sleeps_right(void)
{
	unsigned theirs = (unsigned)backend_timeout(&side[0]);
	unsigned ours = (unsigned)backend_timeout(&side[1]);

	if (ours <= theirs)
		return true;
	(void)fprintf(stderr, "sleeps %d instead of %d\n", (int)ours, (int)theirs);
	return false;
}

static bool close_side(struct side *self)
{
	clock_ns = &self->now_ns;
	self->quiet = true;
	for (unsigned i = 0; i < TIMERS; i++)
		timer_close(self, i);
	(void)uv_run(&self->loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&self->prepare, NULL);
	if (tw_uv_timers_close(self->timers) != 0)
		return false;
	(void)uv_run(&self->loop, UV_RUN_DEFAULT);
	return uv_loop_close(&self->loop) == 0;
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
		if (!same(steps) || !sleeps_right()) {
			(void)fprintf(stderr, "seed %" PRIu64 "\n", seed);
			return 1;
		}
	}
	(void)printf("%" PRIu64 " operations, %" PRIu64 " callbacks, no difference\n",
		     side[0].operations, side[0].callbacks);
	return close_side(&side[0]) && close_side(&side[1]) ? 0 : 1;
}
