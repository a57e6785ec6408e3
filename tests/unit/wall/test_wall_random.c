/* SPDX-License-Identifier: MIT */
/*
 * Timeouts at dates at random, in virtual time, compared with a list. The test schedules, cancels,
 * reschedules, lets time pass and steps the wall clock by up to ten years, in worker mode and in
 * loop mode, with each wheel, ordered or not.
 *
 * No callback may run while the wall clock is before its date. When the worker has finished its
 * work, no timeout whose date passed a tick ago may still wait. In loop mode no sleep may last
 * beyond a date: the next due time must not be later than the first date, by the present clocks. A
 * rescheduled timeout must follow only its deadline. Each timeout must run once, or be cancelled.
 *
 * Seen to fail with these defects: the worker does not check the wall clock before a run; the list
 * of dates loses an entry when it drops another; a rescheduled timeout is treated as one with a
 * date.
 */
#include "random.h"
#include "slowdown.h"
#include "wall_scene.h"

#include <errno.h>

enum { SEEDS = 160, ITEMS = 120, STEPS = 250, VARIANTS = 8 };

/* Bits of a variant. */
enum { LOOP = 1, HIERARCHICAL = 2, ORDERED = 4 };

struct item {
	struct tw_handle handle;
	int64_t date_ns;
	int64_t deadline_ns; /* its deadline by the engine's clock, if it was rescheduled */
	bool rescheduled;
	bool pending;
	atomic_int runs;
};

static struct {
	struct wall_scene scene;
	struct random random;
	struct item item[ITEMS];
	/* Copies of the clocks, for callbacks on the worker. */
	_Atomic int64_t wall_ns, now_ns;
	atomic_int early;
	bool loop;
} test;

static void on_date(struct tw_handle self, void *arg)
{
	struct item *item = arg;

	(void)self;
	if (item->rescheduled ? test.now_ns < item->deadline_ns : test.wall_ns < item->date_ns)
		atomic_fetch_add(&test.early, 1);
	atomic_fetch_add(&item->runs, 1);
}

static const struct tw_kind date_kind = TW_KIND(on_date, NULL);

/* Lets the worker do everything that it can do now. */
static void settle(void)
{
	struct tw_engine *engine = test.scene.fixture.engine;

	if (!test.loop) {
		fixture_flush(&test.scene.fixture);
		return;
	}
	do
		check_at_least(tw_engine_poll(engine, 0), 0);
	while (tw_engine_next_due(engine) <= test.now_ns);
}

static int64_t any_distance_ns(void)
{
	static const int64_t most[] = {2 * NS_PER_MS, 100 * NS_PER_MS, NS_PER_S,
				       HOUR_NS,       YEAR_NS,         10 * YEAR_NS};
	int64_t limit_ns = most[random_below(&test.random, sizeof most / sizeof most[0])];

	return (int64_t)random_below(&test.random, (uint64_t)limit_ns);
}

static int64_t any_step_ns(void)
{
	return random_below(&test.random, 2) != 0 ? any_distance_ns() : -any_distance_ns();
}

static void time_pass(int64_t passed_ns)
{
	struct wall_scene *scene = &test.scene;

	/* The copies are set first, because the clock's move may run callbacks that read them. */
	test.now_ns += passed_ns;
	test.wall_ns += passed_ns;
	scene->fixture.now_ns += passed_ns;
	scene->wall_ns += passed_ns;
	check_int(tw_clock_set(scene->fixture.clock, scene->fixture.now_ns), 0);
	settle();
}

/* Steps the wall clock. A step forward may make timeouts run at once, and their callbacks read
 * test.wall_ns, so the test sets it first. A step back makes no timeout run. */
static void some_step(void)
{
	struct wall_scene *scene = &test.scene;
	int64_t wall_ns = scene->wall_ns + any_step_ns();

	if (wall_ns > DATE_NS + 150 * YEAR_NS || wall_ns < 0)
		wall_ns = DATE_NS;
	if (wall_ns > scene->wall_ns)
		test.wall_ns = wall_ns;
	check_int(tw_clock_set_wall(scene->fixture.clock, wall_ns), 0);
	test.wall_ns = scene->wall_ns = wall_ns;
	settle();
}

static void check_item(struct item *item)
{
	int64_t tick_ns = test.scene.fixture.tick_ns;
	bool over = item->rescheduled ? item->deadline_ns + tick_ns <= test.now_ns
				      : item->date_ns + tick_ns <= test.scene.wall_ns;

	if (!item->pending)
		return;
	check_at_most(item->runs, 1);
	if (over)
		check_int(item->runs, 1);
	if (item->runs == 1)
		item->pending = false;
}

/* Checks that a loop which sleeps until the next due time does not sleep beyond a date. */
static void check_sleep(void)
{
	int64_t due_ns = test.loop ? tw_engine_next_due(test.scene.fixture.engine) : 0;
	int64_t ahead_ns = test.scene.wall_ns - test.now_ns;

	for (int i = 0; i < ITEMS; i++)
		if (test.item[i].pending && !test.item[i].rescheduled)
			check_at_most(due_ns, test.item[i].date_ns - ahead_ns +
						      2 * test.scene.fixture.tick_ns);
}

static void check_all(void)
{
	check_int(test.early, 0);
	for (int i = 0; i < ITEMS; i++)
		check_item(&test.item[i]);
	check_sleep();
}

static void item_schedule(struct item *item)
{
	item->date_ns = test.scene.wall_ns + any_step_ns() / 4 + any_distance_ns();
	item->rescheduled = false;
	atomic_store(&item->runs, 0);
	item->handle = must_wall(&test.scene, item->date_ns, &date_kind, item);
	item->pending = true;
}

/* Cancels or reschedules. All due timeouts have run before, so the outcome is certain. */
static void item_change(struct item *item)
{
	if (random_below(&test.random, 3) != 0) {
		check_int(tw_cancel(item->handle), TW_CANCEL_DONE);
		item->pending = false;
		return;
	}
	item->deadline_ns = test.now_ns + 1 + any_distance_ns();
	item->rescheduled = true;
	check_int(tw_reschedule_at(item->handle, item->deadline_ns), TW_RESCHEDULE_DONE);
}

static void some_operation(void)
{
	struct item *item = &test.item[random_below(&test.random, ITEMS)];

	switch (random_below(&test.random, 8)) {
	case 0:
		time_pass(any_distance_ns() / 8);
		break;
	case 1:
		some_step();
		break;
	case 2:
		some_step();
		time_pass(any_distance_ns() / 8);
		break;
	default:
		settle();
		check_all();
		if (item->pending)
			item_change(item);
		else
			item_schedule(item);
		return;
	}
	check_all();
}

static void scene_run(uint64_t seed)
{
	struct tw_options options = fixture_options();
	int variant = (int)(seed % VARIANTS);

	test.random.state = seed;
	test.loop = (variant & LOOP) != 0;
	options.wheel = (variant & HIERARCHICAL) != 0 ? TW_WHEEL_HIERARCHICAL : TW_WHEEL_HASHED;
	options.flags = (test.loop ? TW_ENGINE_LOOP : 0) |
			((variant & ORDERED) != 0 ? TW_ENGINE_ORDERED : 0);
	fixture_open_at(&test.scene.fixture, &options, 3 * HOUR_NS);
	test.scene.wall_ns = DATE_NS + 100 * YEAR_NS;
	check_int(tw_clock_set_wall(test.scene.fixture.clock, test.scene.wall_ns), 0);
	test.wall_ns = test.scene.wall_ns;
	test.now_ns = test.scene.fixture.now_ns;
	for (int i = 0; i < STEPS; i++)
		some_operation();
	for (int i = 0; i < ITEMS; i++) {
		if (test.item[i].pending)
			check_at_least(tw_cancel(test.item[i].handle), 0);
		test.item[i].pending = false;
	}
	fixture_close(&test.scene.fixture);
}

Test(wall_random, no_date_is_early_and_none_is_forgotten)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed += slowdown())
		scene_run(seed);
}
