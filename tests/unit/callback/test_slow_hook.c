/* SPDX-License-Identifier: MIT */
/*
 * The hook for slow runs: where its own time counts, which calls it may make, and which thread
 * calls it in loop mode and in a forked child.
 *
 * Seen to fail with these defects: the hook's time counts for the later runs of the batch; an
 * executor calls the hook before its own run is registered, so that a stop in the hook waits for
 * itself; a child's engine has no watch, or reports its parent's runs.
 */
#include "heir.h"
#include "slow_scene.h"

static struct fixture fixture;

/* Takes long, like a hook that writes a log to a slow disk. */
static void slow_slow_hook(void *context, const struct tw_slow *slow)
{
	slow_hook(context, slow);
	pass(&fixture, 2 * SLOW_NS);
}

Test(slow_hook, its_time_is_nobodys)
{
	struct tw_options options = slow_options(slow_slow_hook);
	struct work slow = {.run_ns = SLOW_NS + 1}, quick[20];

	fixture_open(&fixture, &options);
	slow.fixture = &fixture;
	for (int i = 0; i < 20; i++) {
		quick[i] = (struct work){.fixture = &fixture, .run_ns = 1};
		if (i == 10)
			must_schedule(fixture.engine, 1, &work_kind, &slow);
		must_schedule(fixture.engine, 1, &work_kind, &quick[i]);
	}
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns += NS_PER_MS), 0);
	fixture_flush(&fixture);
	for (int i = 0; i < 20; i++)
		check_int(quick[i].runs, 1);
	check_told(1, 0, SLOW_NS + 1, &slow);
	check_int(stats_of(fixture.engine).slow, 1);
	fixture_close(&fixture);
}

/*
 * In the next tests, an executor's thread calls the hook for another thread's run. The executor's
 * thread is inside a run of its own then. `inside` records the results of the hook's calls.
 */
static struct {
	struct tw_handle own;
	int stopped, waited, cancelled;
} inside;

static void calling_hook(void *context, const struct tw_slow *slow)
{
	slow_hook(context, slow);
	inside.stopped = tw_engine_stop(fixture.engine, NULL, NULL, 20 * NS_PER_MS);
	inside.waited = tw_cancel_wait(inside.own, 20 * NS_PER_MS);
	inside.cancelled = tw_cancel(inside.own);
}

/*
 * Holds one run in an executor. When that run is slow, begins a run of `work` on this thread. This
 * thread must then report the slow run.
 */
static void hook_in_executor(struct work *work, bool periodic)
{
	struct tw_options options = slow_options(calling_hook);
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct gate gate;
	pthread_t thread;
	int at;

	options.dispatch = take;
	taken.count = 0;
	fixture_open(&fixture, &options);
	gate_init(&gate);
	work->fixture = &fixture;
	must_schedule(fixture.engine, 1, &gate_kind, &gate);
	if (periodic)
		check_int(tw_schedule_periodic(fixture.engine, &period, &work_kind, work,
					       &inside.own),
			  0);
	else
		inside.own = must_schedule(fixture.engine, NS_PER_MS, &work_kind, work);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(taken.count, 2);
	at = taken.due[0].arg == &gate ? 0 : 1;
	check_int(pthread_create(&thread, NULL, run_due, &taken.due[at]), 0);
	gate_await(&gate);
	pass(&fixture, SLOW_NS + 1);
	check_int(tw_due_run(&taken.due[1 - at]), 0);
	check_told(1, 1, SLOW_NS + 1, &gate);
	check_int(inside.stopped, -EDEADLK);
	check_int(work->runs, 1);
	gate_open(&gate);
	check_int(pthread_join(thread, NULL), 0);
	fixture_close(&fixture);
}

Test(slow_hook, in_an_executor_it_is_inside_a_run)
{
	struct work work = {.run_ns = 0};

	hook_in_executor(&work, false);
	check_int(inside.waited, TW_CANCEL_RUNNING);
	check_int(inside.cancelled, TW_CANCEL_RUNNING);
}

/* The thread's own run belongs to a chain, so tw_cancel_wait in the hook stops the chain. */
Test(slow_hook, in_an_executor_inside_a_run_of_a_chain)
{
	struct work work = {.run_ns = 0};

	hook_in_executor(&work, true);
	check_int(inside.waited, TW_CANCEL_STOPPED);
	check_int(inside.cancelled, TW_CANCEL_RUNNING);
	check_int(tw_timeout_state(inside.own), TW_STATE_CANCELLED);
}

/* Checks for slow runs on another thread, while the owner of a loop is in its callback. */
static void *watch_main(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)tw_engine_watch(fixture.engine);
}

static void on_watched(struct tw_handle self, void *arg)
{
	struct work *work = arg;
	pthread_t thread;
	void *count = NULL;

	on_work(self, work);
	check_int(pthread_create(&thread, NULL, watch_main, NULL), 0);
	check_int(pthread_join(thread, &count), 0);
	check_int((intptr_t)count, 1);
}

static const struct tw_kind watched_kind = TW_KIND(on_watched, NULL);

Test(slow_hook, a_watch_tells_of_a_loop)
{
	struct tw_options options = slow_options(slow_hook);
	struct work work = {.fixture = &fixture, .run_ns = SLOW_NS + 1};

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	must_schedule(fixture.engine, 1, &watched_kind, &work);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(work.runs, 1);
	check_told(1, 1, SLOW_NS + 1, &work);
	check_true(!pthread_equal(told.thread, pthread_self()));
	check_true(same_handle(told.last.handle, work.self));
	check_int(stats_of(fixture.engine).slow, 1);
	fixture_close(&fixture);
}

/*
 * In the next test, the parent's run continues in the parent. The child must notice only its own
 * runs.
 */
static struct work child_work = {.run_ns = SLOW_NS + 1};

static void child_watches(void)
{
	memset(&told, 0, sizeof(told));
	pass(&fixture, SLOW_NS + 1);
	heir_take(&fixture, 0);
	child_need(tw_loop_enter(fixture.engine), 0);
	child_need(tw_engine_watch(fixture.engine), 0);
	child_need(heir_stats(&fixture).slow, 0);
	child_need(told.count, 0);
	child_work.fixture = &fixture;
	child_need(tw_schedule(fixture.engine, 1, &work_kind, &child_work, NULL), 0);
	heir_advance(&fixture, NS_PER_MS);
	child_need(tw_due_run(&taken.due[2]), 0);
	child_need(child_work.runs, 1);
	child_need(heir_stats(&fixture).slow, 1);
	child_need(told.count, 1);
	child_need(told.last.arg == &child_work, true);
	heir_close(&fixture);
}

Test(slow_hook, child_notices_its_own_slow_runs)
{
	struct work work = {.fixture = &fixture, .run_ns = SLOW_NS + 1};
	struct tw_options options = slow_options(slow_hook);
	struct gate gate;
	pthread_t thread;

	taken.count = 0;
	options.flags = TW_ENGINE_LOOP;
	options.dispatch = take;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	gate_init(&gate);
	must_schedule(fixture.engine, 1, &work_kind, &work);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_due_run(&taken.due[0]), 0);
	check_int(stats_of(fixture.engine).slow, 1);
	must_schedule(fixture.engine, 1, &gate_kind, &gate);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(taken.count, 2);
	check_int(pthread_create(&thread, NULL, run_due, &taken.due[1]), 0);
	gate_await(&gate);
	in_child(child_watches);
	check_int(tw_engine_watch(fixture.engine), 0);
	check_int(stats_of(fixture.engine).slow, 1);
	gate_open(&gate);
	check_int(pthread_join(thread, NULL), 0);
	fixture_close(&fixture);
}
