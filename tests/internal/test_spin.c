/* SPDX-License-Identifier: MIT */
/*
 * A worker that spins before a deadline. The test's clock stands still during the spin, so time
 * does not end it. If the spin ends, the worker has seen another event.
 *
 * Seen to fail with these defects: the spin does not read the park word, or does not read the
 * clock; the worker does not spin; it spins although nothing is due.
 */
#include "check.h"
#include "clock/clock.h"

#include <stdatomic.h>
#include <tickwheel.h>
#include <time.h>

#define TICK_NS NS_PER_MS
#define SPIN_NS (NS_PER_MS / 2)
#define PATIENCE_NS (20 * NS_PER_S)

static _Atomic int64_t now_ns;
static _Atomic int64_t reads;

static int64_t own_now_ns(struct tw_clock *clock)
{
	(void)clock;
	atomic_fetch_add(&reads, 1);
	return atomic_load(&now_ns);
}

/* Returns a time that is never reached, so that a sleep does not end because of time either. */
static int64_t own_futex_until_ns(struct tw_clock *clock, int64_t until_ns)
{
	(void)clock;
	(void)until_ns;
	return INT64_MAX;
}

static const struct twi_clock_ops own_ops = {
	.now_ns = own_now_ns,
	.futex_until_ns = own_futex_until_ns,
};

static struct tw_clock own_clock = {.ops = &own_ops};

static struct tw_engine *engine_open(void)
{
	struct tw_engine *engine = NULL;
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	options.clock = &own_clock;
	options.spin_ns = SPIN_NS;
	check_int(tw_engine_create(&options, &engine), 0);
	return engine;
}

static void count_run(struct tw_handle self, void *argument)
{
	(void)self;
	atomic_fetch_add((atomic_int *)argument, 1);
}

static const struct tw_kind count_kind = TW_KIND(count_run, NULL);

static void nap(void)
{
	const struct timespec ms = {.tv_nsec = NS_PER_MS};

	(void)nanosleep(&ms, NULL);
}

/* Waits until the worker has read its clock a thousand times more. */
static void spinning_await(void)
{
	int64_t before = atomic_load(&reads);

	for (int i = 0; i < 20000 && atomic_load(&reads) < before + 1000; i++)
		nap();
	check_at_least(atomic_load(&reads), before + 1000);
}

static void runs_await(atomic_int *runs, int count)
{
	for (int i = 0; i < 20000 && atomic_load(runs) < count; i++)
		nap();
	check_int(atomic_load(runs), count);
}

static uint64_t parks(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	check_int(tw_stats_get(engine, &stats), 0);
	return stats.parks;
}

static uint64_t turns(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof(stats)};

	check_int(tw_stats_get(engine, &stats), 0);
	return stats.turns;
}

static struct tw_engine *spinner_open(atomic_int *runs)
{
	struct tw_engine *engine = engine_open();
	uint64_t turns_before;

	/* The timeout is due at 6 ms, and the spin begins half a millisecond before. */
	atomic_store(&now_ns, 6 * TICK_NS - 1);
	check_int(tw_schedule_at(engine, 5 * TICK_NS + 1, &count_kind, runs, NULL), 0);
	spinning_await();
	turns_before = turns(engine);
	spinning_await();
	check_int(turns(engine), turns_before);
	check_int(atomic_load(runs), 0);
	return engine;
}

static void engine_close(struct tw_engine *engine)
{
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(spin, ends_with_the_deadline)
{
	atomic_int runs = 0;
	struct tw_engine *engine = spinner_open(&runs);
	uint64_t parks_before = parks(engine);

	/* The worker must not park during the spin, although it may have parked before the
	 * schedule. */
	spinning_await();
	check_int(parks(engine), parks_before);
	atomic_store(&now_ns, 6 * TICK_NS);
	runs_await(&runs, 1);
	engine_close(engine);
}

Test(spin, is_ended_by_flush)
{
	atomic_int runs = 0;
	struct tw_engine *engine = spinner_open(&runs);

	for (int i = 0; i < 10; i++)
		check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_int(atomic_load(&runs), 0);
	engine_close(engine);
}

Test(spin, is_ended_by_stop)
{
	atomic_int runs = 0;

	engine_close(spinner_open(&runs));
	check_int(atomic_load(&runs), 0);
}

Test(spin, is_ended_by_an_earlier_deadline)
{
	atomic_int runs = 0;
	atomic_int earlier = 0;
	struct tw_engine *engine = spinner_open(&runs);

	check_int(tw_schedule_at(engine, TICK_NS, &count_kind, &earlier, NULL), 0);
	runs_await(&earlier, 1);
	check_int(atomic_load(&runs), 0);
	engine_close(engine);
}

/* Before the spin begins, or if nothing is due, the worker must sleep. It must not read the
 * clock then. */
Test(spin, does_not_begin_before_its_time)
{
	atomic_int runs = 0;
	struct tw_engine *engine = engine_open();
	int64_t before;

	atomic_store(&now_ns, 5 * TICK_NS);
	for (int i = 0; i < 2; i++) {
		check_int(tw_schedule_at(engine, i == 0 ? TW_NEVER : 5 * TICK_NS + 1, &count_kind,
					 &runs, NULL),
			  0);
		check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
		for (int n = 0; n < 100; n++)
			nap();
		before = atomic_load(&reads);
		for (int n = 0; n < 100; n++)
			nap();
		check_int(atomic_load(&reads), before);
	}
	check_at_least(parks(engine), 1);
	engine_close(engine);
}

/* With a virtual clock the worker must not spin. The thread that moves the clock wakes it, so a
 * spin would gain nothing. */
Test(spin, does_not_spin_with_a_virtual_clock)
{
	struct tw_engine *engine = NULL;
	struct tw_options options;
	atomic_int runs = 0;

	check_int(tw_options_init(&options, sizeof(options)), 0);
	check_int(tw_clock_create_virtual(0, &options.clock), 0);
	options.spin_ns = SPIN_NS;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_clock_set(options.clock, TICK_NS - 1), 0);
	check_int(tw_schedule(engine, 1, &count_kind, &runs, NULL), 0);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	for (int i = 0; i < 1000 && parks(engine) == 0; i++)
		nap();
	check_at_least(parks(engine), 1);
	check_int(tw_clock_set(options.clock, 8 * TICK_NS), 0);
	runs_await(&runs, 1);
	engine_close(engine);
	check_int(tw_clock_destroy(options.clock), 0);
}
