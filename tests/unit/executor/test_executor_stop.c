/* SPDX-License-Identifier: MIT */
/*
 * Stop with callbacks in an executor: which thread waits for them, and for how long. Some tests
 * differ only in the thread that finishes the engine. One test has an executor that runs a timeout
 * too late.
 *
 * Seen to fail with these defects: a stop of a loop, whether or not the loop has an owner, waits
 * too long for an executor (for ever, if the executor needs the same thread); timeouts are handed
 * back a second time.
 */
#include "asleep.h"
#include "dispatch_scene.h"

static struct tw_options loop_options(void)
{
	struct tw_options options = executor_options(TW_REJECTION_RUN, QUEUE);

	options.flags = TW_ENGINE_LOOP;
	return options;
}

/* Opens a loop with one timeout in the executor and one that is not due yet. */
static struct tw_handle loop_open(struct fixture *fixture, struct probe *taken,
				  struct probe *waiting)
{
	struct tw_options options = loop_options();
	struct tw_handle handle;

	fixture_open(fixture, &options);
	executor.engine = fixture->engine;
	check_int(tw_engine_start(fixture->engine), 0);
	handle = probe_schedule(fixture, taken, 1);
	probe_schedule(fixture, waiting, NS_PER_S);
	fixture_advance(fixture, NS_PER_MS);
	check_int(executor.count, 1);
	return handle;
}

static int stop_for(struct fixture *fixture, int64_t timeout_ns)
{
	return tw_engine_stop(fixture->engine, back_log_hook, &fixture->back, timeout_ns);
}

/*
 * Only this thread could run the executor's timeout, but this thread is inside stop. So stop waits
 * in vain for that run, and must return when its time is up.
 */
Test(executor_stop, stop_by_the_owner_returns_in_time)
{
	struct probe taken, waiting;
	struct fixture fixture;
	struct tw_handle handle = loop_open(&fixture, &taken, &waiting);

	check_int(stop_for(&fixture, 0), -ETIMEDOUT);
	check_int(fixture.back.count, 1);
	check_int(waiting.end, TW_END_UNEXPIRED);
	check_int(stop_for(&fixture, 10 * NS_PER_MS), -ETIMEDOUT);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPING);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(tw_cancel_wait(handle, 0), -ETIMEDOUT);
	check_int(tw_schedule(fixture.engine, 1, &probe_kind, &taken, NULL), -ESHUTDOWN);
	check_int(taken.runs, 0);
	run_all();
	check_int(taken.end, TW_END_EXPIRED);
	check_int(stop_for(&fixture, TW_NEVER), 0);
	check_int(fixture.back.count, 1);
	fixture_close(&fixture);
}

/*
 * In the next test, another thread calls stop first and waits for the loop's owner. The owner's own
 * stop must still keep its own time limit.
 */
static asleep_thread stopping;

static void *stop_main(void *arg)
{
	struct fixture *fixture = arg;

	asleep_announce(&stopping);
	return (void *)(intptr_t)stop_for(fixture, PATIENCE_NS);
}

Test(executor_stop, owner_and_another_thread_both_stop_the_loop)
{
	struct probe taken, waiting;
	struct fixture fixture;
	pthread_t thread;
	void *result;

	loop_open(&fixture, &taken, &waiting);
	check_int(pthread_create(&thread, NULL, stop_main, &fixture), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_STOPPING));
	check_int(stop_for(&fixture, NS_PER_MS), -ETIMEDOUT);
	check_int(fixture.back.count, 1);
	run_all();
	check_int(stop_for(&fixture, PATIENCE_NS), 0);
	check_int(pthread_join(thread, &result), 0);
	check_int((intptr_t)result, 0);
	fixture_close(&fixture);
}

/*
 * If the loop no longer has an owner, the thread that calls stop finishes the engine. If its time
 * is up, it leaves the rest to the next stop.
 */
Test(executor_stop, stop_of_a_loop_without_owner_does_the_work)
{
	struct probe taken, waiting;
	struct fixture fixture;
	pthread_t thread;
	void *result;

	loop_open(&fixture, &taken, &waiting);
	check_int(tw_loop_exit(fixture.engine), 0);
	check_int(stop_for(&fixture, 0), -ETIMEDOUT);
	check_int(stop_for(&fixture, 10 * NS_PER_MS), -ETIMEDOUT);
	check_int(fixture.back.count, 1);
	check_int(tw_engine_poll(fixture.engine, 0), -ESHUTDOWN);
	check_int(pthread_create(&thread, NULL, stop_main, &fixture), 0);
	check_true(asleep_await(&stopping));
	run_all();
	check_int(pthread_join(thread, &result), 0);
	check_int((intptr_t)result, 0);
	check_int(taken.end, TW_END_EXPIRED);
	check_int(fixture.back.count, 1);
	fixture_close(&fixture);
}

/* A chain is pending again after its run in the executor. The next stop must hand it back. */
Test(executor_stop, second_stop_hands_back_a_chain_of_a_loop)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct tw_options options = loop_options();
	struct tw_handle first, second;
	struct probe handed, cancelled;
	struct fixture fixture;

	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	probe_init(&handed, fixture.engine);
	probe_init(&cancelled, fixture.engine);
	check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &handed, &first),
		  0);
	check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &cancelled,
				       &second),
		  0);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(executor.count, 2);
	check_int(stop_for(&fixture, NS_PER_MS), -ETIMEDOUT);
	run_all();
	check_int(handed.runs, 1);
	check_int(tw_timeout_state(first), TW_STATE_INIT);
	check_int(tw_cancel(second), TW_CANCEL_DONE);
	check_int(cancelled.end, TW_END_CANCELLED);
	check_int(handed.finalised, 0);
	check_int(stop_for(&fixture, NS_PER_MS), 0);
	check_int(handed.end, TW_END_UNEXPIRED);
	check_int(handed.finalised + cancelled.finalised, 2);
	check_int(fixture.back.count, 1);
	fixture_close(&fixture);
}

/* With a worker thread: the executor has accepted one timeout, and two rejected ones wait for
 * the next tick. */
Test(executor_stop, stop_hands_back_rejected_timeouts_that_wait)
{
	struct fixture fixture;
	struct probe probe[3];

	executor_open(&fixture, TW_REJECTION_REQUEUE, 1);
	for (int i = 0; i < 3; i++)
		probe_schedule(&fixture, &probe[i], 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.count, 1);
	check_int(stop_for(&fixture, 10 * NS_PER_MS), -ETIMEDOUT);
	check_true(wait_until_at_least(&fixture.back.count, 2));
	run_all();
	check_int(stop_for(&fixture, PATIENCE_NS), 0);
	check_int(fixture.back.count, 2);
	check_int(probe[0].finalised + probe[1].finalised + probe[2].finalised, 3);
	check_int(probe[0].runs + probe[1].runs + probe[2].runs, 1);
	fixture_close(&fixture);
}

/*
 * In the next test, the hook rejects timeouts but keeps them. The test tries to run them when they
 * have ended and the engine no longer exists.
 */
static struct {
	struct tw_due due[3];
	size_t count;
} kept;

static void keep(const struct tw_due *due, size_t count)
{
	executor.inside = NULL;
	memcpy(kept.due, due, count * sizeof(*due));
	kept.count = count;
}

Test(executor_stop, run_after_destroy_returns_estale)
{
	for (uint32_t rejection = TW_REJECTION_RUN; rejection <= TW_REJECTION_DROP; rejection++) {
		struct fixture fixture;
		struct probe probe[3];

		executor_open(&fixture, rejection, 0);
		executor.inside = keep;
		for (int i = 0; i < 3; i++)
			probe_schedule(&fixture, &probe[i], 1);
		fixture_flush(&fixture);
		fixture_advance(&fixture, NS_PER_MS);
		check_int(kept.count, 3);
		fixture_close(&fixture);
		for (int i = 0; i < 3; i++) {
			check_int(tw_due_run(&kept.due[i]), -ESTALE);
			check_int(probe[i].runs, rejection == TW_REJECTION_RUN);
			check_int(probe[i].finalised, 1);
		}
	}
}

/* In the next test, the hook runs inside the poll of a loop's owner. The hook's calls that would
 * wait for that poll must be rejected. */
static struct {
	struct tw_engine *engine;
	int64_t polled;
	int left, stopped, destroyed, flushed;
	int64_t next_due_ns;
} loop;

static void call_loop(const struct tw_due *due, size_t count)
{
	(void)due;
	(void)count;
	executor.inside = NULL;
	loop.polled = tw_engine_poll(loop.engine, 0);
	loop.left = tw_loop_exit(loop.engine);
	loop.stopped = tw_engine_stop(loop.engine, NULL, NULL, TW_NEVER);
	loop.destroyed = tw_engine_destroy(loop.engine);
	loop.flushed = tw_engine_flush(loop.engine, TW_NEVER);
	loop.next_due_ns = tw_engine_next_due(loop.engine);
}

Test(executor_stop, hook_may_not_wait_for_its_loop)
{
	struct tw_options options = loop_options();
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, &options);
	executor.inside = call_loop;
	loop.engine = fixture.engine;
	check_int(tw_engine_start(fixture.engine), 0);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(loop.polled, -EDEADLK);
	check_int(loop.left, -EDEADLK);
	check_int(loop.stopped, -EDEADLK);
	check_int(loop.destroyed, -EDEADLK);
	check_int(loop.flushed, -EDEADLK);
	check_true(loop.next_due_ns >= 0);
	run_all();
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}
