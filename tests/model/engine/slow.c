/* SPDX-License-Identifier: MIT */
/*
 * Reports of slow callbacks: one thread runs callbacks one after the other, and other threads watch
 * it (E65). Each slow run must be reported once and counted once. A report must describe one run
 * only. A quick run must never be reported.
 *
 * Seen to fail with these defects:
 * - slot_begin() stores `state` relaxed, or twi_watch_look() loads it relaxed;
 * - slot_end() does not check whether the run was already reported;
 * - slot_end() does not give the next run a new number;
 * - slot_claim() marks the run as reported by a load and a store instead of a swap.
 *
 * The order in which the fields are accessed does not matter here, because a swap reads the newest
 * store.
 */
#include "expiry/slow.h"
#include "worker/role.h"
#include "world.h"

#define SLOW_NS INT64_C(1000)

enum { RUNS = 3 };

/*
 * Counts the reports of each run. Runs have the numbers 1, 2 and 3; generation, argument and
 * callback differ for each.
 */
static unsigned told[RUNS + 1];

static void on_one(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_two(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_three(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kinds[RUNS + 1] = {
	{0}, TW_KIND(on_one, NULL), TW_KIND(on_two, NULL), TW_KIND(on_three, NULL)};

/* Returns the duration of a run. The second run is quick. */
static int64_t run_ns(uint64_t number)
{
	return number == 2 ? SLOW_NS : SLOW_NS * 10 * (int64_t)number;
}

static void hook(void *context, const struct tw_slow *slow)
{
	uint64_t number = slow->handle.generation;

	(void)context;
	MODEL_CHECK(number >= 1 && number <= RUNS && number != 2);
	MODEL_CHECK(slow->handle.node == &told[number] && slow->arg == &kinds[number]);
	MODEL_CHECK(slow->callback == kinds[number].callback);
	MODEL_CHECK(slow->run_ns == run_ns(number));
	/* Only one thread may report a run. If two threads did, this increment would be a race. */
	told[number]++;
}

static void open_watched(void)
{
	struct tw_options options = world_options();

	options.slow_ns = (uint64_t)SLOW_NS;
	options.on_slow = hook;
	world_open(&options);
	world_threads(4, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
}

static void one_run(uint64_t number)
{
	struct twi_run run = {
		.worker = world.worker,
		.thread = twi_thread(),
		.handle = {.node = &told[number], .generation = number},
		.kind = &kinds[number],
		.arg = (void *)(uintptr_t)&kinds[number],
	};

	twi_watch_begin(&run, WORLD_NOW_NS - run_ns(number));
	MODEL_CHECK((run.marks & TWI_RUN_TIMED) != 0);
	(void)twi_watch_end(&run, twi_clock_now_ns(run.worker->clock));
	/*
	 * At this point the run has been reported and counted, or the reporting thread is about to
	 * count it.
	 */
}

static void run_two(void)
{
	one_run(1);
	one_run(2);
}

static void run_both_slow(void)
{
	one_run(1);
	one_run(3);
}

static void watch(void)
{
	int count = tw_engine_watch(world.engine);

	MODEL_CHECK(count == 0 || count == 1);
}

static void claim(void)
{
	struct twi_report report;

	if (twi_watch_claim(world.worker, &report))
		twi_report_deliver(&report);
}

static void closed(uint64_t slow)
{
	MODEL_CHECK(tw_engine_watch(world.engine) == 0);
	MODEL_CHECK(twi_watch_count(world.worker) == slow);
	world_close();
}

static void first_told(void)
{
	MODEL_CHECK(told[1] == 1 && told[2] == 0 && told[3] == 0);
	closed(1);
}

static void both_told(void)
{
	MODEL_CHECK(told[1] == 1 && told[2] == 0 && told[3] == 1);
	closed(2);
}

MODEL_HARNESS(slow_watch,
	      .proves = "a report describes one run, and each slow run is reported once",
	      .setup = open_watched, .thread = {run_both_slow, watch}, .finish = both_told,
	      .preemptions = 2, .weak = 2, .random_runs = 4000);

MODEL_HARNESS(slow_two_watch, .proves = "only one of two watching threads reports a run",
	      .setup = open_watched, .thread = {run_two, watch, claim}, .finish = first_told,
	      .preemptions = 2, .weak = 1, .random_runs = 4000);
