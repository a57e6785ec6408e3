/* SPDX-License-Identifier: MIT */
/*
 * Timeouts that the executor rejects and that are pending again until the next tick
 * (TW_REJECTION_REQUEUE).
 *
 * Seen to fail with these defects: a rejected timeout is offered again in the same tick, or never
 * again; a waiter is not woken when its timeout is pending again; a timeout that has ended stays in
 * the list of rejected ones; the whole backlog is offered in each tick.
 */
#include "asleep.h"
#include "dispatch_scene.h"

/* A rejected timeout must be pending, and must be offered once per tick. */
Test(requeue, requeued_once_a_tick)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_flush(&fixture);
	for (int tick = 1; tick <= 5; tick++) {
		fixture_advance(&fixture, NS_PER_MS);
		fixture_flush(&fixture);
		check_int(executor.calls, tick);
		check_int(tw_timeout_state(handle), TW_STATE_INIT);
		check_int(tw_engine_pending(fixture.engine), 1);
		check_int(stats_of(fixture.engine).expired, 0);
		check_int(stats_of(fixture.engine).executor_rejected, tick);
	}
	check_int(probe.runs, 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	run_all();
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	check_int(stats_of(fixture.engine).expired, 1);
	/* After a long pause the timeout must be offered once, not for each missed tick. */
	fixture_advance(&fixture, NS_PER_S);
	check_int(executor.calls, 6);
	fixture_close(&fixture);
}

Test(requeue, requeued_in_their_order)
{
	static atomic_int runs[200];
	struct fixture fixture;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 3);
	for (int i = 0; i < 200; i++)
		must_schedule_at(fixture.engine, 0, &count_kind, &runs[i]);
	fixture_flush(&fixture);
	for (int tick = 0; tick < 100; tick++) {
		int before = atomic_load(&executor.offered);

		fixture_advance(&fixture, NS_PER_MS);
		if (before < QUEUE && executor.offered - before > 1 && executor.offered <= QUEUE)
			check_true((uintptr_t)executor.asked[before] <
				   (uintptr_t)executor.asked[executor.offered - 1]);
		run_all();
	}
	for (int i = 0; i < 200; i++)
		check_int(runs[i], 1);
	fixture_close(&fixture);
}

/*
 * While the hook rejects timeouts, each later tick offers the hook only a part of the backlog. As
 * soon as the hook accepts all timeouts that it is offered, one tick offers the whole backlog.
 */
Test(requeue, rejected_backlog_is_offered_a_few_at_a_time)
{
	enum { BACKLOG = 5000 };
	static atomic_int runs[BACKLOG];
	struct fixture fixture;
	int asked;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	for (int i = 0; i < BACKLOG; i++)
		must_schedule_at(fixture.engine, 0, &count_kind, &runs[i]);
	fixture_flush(&fixture);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.offered, BACKLOG);
	for (int tick = 0; tick < 10; tick++) {
		asked = atomic_load(&executor.offered);
		fixture_advance(&fixture, NS_PER_MS);
		check_at_most(executor.offered - asked, QUEUE);
		check_at_least(executor.offered - asked, 1);
	}
	asked = atomic_load(&executor.offered);
	executor.inside = run_here;
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.offered - asked, BACKLOG);
	for (int i = 0; i < BACKLOG; i++)
		check_int(runs[i], 1);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
}

static int inside_cancelled;

/* A finaliser on the worker, which runs in the middle of a rejected batch, cancels other
 * timeouts of that batch. */
static struct tw_handle peers[4];

static void on_never(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_cancel_peers(void *arg, enum tw_end end)
{
	(void)arg;
	(void)end;
	for (int i = 0; i < 4; i++)
		(void)tw_cancel(peers[i]);
}

static void stop_chains(const struct tw_due *due, size_t count)
{
	executor.inside = NULL;
	for (size_t i = 0; i < count; i++)
		if (due[i].kind->finaliser == on_cancel_peers)
			inside_cancelled = tw_cancel(due[i].handle);
}

Test(requeue, cancelled_peers_are_not_requeued)
{
	static const struct tw_kind chain_kind = TW_KIND(on_never, on_cancel_peers);
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	atomic_int runs[4] = {0};
	struct fixture fixture;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	executor.inside = stop_chains;
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			check_int(tw_schedule_periodic(fixture.engine, &period, &chain_kind, NULL,
						       NULL),
				  0);
		peers[i] = must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs[i]);
	}
	fixture_flush(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(inside_cancelled, TW_CANCEL_STOPPED);
	check_int(executor.offered, 5);
	executor.accept = QUEUE;
	fixture_advance(&fixture, 2 * NS_PER_MS);
	run_all();
	for (int i = 0; i < 4; i++)
		check_int(runs[i] == 0 ? tw_cancel(peers[i]) : TW_CANCEL_CANCELLED,
			  TW_CANCEL_CANCELLED);
	check_int(runs[0] + runs[1], 0);
	fixture_close(&fixture);
}

Test(requeue, requeued_timeout_can_be_cancelled)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 1);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(probe.end, TW_END_CANCELLED);
	executor.accept = QUEUE;
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 1);
	check_int(probe.runs, 0);
	fixture_close(&fixture);
}

Test(requeue, requeued_timeout_can_be_rescheduled)
{
	struct fixture fixture;
	struct tw_handle later, sooner;
	struct probe one, two;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	later = probe_schedule(&fixture, &one, 2 * NS_PER_MS);
	sooner = probe_schedule(&fixture, &two, 2 * NS_PER_MS);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_int(executor.offered, 2);
	check_int(tw_reschedule(later, 10 * NS_PER_MS), TW_RESCHEDULE_DONE);
	executor.accept = QUEUE;
	/* The new deadline has passed. The reschedule files the timeout again, so it is offered
	 * again within this tick. */
	check_int(tw_reschedule_at(sooner, 0), TW_RESCHEDULE_DONE);
	fixture_flush(&fixture);
	check_int(executor.offered, 3);
	run_all();
	check_int(two.runs, 1);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(executor.offered, 3);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_int(executor.offered, 4);
	run_all();
	check_int(one.runs, 1);
	fixture_close(&fixture);
}

Test(requeue, requeued_timeout_is_unexpired_by_stop)
{
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1);
	check_int(probe.end, TW_END_UNEXPIRED);
	check_int(probe.finalised, 1);
	check_int(stats_of(fixture.engine).expired, 0);
	fixture_close(&fixture);
}

/* A rejected timeout keeps its deadline, so it can become late. */
Test(requeue, requeued_timeout_counts_as_late)
{
	struct tw_options options = executor_options(TW_REJECTION_REQUEUE, 0);
	struct fixture fixture;
	struct probe probe;

	options.late_ns = (uint64_t)(3 * NS_PER_MS);
	fixture_open(&fixture, &options);
	probe_schedule(&fixture, &probe, 1);
	for (int tick = 0; tick < 10; tick++)
		fixture_advance(&fixture, NS_PER_MS);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	check_int(probe.runs, 1);
	check_int(stats_of(fixture.engine).late, 1);
	fixture_close(&fixture);
}

/* A rejected timeout keeps its place under the limit, so the engine is full. */
Test(requeue, requeued_within_the_limit)
{
	struct tw_options options = executor_options(TW_REJECTION_REQUEUE, 0);
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe, more;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	probe_init(&more, fixture.engine);
	check_int(tw_schedule(fixture.engine, 1, &probe_kind, &more, NULL), -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_schedule(fixture.engine, 1, &probe_kind, &more, NULL), 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	check_int(more.runs, 1);
	fixture_close(&fixture);
}

static asleep_thread waiting;

static void *wait_main(void *handle)
{
	asleep_announce(&waiting);
	return (void *)(intptr_t)tw_cancel_wait(*(const struct tw_handle *)handle, PATIENCE_NS);
}

Test(requeue, cancel_wait_ends_if_the_timeout_is_requeued)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;
	pthread_t thread;
	void *outcome;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	handle = probe_schedule(&fixture, &probe, 1);
	hook_hold(&fixture);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(tw_reschedule(handle, 0), TW_RESCHEDULE_RUNNING);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	check_int(pthread_create(&thread, NULL, wait_main, &handle), 0);
	check_true(asleep_await(&waiting));
	gate_open(&hook_gate);
	check_int(pthread_join(thread, &outcome), 0);
	check_int((intptr_t)outcome, TW_CANCEL_DONE);
	check_int(probe.runs, 0);
	check_int(probe.end, TW_END_CANCELLED);
	/* The flush ensures that the hook has returned. */
	fixture_flush(&fixture);
	executor.inside = NULL;
	fixture_close(&fixture);
}

Test(requeue, requeued_runs_of_a_chain)
{
	struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_REQUEUE, 0);
	probe_init(&probe, fixture.engine);
	period.runs = 2;
	check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &probe, NULL),
		  0);
	fixture_flush(&fixture);
	for (int tick = 0; tick < 15; tick++)
		fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 5);
	check_int(stats_of(fixture.engine).periodic_runs, 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	fixture_flush(&fixture);
	check_int(probe.runs, 1);
	/* The chain must be back on its grid. */
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(executor.count, 1);
	run_all();
	check_int(probe.runs, 2);
	check_int(probe.end, TW_END_EXPIRED);
	check_int(stats_of(fixture.engine).periodic_runs, 2);
	fixture_close(&fixture);
}

/*
 * Cancels on another thread. In the next test an owner-only timeout that the executor has rejected
 * must still be owner-only.
 */
static void *cancel_main(void *handle)
{
	return (void *)(intptr_t)tw_cancel(*(const struct tw_handle *)handle);
}

Test(requeue, requeued_timeout_of_an_owner_is_due_at_the_next_tick)
{
	struct tw_options options = executor_options(TW_REJECTION_REQUEUE, 0);
	struct tw_kind kind = probe_final_kind;
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;
	pthread_t thread;
	void *outcome;

	options.flags = TW_ENGINE_LOOP;
	kind.flags = TW_KIND_FLAG_OWNER_ONLY;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	probe_init(&probe, fixture.engine);
	handle = must_schedule(fixture.engine, 1, &kind, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 1);
	/* next_due must not report the timeout as due before the next tick. */
	check_int(tw_engine_next_due(fixture.engine), 2 * NS_PER_MS);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(executor.calls, 1);
	check_int(pthread_create(&thread, NULL, cancel_main, &handle), 0);
	check_int(pthread_join(thread, &outcome), 0);
	check_int((intptr_t)outcome, -EPERM);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 2);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	fixture_close(&fixture);
	check_int(probe.runs, 0);
	check_int(probe.end, TW_END_CANCELLED);
}
