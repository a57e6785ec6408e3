/* SPDX-License-Identifier: MIT */
/*
 * The dispatch hook: an executor that accepts all timeouts, some, or none.
 *
 * Seen to fail with this defect: the worker does not run timeouts that the hook has rejected (b08).
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { QUEUE = 1024 };

/* An executor that keeps the accepted timeouts until the test runs them. */
struct executor {
	size_t accept_per_batch;
	atomic_int calls;
	atomic_int offered;
	atomic_int accepted;
	struct tw_due due[QUEUE];
};

static size_t executor_hook(void *context, const struct tw_due *due, size_t count)
{
	struct executor *executor = context;
	size_t take = count < executor->accept_per_batch ? count : executor->accept_per_batch;
	size_t room = QUEUE - (size_t)executor->accepted;

	take = take < room ? take : room;
	memcpy(&executor->due[executor->accepted], due, take * sizeof(*due));
	atomic_fetch_add(&executor->calls, 1);
	atomic_fetch_add(&executor->offered, (int)count);
	atomic_fetch_add(&executor->accepted, (int)take);
	return take;
}

static void executor_open(struct executor *executor, struct fixture *fixture, size_t per_batch)
{
	struct tw_options options = fixture_options();

	memset(executor, 0, sizeof(*executor));
	executor->accept_per_batch = per_batch;
	options.dispatch = executor_hook;
	options.dispatch_context = executor;
	fixture_open(fixture, &options);
}

static void executor_run_all(struct executor *executor)
{
	int i;

	for (i = 0; i < executor->accepted; i++)
		check_int(tw_due_run(&executor->due[i]), 0);
}

static struct executor executor;

Test(dispatch, accepted_timeouts_run_in_the_executor)
{
	struct fixture fixture;
	struct probe probes[10];
	struct tw_handle handles[10];
	int i;

	executor_open(&executor, &fixture, QUEUE);
	for (i = 0; i < 10; i++)
		handles[i] = probe_schedule(&fixture, &probes[i], 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.accepted, 10);
	for (i = 0; i < 10; i++) {
		check_int(probes[i].runs, 0);
		check_int(tw_cancel(handles[i]), TW_CANCEL_RUNNING);
		check_int(tw_timeout_state(handles[i]), TW_STATE_EXPIRED);
	}
	check_int(tw_engine_pending(fixture.engine), 0);
	executor_run_all(&executor);
	for (i = 0; i < 10; i++) {
		check_int(probes[i].runs, 1);
		check_int(probes[i].end, TW_END_EXPIRED);
		check_int(tw_cancel(handles[i]), TW_CANCEL_EXPIRED);
	}
	fixture_close(&fixture);
}

Test(dispatch, tells_what_is_due)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	executor_open(&executor, &fixture, QUEUE);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.accepted, 1);
	check_true(same_handle(executor.due[0].handle, handle));
	check_true(executor.due[0].kind == &probe_final_kind);
	check_true(executor.due[0].arg == &probe);
	executor_run_all(&executor);
	check_true(same_handle(probe.self, handle));
	fixture_close(&fixture);
}

Test(dispatch, b08_rejected_ones_run_on_the_worker)
{
	struct fixture fixture;
	atomic_int runs = 0;
	int i;

	executor_open(&executor, &fixture, 0);
	for (i = 0; i < 100; i++)
		must_schedule(fixture.engine, i % 5 * NS_PER_MS + 1, &count_kind, &runs);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_int(executor.accepted, 0);
	check_int(executor.offered, 100);
	check_int(runs, 100);
	fixture_close(&fixture);
}

Test(dispatch, rejected_part_runs_on_the_worker)
{
	struct fixture fixture;
	atomic_int runs = 0;
	int i;

	executor_open(&executor, &fixture, 3);
	for (i = 0; i < 200; i++)
		must_schedule(fixture.engine, i % 4 * NS_PER_MS + 1, &count_kind, &runs);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_at_least(executor.accepted, 3);
	check_int(runs, 200 - executor.accepted);
	executor_run_all(&executor);
	check_int(runs, 200);
	check_int(stats_of(fixture.engine).expired, 200);
	fixture_close(&fixture);
}

Test(dispatch, hands_over_in_batches)
{
	struct fixture fixture;
	atomic_int runs = 0;
	int i;

	executor_open(&executor, &fixture, QUEUE);
	for (i = 0; i < 1000; i++)
		must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.accepted, 1000);
	check_at_most(executor.calls, 200);
	executor_run_all(&executor);
	check_int(runs, 1000);
	fixture_close(&fixture);
}

Test(dispatch, run_twice_is_stale)
{
	struct fixture fixture;
	struct fixture plain;
	struct probe probe;

	executor_open(&executor, &fixture, QUEUE);
	fixture_open(&plain, NULL);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(tw_due_run(&executor.due[0]), -ESTALE);
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	check_true(make_stale(&plain, executor.due[0].handle));
	check_int(tw_due_run(&executor.due[0]), -ESTALE);
	check_int(tw_due_run(NULL), -EINVAL);
	check_int(probe.runs, 1);
	fixture_close(&plain);
	fixture_close(&fixture);
}

/*
 * A stale struct tw_due must not run the timeout that uses the same block now, even if that timeout
 * is due as well.
 */
Test(dispatch, stale_due_does_not_run_the_next_timeout)
{
	struct fixture fixture;
	struct tw_due stale;
	struct tw_handle again = {0};
	atomic_int runs = 0;

	executor_open(&executor, &fixture, QUEUE);
	must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	stale = executor.due[0];
	check_int(tw_due_run(&stale), 0);
	for (int i = 0; i < QUEUE / 2 && again.node != stale.handle.node; i++)
		again = must_schedule(fixture.engine, 1, &count_kind, &runs);
	check_true(again.node == stale.handle.node);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_due_run(&stale), -ESTALE);
	check_int(runs, 1);
	check_int(tw_timeout_state(again), TW_STATE_EXPIRED);
	for (int i = 1; i < executor.accepted; i++)
		check_int(tw_due_run(&executor.due[i]), 0);
	check_int(runs, executor.accepted);
	fixture_close(&fixture);
}

Test(dispatch, stop_waits_for_what_was_accepted)
{
	struct fixture fixture;
	struct probe probe;

	executor_open(&executor, &fixture, QUEUE);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, 30 * NS_PER_MS), -ETIMEDOUT);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

Test(dispatch, cancel_wait_waits_for_the_executor)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	executor_open(&executor, &fixture, QUEUE);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_cancel_wait(handle, 10 * NS_PER_MS), -ETIMEDOUT);
	executor_run_all(&executor);
	check_int(tw_cancel_wait(handle, PATIENCE_NS), TW_CANCEL_EXPIRED);
	fixture_close(&fixture);
}

/*
 * A callback in an executor. The same rules apply to it as to one on the worker: it may not stop
 * the engine, and its cancel must not wait.
 */
struct in_executor {
	struct tw_engine *engine;
	int stop;
	int cancel_wait;
	int rearm;
	int second;
	atomic_int runs;
};

static void on_in_executor(struct tw_handle self, void *arg)
{
	struct in_executor *own = arg;

	own->stop = tw_engine_stop(own->engine, NULL, NULL, TW_NEVER);
	own->cancel_wait = tw_cancel_wait(self, TW_NEVER);
	own->rearm = tw_schedule(own->engine, NS_PER_S, &count_kind, &own->runs, NULL);
	own->second = tw_schedule(own->engine, NS_PER_S, &count_kind, &own->runs, NULL);
}

static const struct tw_kind in_executor_kind = TW_KIND(on_in_executor, NULL);

Test(dispatch, calls_from_a_callback_in_the_executor)
{
	struct tw_options options = fixture_options();
	struct in_executor own = {0};
	struct fixture fixture;

	memset(&executor, 0, sizeof(executor));
	executor.accept_per_batch = QUEUE;
	options.dispatch = executor_hook;
	options.dispatch_context = &executor;
	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	own.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &in_executor_kind, &own);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_schedule(fixture.engine, 1, &count_kind, &own.runs, NULL), -EAGAIN);
	executor_run_all(&executor);
	check_int(own.stop, -EDEADLK);
	check_int(own.cancel_wait, TW_CANCEL_RUNNING);
	check_int(own.rearm, 0);
	check_int(own.second, -EAGAIN);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_close(&fixture);
}

/* The thread of a pool of one. Runs each timeout as soon as the pool has accepted the timeout. */
static void *pool_main(void *arg)
{
	atomic_int *stop = arg;
	int done = 0;

	while (!atomic_load(stop) || done < executor.accepted)
		if (done < executor.accepted)
			tw_due_run(&executor.due[done++]);
		else
			sched_yield();
	return NULL;
}

Test(dispatch, runs_in_another_thread)
{
	struct fixture fixture;
	atomic_int stop = 0;
	atomic_int runs = 0;
	pthread_t pool;
	int i;

	executor_open(&executor, &fixture, QUEUE);
	check_int(pthread_create(&pool, NULL, pool_main, &stop), 0);
	for (i = 0; i < QUEUE; i++)
		must_schedule(fixture.engine, i % 50 * NS_PER_MS + 1, &count_kind, &runs);
	for (i = 0; i < 60; i++)
		fixture_advance(&fixture, NS_PER_MS);
	fixture_stop(&fixture);
	check_int(runs, QUEUE);
	atomic_store(&stop, 1);
	check_int(pthread_join(pool, NULL), 0);
	fixture_close(&fixture);
}
