/* SPDX-License-Identifier: MIT */
/*
 * TW_ENGINE_ORDERED at random, in virtual time, compared with a list of the pending timeouts. The
 * owner and callbacks schedule, cancel and reschedule. Some timeouts are periodic, with one run.
 *
 * All timeouts must run in the order of their deadlines, also across stalls, turns, and polls that
 * run only a few timeouts. Only timeouts that were scheduled for the past are excepted. If timeouts
 * of one thread have equal deadlines, they must run in the order in which the thread scheduled or
 * rescheduled them. No timeout may be early or lost.
 *
 * Seen to fail with these defects:
 * - a timeout that is rescheduled while it is in the list of due ones keeps its old place there;
 * - the sorted run (wheel/fine.h), or a slot of the fine wheel, is not sorted by sequence;
 * - of equal deadlines, those in the sorted run come before those in the fine wheel;
 * - a reschedule to a later time gives the timeout no new sequence number;
 * - when a fresh timeout is removed, the last one takes its place in `fresh`;
 * - a rescheduled timeout of the present batch stays in the batch;
 * - timeouts that a callback has deferred are filed only in the next turn;
 * - periodic timeouts of the engine's own thread go through its lane.
 */
#include "fixture.h"
#include "random.h"
#include "slowdown.h"

#include <string.h>

enum { SEEDS = 300, TIMEOUTS = 400, CROWD = 20000, STEPS = 150 };

struct item {
	struct tw_handle handle;
	int64_t deadline_ns;
	uint64_t order; /* its number in the order of schedules and reschedules */
	bool pending;
	bool passed;    /* whether its deadline had passed when it was set */
	bool by_worker; /* whether a callback on a worker thread set the deadline */
	bool unordered; /* whether the test's thread rescheduled it; false in a loop */
};

static struct {
	struct fixture fixture;
	struct random random;
	struct item item[CROWD];
	uint64_t items;
	unsigned reach_bits; /* deadlines are up to 2^reach_bits ticks ahead */
	int64_t grain_ns;    /* deadlines are multiples of this */
	uint64_t order;
	int64_t last_ns;
	int64_t runs;
	bool loop;
	bool calm;
	bool in_callback;
	bool put_aside; /* whether a callback has set a past deadline, which the next poll runs */
} scene;

/*
 * Returns a random deadline. Some are in the past, but only in a loop. A worker thread would run
 * such timeouts while the test makes the next operation.
 */
static int64_t random_deadline_ns(void)
{
	int64_t now_ns = scene.fixture.now_ns;
	int64_t deadline_ns =
		now_ns + random_magnitude(&scene.random, scene.reach_bits) * scene.fixture.tick_ns +
		(int64_t)random_below(&scene.random, 2 * (uint64_t)scene.fixture.tick_ns);

	deadline_ns += scene.grain_ns - deadline_ns % scene.grain_ns;
	if (scene.loop && random_below(&scene.random, 8) == 0)
		deadline_ns = now_ns - now_ns % scene.grain_ns;
	return deadline_ns;
}

/* Checks that no pending timeout of the same thread and deadline has a smaller `order`. */
static void check_order(const struct item *item)
{
	if (item->unordered || scene.items > TIMEOUTS)
		return;
	for (uint64_t i = 0; i < scene.items; i++) {
		const struct item *other = &scene.item[i];

		check_true(!other->pending || other->deadline_ns != item->deadline_ns ||
			   other->by_worker != item->by_worker || other->unordered ||
			   other->order >= item->order);
	}
}

static void some_operation(void);

static void on_expire(struct tw_handle self, void *arg)
{
	struct item *item = arg;
	int64_t tick_ns = scene.fixture.tick_ns;

	check_true(item->pending && same_handle(item->handle, self));
	check_true((scene.loop ? item->deadline_ns : (item->deadline_ns / tick_ns + 1) * tick_ns) <=
		   scene.fixture.now_ns);
	check_order(item);
	if (!item->passed) {
		check_true(item->deadline_ns >= scene.last_ns);
		scene.last_ns = item->deadline_ns;
	}
	scene.runs++;
	item->pending = false;
	scene.in_callback = true;
	if (!scene.calm)
		for (uint64_t i = random_below(&scene.random, 4); i > 0; i--)
			some_operation();
	scene.in_callback = false;
}

static const struct tw_kind shared = TW_KIND(on_expire, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_expire, NULL);

/* Schedules a periodic timeout with one run, which must be ordered like any other. */
static void schedule_once(struct item *item, int64_t deadline_ns)
{
	struct tw_period once = TW_PERIOD_RATE(NS_PER_S);

	once.first_ns = deadline_ns - scene.fixture.now_ns;
	once.runs = 1;
	check_int(tw_schedule_periodic(scene.fixture.engine, &once, &shared, item, &item->handle),
		  0);
}

static void schedule(struct item *item, int64_t deadline_ns)
{
	bool is_owned = scene.loop && random_below(&scene.random, 2) == 0;

	/* The first run of a periodic timeout is never in the past. */
	if (deadline_ns > scene.fixture.now_ns && random_below(&scene.random, 4) == 0)
		schedule_once(item, deadline_ns);
	else
		check_int(tw_schedule_at(scene.fixture.engine, deadline_ns,
					 is_owned ? &owned : &shared, item, &item->handle),
			  0);
}

static void some_operation(void)
{
	struct item *item = &scene.item[random_below(&scene.random, scene.items)];
	int64_t deadline_ns = random_deadline_ns();

	if (!item->pending) {
		schedule(item, deadline_ns);
		item->pending = true;
		item->unordered = false;
	} else if (random_below(&scene.random, 3) == 0) {
		check_int(tw_cancel(item->handle), TW_CANCEL_DONE);
		item->pending = false;
	} else {
		check_int(tw_reschedule_at(item->handle, deadline_ns), TW_RESCHEDULE_DONE);
		item->unordered = !scene.loop && !scene.in_callback;
	}
	item->deadline_ns = deadline_ns;
	item->passed = deadline_ns <= scene.fixture.now_ns;
	item->order = ++scene.order;
	scene.put_aside |= item->passed && scene.in_callback;
	/* In a loop, callbacks run on the owner, so they count as the same thread. */
	item->by_worker = !scene.loop && scene.in_callback;
}

static bool something_is_due(void)
{
	int64_t tick_ns = scene.fixture.tick_ns;

	for (size_t i = 0; i < scene.items; i++)
		if (scene.item[i].pending &&
		    (scene.item[i].deadline_ns / tick_ns + 1) * tick_ns <= scene.fixture.now_ns)
			return true;
	return false;
}

static void time_step(void)
{
	scene.fixture.now_ns +=
		random_magnitude(&scene.random, scene.reach_bits) * scene.fixture.tick_ns +
		(int64_t)random_below(&scene.random, (uint64_t)scene.fixture.tick_ns);
	check_int(tw_clock_set(scene.fixture.clock, scene.fixture.now_ns), 0);
}

/* Lets the engine work. Half of the polls have no budget. A worker thread may use the scene
 * until the flush has returned. */
static void worker_step(void)
{
	uint64_t budget;

	if (!scene.loop) {
		fixture_flush(&scene.fixture);
		check_true(!something_is_due());
		return;
	}
	budget = random_below(&scene.random, 2) * random_below(&scene.random, 300);
	scene.runs = 0;
	scene.put_aside = false;
	check_int(tw_engine_poll(scene.fixture.engine, budget), scene.runs);
	check_true(budget != 0 || scene.put_aside || !something_is_due());
}

static void random_step(void)
{
	uint64_t choice = random_below(&scene.random, 4);

	if (choice < 2)
		for (uint64_t i = random_below(&scene.random, scene.items); i > 0; i--)
			some_operation();
	else if (choice == 2)
		time_step();
	if (choice == 3 || !scene.loop)
		worker_step();
	if (something_is_due())
		check_true(tw_engine_next_due(scene.fixture.engine) <= scene.fixture.now_ns);
}

static void one_seed(uint64_t seed, uint64_t items, int steps)
{
	static const uint64_t ticks_ns[] = {1000, 7777, 1000000, 1000000000};
	struct tw_options options = fixture_options();

	memset(&scene, 0, sizeof(scene));
	scene.random.state = seed;
	scene.items = items;
	scene.reach_bits = 2 + (unsigned)random_below(&scene.random, 20);
	scene.loop = random_below(&scene.random, 2) == 0;
	options.flags = TW_ENGINE_ORDERED | (scene.loop ? TW_ENGINE_LOOP : 0);
	options.wheel = seed % 2 != 0 ? TW_WHEEL_HASHED : TW_WHEEL_HIERARCHICAL;
	if (options.wheel == TW_WHEEL_HASHED)
		options.slots = UINT32_C(1) << random_below(&scene.random, 13);
	options.tick_ns = ticks_ns[random_below(&scene.random, 4)];
	scene.grain_ns =
		random_below(&scene.random, 2) == 0
			? 1
			: 1 + (int64_t)options.tick_ns / (2 << random_below(&scene.random, 6));
	fixture_open(&scene.fixture, &options);
	worker_step();
	for (int step = 0; step < steps; step++)
		random_step();
	/* One turn must run all remaining timeouts. */
	scene.calm = true;
	scene.fixture.now_ns += (INT64_C(1) << 24) * scene.fixture.tick_ns;
	check_int(tw_clock_set(scene.fixture.clock, scene.fixture.now_ns), 0);
	if (scene.loop)
		check_true(tw_engine_poll(scene.fixture.engine, 0) >= 0);
	else
		fixture_flush(&scene.fixture);
	check_true(!something_is_due());
	fixture_close(&scene.fixture);
}

Test(ordered_random, random_timeouts_run_by_deadline)
{
	for (uint64_t seed = 1; seed <= slowed(SEEDS); seed++)
		one_seed(seed, TIMEOUTS, STEPS);
}

/*
 * Schedules so many timeouts that one step of the wheel has more of them than the sorted run can
 * hold (wheel/fine.h).
 */
Test(ordered_random, crowds_run_by_deadline)
{
	for (uint64_t seed = 1; seed <= slowed(SEEDS / 20); seed++)
		one_seed(seed, CROWD, STEPS / 10);
}
