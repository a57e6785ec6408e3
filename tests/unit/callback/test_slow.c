/* SPDX-License-Identifier: MIT */
/*
 * Slow runs: which thread notices and reports them, and when. Each slow run must be reported and
 * counted exactly once.
 *
 * Seen to fail with these defects: a run is reported a second time by the next thread that checks,
 * or at its end; a run that takes exactly the threshold counts as slow; a slow finaliser counts for
 * the next run; a run inside another one is reported; a slow run is not counted if there is no
 * hook.
 */
#include "slow_scene.h"

Test(slow, at_the_threshold_is_not_slow)
{
	struct work work = {.run_ns = SLOW_NS};
	struct fixture fixture;

	slow_open(&fixture, NULL);
	work_do(&fixture, &work);
	check_int(told.count, 0);
	check_int(stats_of(fixture.engine).slow, 0);
	fixture_close(&fixture);
}

Test(slow, end_of_an_unwatched_slow_run_reports_it)
{
	struct work work = {.run_ns = SLOW_NS + 1};
	struct fixture fixture;

	slow_open(&fixture, NULL);
	work_do(&fixture, &work);
	check_told(1, 0, SLOW_NS + 1, &work);
	check_true(same_handle(told.last.handle, work.self));
	check_true(told.last.callback == on_work);
	check_int(stats_of(fixture.engine).slow, 1);
	check_int(told.count, 1);
	fixture_close(&fixture);
}

Test(slow, without_a_hook_it_is_counted)
{
	struct tw_options options = slow_options(NULL);
	struct work work = {.run_ns = SLOW_NS + 1};
	struct fixture fixture;

	fixture_open(&fixture, &options);
	work_do(&fixture, &work);
	check_int(stats_of(fixture.engine).slow, 1);
	check_int(tw_engine_watch(fixture.engine), 0);
	fixture_close(&fixture);
}

/* The finaliser's time belongs to its run. The next run begins after it. */
Test(slow, slow_finaliser_belongs_to_its_run)
{
	struct work work = {.end_ns = SLOW_NS + 1}, next = {.run_ns = SLOW_NS};
	struct fixture fixture;

	slow_open(&fixture, NULL);
	next.fixture = &fixture;
	must_schedule(fixture.engine, 1, &work_kind, &next);
	work_do(&fixture, &work);
	check_int(next.runs, 1);
	check_told(1, 0, SLOW_NS + 1, &work);
	fixture_close(&fixture);
}

/* Holds the worker inside a callback for longer than the threshold. */
static struct tw_handle slow_hold(struct fixture *fixture, struct gate *gate)
{
	struct tw_handle handle;

	slow_open(fixture, NULL);
	handle = gate_hold(fixture, gate);
	check_int(tw_engine_watch(fixture->engine), 0);
	pass(fixture, SLOW_NS);
	check_int(tw_engine_watch(fixture->engine), 0);
	pass(fixture, 1);
	check_int(told.count, 0);
	return handle;
}

static void slow_release(struct fixture *fixture, struct gate *gate)
{
	gate_open(gate);
	fixture_flush(fixture);
	check_int(stats_of(fixture->engine).slow, 1);
	check_int(tw_engine_watch(fixture->engine), 0);
	check_int(told.count, 1);
	fixture_close(fixture);
}

Test(slow, a_watch_tells_while_it_runs)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct gate gate;

	handle = slow_hold(&fixture, &gate);
	check_int(tw_engine_watch(fixture.engine), 1);
	check_told(1, 1, SLOW_NS + 1, &gate);
	check_true(same_handle(told.last.handle, handle));
	check_true(told.last.callback == gate_kind.callback);
	check_true(pthread_equal(told.thread, pthread_self()));
	/* The run is still too long, but must not be reported again. */
	pass(&fixture, NS_PER_S);
	check_int(tw_engine_watch(fixture.engine), 1);
	check_int(told.count, 1);
	slow_release(&fixture, &gate);
}

Test(slow, statistics_tell_while_it_runs)
{
	struct fixture fixture;
	struct gate gate;

	slow_hold(&fixture, &gate);
	check_int(stats_of(fixture.engine).slow, 1);
	check_told(1, 1, SLOW_NS + 1, &gate);
	slow_release(&fixture, &gate);
}

/*
 * In the next test, a producer checks for slow runs at the end of each unit of 64 schedules. The
 * hook may schedule, too.
 */
static struct tw_engine *hook_engine;
static struct tw_handle hook_handle;

static void scheduling_hook(void *context, const struct tw_slow *slow)
{
	slow_hook(context, slow);
	for (int i = 0; i < 100; i++)
		if (tw_schedule(hook_engine, NS_PER_S, &count_kind, context, &hook_handle) != 0)
			atomic_fetch_add(&told.count, 100);
}

Test(slow, a_schedule_tells_while_it_runs)
{
	struct tw_options options = slow_options(scheduling_hook);
	struct tw_handle handle = {0};
	atomic_int runs = 0, unused = 0;
	struct fixture fixture;
	struct gate gate;
	int calls = 0;

	options.slow_context = &unused;
	fixture_open(&fixture, &options);
	hook_engine = fixture.engine;
	gate_hold(&fixture, &gate);
	pass(&fixture, SLOW_NS + 1);
	for (; calls < 64 && told.count == 0; calls++)
		handle = must_schedule(fixture.engine, NS_PER_S, &count_kind, &runs);
	check_told(1, 1, SLOW_NS + 1, &gate);
	check_true(pthread_equal(told.thread, pthread_self()));
	check_true(!same_handle(handle, hook_handle));
	check_int(tw_engine_pending(fixture.engine), calls + 100);
	slow_release(&fixture, &gate);
}

Test(slow, a_periodic_schedule_tells_while_it_runs)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_S);
	atomic_int runs = 0;
	struct fixture fixture;
	struct gate gate;

	slow_hold(&fixture, &gate);
	for (int calls = 0; calls < 64 && told.count == 0; calls++)
		check_int(tw_schedule_periodic(fixture.engine, &period, &count_kind, &runs, NULL),
			  0);
	check_told(1, 1, SLOW_NS + 1, &gate);
	slow_release(&fixture, &gate);
}

Test(slow, a_batch_tells_while_it_runs)
{
	atomic_int runs = 0;
	struct tw_item items[64];
	struct fixture fixture;
	struct gate gate;

	for (int i = 0; i < 64; i++)
		items[i] = (struct tw_item){NS_PER_S, &count_kind, &runs};
	slow_hold(&fixture, &gate);
	check_int(tw_schedule_many(fixture.engine, items, 64, NULL, NULL), 64);
	check_told(1, 1, SLOW_NS + 1, &gate);
	check_true(pthread_equal(told.thread, pthread_self()));
	slow_release(&fixture, &gate);
}

Test(slow, each_run_of_a_chain_counts_on_its_own)
{
	struct tw_period period = TW_PERIOD_DELAY(NS_PER_MS);
	struct work work = {.run_ns = SLOW_NS + 1};
	struct fixture fixture;

	slow_open(&fixture, NULL);
	work.fixture = &fixture;
	period.runs = 3;
	check_int(tw_schedule_periodic(fixture.engine, &period, &work_kind, &work, NULL), 0);
	fixture_flush(&fixture);
	for (int run = 1; run <= 3; run++) {
		check_int(tw_clock_set(fixture.clock, fixture.now_ns += 2 * NS_PER_MS), 0);
		fixture_flush(&fixture);
		check_int(work.runs, run);
		check_told(run, 0, SLOW_NS + 1, &work);
	}
	check_int(stats_of(fixture.engine).slow, 3);
	fixture_close(&fixture);
}

static void no_late(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		    int64_t late_by_ns)
{
	(void)context;
	(void)kind;
	(void)late_by_ns;
	on_work(self, arg);
}

/* The time of the late hook counts for the run. A late run is not necessarily slow. */
Test(slow, time_in_the_late_hook_counts)
{
	struct tw_options options = slow_options(slow_hook);
	struct work work = {.run_ns = SLOW_NS + 1}, quick = {.run_ns = 0};
	struct fixture fixture;

	options.late_ns = (uint64_t)NS_PER_MS;
	options.on_late = no_late;
	fixture_open(&fixture, &options);
	work.fixture = quick.fixture = &fixture;
	must_schedule_at(fixture.engine, 0, &work_kind, &work);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns = NS_PER_S), 0);
	fixture_flush(&fixture);
	check_told(1, 0, SLOW_NS + 1, &work);
	must_schedule_at(fixture.engine, 0, &work_kind, &quick);
	fixture_flush(&fixture);
	check_int(quick.runs, 1);
	check_int(stats_of(fixture.engine).late, 2);
	check_int(stats_of(fixture.engine).slow, 1);
	fixture_close(&fixture);
}

/* Holds a run in an executor for longer than the threshold. */
static pthread_t executor_hold(struct fixture *fixture, struct gate *gate)
{
	pthread_t thread;

	taken.count = 0;
	slow_open(fixture, take);
	gate_init(gate);
	must_schedule(fixture->engine, 1, &gate_kind, gate);
	fixture_advance(fixture, NS_PER_MS);
	check_int(taken.count, 1);
	check_int(pthread_create(&thread, NULL, run_due, &taken.due[0]), 0);
	gate_await(gate);
	pass(fixture, SLOW_NS + 1);
	return thread;
}

static void executor_release(struct fixture *fixture, struct gate *gate, pthread_t thread)
{
	gate_open(gate);
	check_int(pthread_join(thread, NULL), 0);
	slow_release(fixture, gate);
}

Test(slow, a_watch_tells_of_an_executor)
{
	struct fixture fixture;
	struct gate gate;
	pthread_t thread = executor_hold(&fixture, &gate);

	check_int(told.count, 0);
	check_int(tw_engine_watch(fixture.engine), 1);
	check_told(1, 1, SLOW_NS + 1, &gate);
	executor_release(&fixture, &gate, thread);
}

Test(slow, the_worker_tells_when_it_hands_over)
{
	struct work work = {.run_ns = 0};
	struct fixture fixture;
	struct gate gate;
	pthread_t thread = executor_hold(&fixture, &gate);

	work.fixture = &fixture;
	must_schedule_at(fixture.engine, 0, &work_kind, &work);
	fixture_flush(&fixture);
	check_int(taken.count, 2);
	check_told(1, 1, SLOW_NS + 1, &gate);
	check_true(!pthread_equal(told.thread, pthread_self()));
	check_int(tw_due_run(&taken.due[1]), 0);
	executor_release(&fixture, &gate, thread);
}

Test(slow, a_run_in_an_executor_looks_first)
{
	struct work work = {.run_ns = 0};
	struct fixture fixture;
	struct gate gate;
	pthread_t thread;

	/* Both runs are handed to the executor before the first one is slow. */
	taken.count = 0;
	slow_open(&fixture, take);
	gate_init(&gate);
	work.fixture = &fixture;
	must_schedule(fixture.engine, 1, &gate_kind, &gate);
	must_schedule(fixture.engine, 1, &work_kind, &work);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(taken.count, 2);
	check_int(pthread_create(&thread, NULL, run_due,
				 &taken.due[taken.due[0].arg == &gate ? 0 : 1]),
		  0);
	gate_await(&gate);
	pass(&fixture, SLOW_NS + 1);
	check_int(tw_due_run(&taken.due[taken.due[0].arg == &gate ? 1 : 0]), 0);
	check_told(1, 1, SLOW_NS + 1, &gate);
	check_true(pthread_equal(told.thread, pthread_self()));
	executor_release(&fixture, &gate, thread);
}

/*
 * Runs another timeout inside its own run, on the same thread. The inner run's time must count for
 * the outer run.
 */
static void on_outer(struct tw_handle self, void *arg)
{
	struct work *work = arg;

	on_work(self, arg);
	for (int i = 0; i < taken.count; i++)
		if (taken.due[i].arg != work)
			(void)tw_due_run(&taken.due[i]);
}

static const struct tw_kind outer_kind = TW_KIND(on_outer, NULL);

Test(slow, a_run_inside_another)
{
	struct work outer = {0}, inner = {.run_ns = SLOW_NS + 1};
	struct fixture fixture;
	int at;

	taken.count = 0;
	slow_open(&fixture, take);
	outer.fixture = inner.fixture = &fixture;
	must_schedule(fixture.engine, 1, &outer_kind, &outer);
	must_schedule(fixture.engine, 1, &work_kind, &inner);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(taken.count, 2);
	at = taken.due[0].arg == &outer ? 0 : 1;
	check_int(tw_due_run(&taken.due[at]), 0);
	check_int(inner.runs, 1);
	check_told(1, 0, SLOW_NS + 1, &outer);
	check_int(stats_of(fixture.engine).slow, 1);
	fixture_close(&fixture);
}

/*
 * More threads than near lanes. Only a thread with a near lane has a slot, which other threads
 * check for slow runs. So the slow run of any other thread is noticed only when the run ends.
 */
enum { CROWD = 70 };

static void *crowd_main(void *arg)
{
	struct gate *gate = arg;

	(void)tw_thread_attach();
	gate_kind.callback((struct tw_handle){0}, gate);
	return NULL;
}

Test(slow, a_thread_without_a_lane_is_noticed_at_the_end)
{
	static struct gate crowd_gate[CROWD];
	struct work work = {.run_ns = SLOW_NS + 1};
	pthread_t crowd[CROWD], thread;
	struct fixture fixture;

	for (int i = 0; i < CROWD; i++) {
		gate_init(&crowd_gate[i]);
		check_int(pthread_create(&crowd[i], NULL, crowd_main, &crowd_gate[i]), 0);
		gate_await(&crowd_gate[i]);
	}
	taken.count = 0;
	slow_open(&fixture, take);
	work.fixture = &fixture;
	must_schedule(fixture.engine, 1, &work_kind, &work);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(pthread_create(&thread, NULL, run_due, &taken.due[0]), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_told(1, 0, SLOW_NS + 1, &work);
	check_int(stats_of(fixture.engine).slow, 1);
	for (int i = 0; i < CROWD; i++) {
		gate_open(&crowd_gate[i]);
		check_int(pthread_join(crowd[i], NULL), 0);
	}
	fixture_close(&fixture);
}

static void on_exit_slowly(struct tw_handle self, void *arg)
{
	on_work(self, arg);
	pthread_exit(NULL);
}

static const struct tw_kind exit_kind = TW_KIND(on_exit_slowly, NULL);

static void *exit_main(void *due)
{
	(void)tw_due_run(due);
	return NULL;
}

/* If a callback ends its thread, its run must count as ended. */
Test(slow, run_that_ends_its_thread_is_reported_as_ended)
{
	struct work work = {.run_ns = SLOW_NS + 1};
	struct fixture fixture;
	pthread_t thread;

	taken.count = 0;
	slow_open(&fixture, take);
	work.fixture = &fixture;
	must_schedule(fixture.engine, 1, &exit_kind, &work);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(pthread_create(&thread, NULL, exit_main, &taken.due[0]), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_told(1, 0, SLOW_NS + 1, &work);
	check_int(tw_engine_watch(fixture.engine), 0);
	fixture_close(&fixture);
}

/* In loop mode, the owner runs the callbacks. */
Test(slow, slow_run_in_a_loop_is_reported)
{
	struct tw_options options = slow_options(slow_hook);
	struct work work = {.run_ns = SLOW_NS + 1};
	struct fixture fixture;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	work.fixture = &fixture;
	check_int(tw_engine_start(fixture.engine), 0);
	must_schedule(fixture.engine, 1, &work_kind, &work);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(work.runs, 1);
	check_told(1, 0, SLOW_NS + 1, &work);
	fixture_close(&fixture);
}

Test(slow, bad_options_are_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;

	options.on_slow = slow_hook;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.slow_ns = (uint64_t)INT64_MAX + 1;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.slow_ns = INT64_MAX;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_watch(engine), 0);
	check_int(tw_engine_destroy(engine), 0);
	options.slow_ns = 1;
	options.on_slow = NULL;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(slow, watch_without_a_threshold_is_rejected)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_watch(NULL), -EINVAL);
	check_int(tw_engine_watch(fixture.engine), -EINVAL);
	check_int(stats_of(fixture.engine).slow, 0);
	fixture_close(&fixture);
}
