/* SPDX-License-Identifier: MIT */
/*
 * Defects seen in other timer engines, with a test each. The names b14, b15 and so on are those of
 * the list in docs/internals/testing.md.
 *
 * The other defects of that list have their tests in these files: B1 in test_stop_threads and
 * race/, B2 and B3 in test_start and race/, B4 in test_start and test_start_system, B5, B6, B9 and
 * B13 in test_pending, B7 and B11 in test_stop_threads, B8 in test_dispatch, B10 in
 * test_start_system, B12 in test_limit_race, B20 in test_wall_clock, B21 in test_memory. Further
 * tests of defects: B15 in test_netty, B18 in test_backlog_real, B12 and B17 in tests/freeze.
 *
 * Seen to fail with these defects:
 * - b14: an ordered wheel does not sort;
 * - b15: a schedule is rejected when 2^20 timeouts are in ingress;
 * - b16: the worker sleeps only until the next tick, or for 25 ms at most;
 * - b17: cancel pushes a timeout to the cancel queue although it is still in ingress, so it is
 *   freed twice (tests/freeze/transfer.c tests the other half of the defect: the transfer makes a
 *   slot entry before the step to WHEELED);
 * - b18: the worker sleeps after a full batch, or transfers all entries before it expires any;
 * - b19: all timeouts that use a node have the same generation.
 */
#include "probe.h"

#include "random.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * Checks the order of runs. Defect B14: timeouts of one tick ran in the order in which they were
 * scheduled. They must run in the order of their deadlines.
 */
static void on_order(struct tw_handle self, void *arg)
{
	struct probe *probe = arg;
	struct tw_timeout timeout = {.size = sizeof(timeout)};

	check_int(tw_timeout_get(self, &timeout), 0);
	/* ran_at_ns holds the deadline of the previous run. */
	if (probe->ran_at_ns < timeout.deadline_ns)
		atomic_fetch_add(&probe->runs, 1);
	atomic_store(&probe->ran_at_ns, timeout.deadline_ns);
}

static const struct tw_kind order_kind = TW_KIND(on_order, NULL);
static const uint32_t wheels[] = {TW_WHEEL_HASHED, TW_WHEEL_HIERARCHICAL};

static void order_of_one_tick(uint32_t wheel, uint32_t flags, int64_t tick)
{
	static const int64_t delays_us[] = {300, 100, 200, 50, 999, 0, 301, 299};
	enum { COUNT = sizeof(delays_us) / sizeof(delays_us[0]) };
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct probe probe;

	options.wheel = wheel;
	options.flags = TW_ENGINE_ORDERED | flags;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	probe_init(&probe, fixture.engine);
	for (int i = 0; i < COUNT; i++)
		must_schedule(fixture.engine, tick * fixture.tick_ns + delays_us[i] * NS_PER_US,
			      &order_kind, &probe);
	/* A worker runs due timeouts at the end of their tick, so none may have run before. A loop
	 * runs them when it polls, also inside a tick. */
	if ((flags & TW_ENGINE_LOOP) == 0) {
		fixture_advance_to(&fixture, (tick + 1) * fixture.tick_ns - 1);
		check_int(probe.runs, 0);
	}
	fixture_advance_to(&fixture, (tick + 1) * fixture.tick_ns);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(probe.runs, COUNT);
	fixture_close(&fixture);
}

Test(defects, b14_inside_a_tick_by_deadline)
{
	static const int64_t ticks[] = {1, 63, 64, 5000};

	for (size_t i = 0; i < 2 * 2 * sizeof(ticks) / sizeof(ticks[0]); i++)
		order_of_one_tick(wheels[i % 2], i / 2 % 2 != 0 ? TW_ENGINE_LOOP : 0, ticks[i / 4]);
}

/* A thread, as the system reports it. The test of defect B16 uses it: an idle engine woke up at
 * each tick, or kept a core busy. */
struct task {
	char name[20];
	char state; /* the thread's state as the system reports it; S: it sleeps */
	long long sleeps;
};

static struct task task_read(const char *number)
{
	struct task task = {.sleeps = -1};
	char path[300], line[200];
	FILE *file;

	(void)snprintf(path, sizeof(path), "/proc/self/task/%s/status", number);
	file = fopen(path, "re");
	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		(void)sscanf(line, "Name: %19s", task.name);
		(void)sscanf(line, "State: %c", &task.state);
		(void)sscanf(line, "voluntary_ctxt_switches: %lld", &task.sleeps);
	}
	if (file != NULL)
		(void)fclose(file);
	return task;
}

static struct task task_of(const char *name)
{
	DIR *tasks = opendir("/proc/self/task");
	struct task task = {0};
	struct dirent *entry;

	cr_assert(tasks != NULL);
	while (strcmp(task.name, name) != 0 && (entry = readdir(tasks)) != NULL)
		task = task_read(entry->d_name);
	(void)closedir(tasks);
	return task;
}

static void stays_asleep(uint32_t wheel, uint64_t tick_ns, bool pending)
{
	static const char name[] = "b16-worker";
	struct tw_options options = fixture_options();
	struct tw_engine *engine;
	struct tw_stats before, after;
	atomic_int runs = 0;
	long long sleeps;

	options.wheel = wheel;
	options.tick_ns = tick_ns;
	options.slots = 4096;
	options.thread_name = name;
	engine = real_engine_open(&options);
	check_int(tw_engine_start(engine), 0);
	if (pending)
		must_schedule(engine, 60 * NS_PER_S, &count_kind, &runs);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	/* If the machine is busy, the worker takes longer to fall asleep. */
	for (int looks = 0; task_of(name).state != 'S' && looks < 10000; looks++)
		sleep_ns(NS_PER_MS);
	before = stats_of(engine);
	sleeps = task_of(name).sleeps;
	sleep_ns(50 * NS_PER_MS);
	after = stats_of(engine);
	check_int(after.turns - before.turns, 0);
	check_int(after.parks - before.parks, 0);
	check_at_least(sleeps, 1);
	check_int(task_of(name).sleeps - sleeps, 0);
	real_engine_close(engine);
}

Test(defects, b16_an_idle_engine_sleeps)
{
	static const uint64_t ticks_ns[] = {1000000, 10000, 1000};

	for (int i = 0; i < 3 * 2 * 2; i++)
		stays_asleep(wheels[i % 2], ticks_ns[i / 4], i / 2 % 2 != 0);
}

/* This is the second test of B15. The defect: a queue is full at 2^20 entries. */
Test(defects, b15_queue_is_not_full_at_two_to_the_20)
{
	struct tw_options options = fixture_options();
	const int count = (1 << 20) + 1000;
	struct fixture fixture;
	struct gate gate;
	atomic_int runs = 0;
	int i;

	options.check = TW_CHECK_NONE;
	fixture_open(&fixture, &options);
	gate_hold(&fixture, &gate);
	for (i = 0; i < count; i++)
		must_schedule(fixture.engine, 10 * NS_PER_MS, &count_kind, &runs);
	gate_open(&gate);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_int(runs, count);
	fixture_close(&fixture);
}

/*
 * A thread of the test of defect B17: a cancel and the transfer put the same node into one queue
 * twice, or a cancel unlinked a node while the transfer moved it.
 */
struct churn {
	struct tw_engine *engine;
	/* NULL except for the thread that moves the clock. */
	struct tw_clock *clock;
	pthread_t thread;
	uint64_t seed;
	int cancelled;
	int accepted;
};

static atomic_int churn_runs;

enum { CHURN = 100000, WINDOW = 64 };

static void *churn_main(void *arg)
{
	struct tw_handle window[WINDOW] = {{0}};
	struct churn *churn = arg;
	struct random random = {churn->seed};
	uint64_t place;
	int i;

	for (i = 0; i < CHURN; i++) {
		place = random_below(&random, WINDOW);
		if (window[place].node)
			churn->cancelled += tw_cancel(window[place]) == TW_CANCEL_DONE;
		churn->accepted += tw_schedule(churn->engine, (int64_t)(place % 3) * NS_PER_MS + 1,
					       &count_kind, &churn_runs, &window[place]) == 0;
		if (churn->clock && i % 16 == 0)
			tw_clock_set(churn->clock, i * 30 * NS_PER_US);
		/* Lets the worker catch up. Otherwise all timeouts would be cancelled before
		 * they are due. */
		if (i % 64 == 0)
			(void)tw_engine_flush(churn->engine, 10 * NS_PER_MS);
	}
	return NULL;
}

Test(defects, b17_cancel_against_transfer_and_expiry)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct churn churns[2];
	struct tw_stats stats;
	int i;

	options.slots = 16;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	for (i = 0; i < 2; i++) {
		churns[i] = (struct churn){.engine = fixture.engine, .seed = (uint64_t)i + 1};
		churns[i].clock = i == 0 ? fixture.clock : NULL;
		check_int(pthread_create(&churns[i].thread, NULL, churn_main, &churns[i]), 0);
	}
	for (i = 0; i < 2; i++)
		check_int(pthread_join(churns[i].thread, NULL), 0);
	fixture_advance_to(&fixture, CHURN * 40 * NS_PER_US);
	stats = stats_of(fixture.engine);
	check_int(churns[0].accepted + churns[1].accepted, 2 * CHURN);
	check_int(stats.cancelled, churns[0].cancelled + churns[1].cancelled);
	check_int(stats.expired, churn_runs);
	/* Some timeouts must have expired, and some must have been cancelled. */
	check_at_least(stats.expired, CHURN / 100);
	check_at_least(stats.cancelled, CHURN / 100);
	check_int(stats.cancelled + stats.expired, 2 * CHURN);
	fixture_close(&fixture);
}

Test(defects, b17_second_cancel_before_transfer_is_not_done)
{
	struct fixture fixture;
	struct tw_handle handles[100];
	struct gate gate;
	atomic_int runs = 0;
	int i;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	for (i = 0; i < 100; i++) {
		handles[i] = must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs);
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
		check_true(tw_cancel(handles[i]) != TW_CANCEL_DONE);
	}
	gate_open(&gate);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(runs, 0);
	check_int(stats_of(fixture.engine).cancelled, 100);
	/* If a node had been freed twice, it would serve two timeouts now, and one of them would
	 * not run. */
	for (i = 0; i < 1000; i++)
		must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(runs, 1000);
	fixture_close(&fixture);
}

/*
 * Defect B18, a backlog: a million timeouts of 1 ms at a tick of 100 ms. Those that were scheduled
 * before the first tick boundary must run at it, in virtual time. The size of a transfer batch
 * must not limit their number.
 */
Test(defects, b18_a_million_run_in_one_tick)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_stats stats;
	atomic_int runs = 0;
	int i;

	options.tick_ns = 100000000;
	options.slots = 512;
	options.check = TW_CHECK_NONE;
	fixture_open(&fixture, &options);
	for (i = 0; i < 1000000; i++)
		must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs);
	fixture_advance(&fixture, 100 * NS_PER_MS - 1);
	check_int(runs, 0);
	fixture_advance(&fixture, 1);
	check_int(runs, 1000000);
	stats = stats_of(fixture.engine);
	check_int(stats.expired, 1000000);
	check_at_most(stats.largest_transfer, TW_TRANSFER_BATCH_MAX);
	fixture_close(&fixture);
}

/*
 * In the next tests, the wheel has one due timeout, and many other timeouts are in ingress. The due
 * one must run after at most one batch, however many wait in ingress.
 */
struct due_one {
	struct tw_engine *engine;
	atomic_llong transferred;
	atomic_int runs;
};

static void on_due_one(struct tw_handle self, void *arg)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	struct due_one *own = arg;

	(void)self;
	tw_stats_get(own->engine, &stats);
	atomic_store(&own->transferred, (long long)stats.transferred);
	atomic_fetch_add(&own->runs, 1);
}

static const struct tw_kind due_one_kind = TW_KIND(on_due_one, NULL);

static void check_due_behind(uint32_t batch, int queued)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct due_one due = {.runs = 0};
	struct gate gate;
	atomic_int far_runs = 0;
	long long before;
	int i;

	options.check = TW_CHECK_NONE;
	options.transfer_batch = batch;
	fixture_open(&fixture, &options);
	due.engine = fixture.engine;
	must_schedule(fixture.engine, 10 * NS_PER_MS, &due_one_kind, &due);
	fixture_flush(&fixture);
	gate_hold(&fixture, &gate);
	before = (long long)stats_of(fixture.engine).transferred;
	for (i = 0; i < queued; i++)
		must_schedule(fixture.engine, 1000 * NS_PER_S, &count_kind, &far_runs);
	check_int(tw_clock_set(fixture.clock, 20 * NS_PER_MS), 0);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(due.runs, 1);
	check_at_most(due.transferred - before, batch);
	check_int(stats_of(fixture.engine).transferred, before + queued);
	check_at_most(stats_of(fixture.engine).largest_transfer, batch);
	check_at_least(stats_of(fixture.engine).transfers, queued / (int)batch);
	fixture_close(&fixture);
	check_int(fixture.back.count, queued);
}

Test(defects, b18_what_is_due_waits_for_one_batch_at_most)
{
	check_due_behind(TW_TRANSFER_BATCH_MAX, 250000);
}

Test(defects, b18_batch_option)
{
	check_due_behind(1000, 25000);
	check_due_behind(1, 300);
}

/* A test of defect B19: an id has no generation, so a stale handle cancels another timeout. */
Test(defects, b19_stale_handle_cancels_no_other_timeout)
{
	enum { OLD = 500 };
	struct tw_handle old[OLD];
	struct fixture fixture;
	atomic_int runs = 0;
	int round;
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < OLD; i++) {
		old[i] = must_schedule(fixture.engine, 1, &count_kind, &runs);
		if (i % 2)
			tw_cancel(old[i]);
	}
	fixture_advance(&fixture, NS_PER_MS);
	for (i = 0; i < OLD; i++)
		check_true(make_stale(&fixture, old[i]));
	runs = 0;
	for (i = 0; i < 20 * OLD; i++)
		must_schedule(fixture.engine, 5 * NS_PER_MS, &count_kind, &runs);
	for (round = 0; round < 2; round++) {
		for (i = 0; i < OLD; i++) {
			check_int(tw_cancel(old[i]), TW_CANCEL_STALE);
			check_int(tw_timeout_state(old[i]), -ESTALE);
		}
		fixture_flush(&fixture);
	}
	check_int(tw_engine_pending(fixture.engine), 20 * OLD);
	fixture_advance(&fixture, 6 * NS_PER_MS);
	check_int(runs, 20 * OLD);
	fixture_close(&fixture);
}
