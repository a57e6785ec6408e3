/* SPDX-License-Identifier: MIT */
/*
 * Executors that reject, block, and call the library; dropped timeouts; inline timeouts, which stay
 * on the worker.
 *
 * Seen to fail with these defects: a timeout counts as expired twice; a chain runs after its
 * cancel; for a dropped timeout the callback runs too; a chain ends with a dropped run; an inline
 * timeout is offered to the executor.
 */
#include "asleep.h"
#include "dispatch_scene.h"

static const struct tw_kind inline_kind = TW_KIND_INLINE(NULL, NULL);

/* Returns a kind like probe_final_kind that runs on the worker. */
static struct tw_kind inline_probe_kind(void)
{
	struct tw_kind kind = probe_final_kind;

	kind.flags = inline_kind.flags;
	return kind;
}

Test(executor, inline_kinds_stay_with_the_worker)
{
	struct tw_kind kind = inline_probe_kind();
	struct fixture fixture;
	struct probe probe[4];
	atomic_int runs = 0;

	executor_open(&fixture, TW_REJECTION_RUN, QUEUE);
	for (int i = 0; i < 4; i++) {
		probe_init(&probe[i], fixture.engine);
		must_schedule(fixture.engine, 1, &kind, &probe[i]);
	}
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 0);
	for (int i = 0; i < 4; i++) {
		check_int(probe[i].runs, 1);
		check_int(probe[i].end, TW_END_EXPIRED);
	}
	for (int i = 0; i < 100; i++)
		must_schedule(fixture.engine, 1, i % 2 == 0 ? &count_kind : &kind,
			      i % 2 == 0 ? (void *)&runs : (void *)&probe[0]);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.offered, 50);
	check_int(runs, 0);
	check_int(probe[0].runs, 51);
	run_all();
	check_int(runs, 50);
	check_int(stats_of(fixture.engine).expired, 104);
	check_int(stats_of(fixture.engine).executor_rejected, 0);
	fixture_close(&fixture);
}

static int order[64];
static atomic_int order_count;

static void on_order(struct tw_handle self, void *arg)
{
	(void)self;
	order[atomic_fetch_add(&order_count, 1)] = (int)(intptr_t)arg;
}

Test(executor, inline_kinds_keep_their_order)
{
	static const struct tw_kind kind = TW_KIND_INLINE(on_order, NULL);
	struct tw_options options = executor_options(TW_REJECTION_RUN, QUEUE);
	struct fixture fixture;

	options.flags = TW_ENGINE_ORDERED;
	fixture_open(&fixture, &options);
	for (int i = 0; i < 64; i++)
		must_schedule_at(fixture.engine, (64 - i) * NS_PER_US, &kind, (void *)(intptr_t)i);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(order_count, 64);
	for (int i = 0; i < 64; i++)
		check_int(order[i], 63 - i);
	fixture_close(&fixture);
}

Test(executor, inline_chain_runs_on_the_worker)
{
	struct tw_kind kind = inline_probe_kind();
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_DROP, 0);
	probe_init(&probe, fixture.engine);
	period.runs = 3;
	check_int(tw_schedule_periodic(fixture.engine, &period, &kind, &probe, NULL), 0);
	fixture_flush(&fixture);
	for (int i = 0; i < 6; i++)
		fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 3);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_EXPIRED);
	check_int(executor.calls, 0);
	fixture_close(&fixture);
}

/*
 * Without an executor, the flag for inline kinds must make no difference, even in a loop and for
 * owner-only timeouts.
 */
Test(executor, an_inline_kind_works_without_an_executor)
{
	struct tw_kind kind = inline_probe_kind();
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct probe probe;

	options.flags = TW_ENGINE_LOOP;
	kind.flags |= TW_KIND_FLAG_OWNER_ONLY;
	fixture_open(&fixture, &options);
	probe_init(&probe, fixture.engine);
	check_int(tw_engine_start(fixture.engine), 0);
	must_schedule(fixture.engine, 1, &kind, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

Test(executor, accepted_count_above_the_offer_means_all)
{
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_RUN, QUEUE + 1);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 0);
	run_all();
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/* While the dispatch hook blocks, producers must be able to schedule. A stop with a time limit must
 * return -ETIMEDOUT. */
Test(executor, blocking_hook_leaves_schedule_free_and_stop_bounded)
{
	struct fixture fixture;
	struct probe probe, more;

	executor_open(&fixture, TW_REJECTION_RUN, 0);
	probe_schedule(&fixture, &probe, 1);
	hook_hold(&fixture);
	executor.inside = NULL;
	probe_schedule(&fixture, &more, NS_PER_S);
	check_int(tw_engine_flush(fixture.engine, 10 * NS_PER_MS), -ETIMEDOUT);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, 10 * NS_PER_MS),
		  -ETIMEDOUT);
	check_int(probe.runs, 0);
	gate_open(&hook_gate);
	fixture_stop(&fixture);
	check_int(probe.runs, 1);
	check_int(more.end, TW_END_UNEXPIRED);
	fixture_close(&fixture);
}

/* A hook that calls the library. It may make the same calls as a callback on the worker. */
static struct {
	struct tw_handle peer;
	int scheduled, cancelled, own, stopped, flushed, run, again;
	atomic_int runs;
} inside;

static void call_back(const struct tw_due *due, size_t count)
{
	(void)count;
	executor.inside = NULL;
	inside.scheduled = tw_schedule(executor.engine, NS_PER_MS, &count_kind, &inside.runs, NULL);
	inside.cancelled = tw_cancel(inside.peer);
	inside.own = tw_cancel_wait(due[0].handle, TW_NEVER);
	inside.stopped = tw_engine_stop(executor.engine, NULL, NULL, TW_NEVER);
	inside.flushed = tw_engine_flush(executor.engine, TW_NEVER);
	inside.run = tw_due_run(&due[0]);
	inside.again = tw_due_run(&due[0]);
}

Test(executor, hook_may_call_the_engine_but_not_wait_for_it)
{
	struct fixture fixture;
	struct probe probe, peer;

	for (uint32_t rejection = TW_REJECTION_RUN; rejection <= TW_REJECTION_DROP; rejection++) {
		memset(&inside, 0, sizeof(inside));
		executor_open(&fixture, rejection, 0);
		executor.inside = call_back;
		inside.peer = probe_schedule(&fixture, &peer, NS_PER_S);
		fixture_flush(&fixture);
		probe_schedule(&fixture, &probe, 1);
		fixture_advance(&fixture, NS_PER_MS);
		check_int(inside.scheduled, 0);
		check_int(inside.cancelled, TW_CANCEL_DONE);
		check_int(inside.own, TW_CANCEL_RUNNING);
		check_int(inside.stopped, -EDEADLK);
		check_int(inside.flushed, -EDEADLK);
		/* The hook ran the timeout itself and reported it as rejected. It must not run
		 * again. */
		check_int(inside.run, 0);
		check_int(inside.again, -ESTALE);
		check_int(probe.runs, 1);
		check_int(probe.finalised, 1);
		check_int(probe.end, TW_END_EXPIRED);
		check_int(dropped.count, 0);
		check_int(peer.end, TW_END_CANCELLED);
		fixture_close(&fixture);
	}
}

Test(executor, dropped_timeout_is_finalised_and_does_not_run)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_DROP, 0);
	handle = probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(dropped.count, 1);
	check_true(dropped.arg == &probe && dropped.kind == &probe_final_kind);
	check_int(dropped.scheduled, 0);
	check_int(probe.runs, 0);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_DROPPED);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	check_int(stats_of(fixture.engine).dropped, 1);
	check_int(stats_of(fixture.engine).executor_rejected, 1);
	check_int(stats_of(fixture.engine).expired, 1);
	fixture_advance(&fixture, NS_PER_S);
	check_int(executor.calls, 1);
	fixture_close(&fixture);
}

/* The drop hook runs instead of the callback, so its schedule gets the dropped timeout's place
 * under the limit. */
Test(executor, drop_hook_may_schedule_within_the_limit)
{
	struct tw_options options = executor_options(TW_REJECTION_DROP, 0);
	struct fixture fixture;
	struct probe probe;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	dropped.engine = fixture.engine;
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(dropped.count, 1);
	check_int(dropped.scheduled, 0);
	check_int(tw_schedule(fixture.engine, 1, &count_kind, &dropped.runs, NULL), -EAGAIN);
	fixture_close(&fixture);
}

/* A chain must continue even if some of its runs are dropped. */
Test(executor, dropped_runs_of_a_chain)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_DROP, 0);
	probe_init(&probe, fixture.engine);
	period.runs = 3;
	check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &probe, NULL),
		  0);
	fixture_flush(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(dropped.count, 1);
	check_int(probe.finalised, 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	check_int(probe.runs, 1);
	executor.accept = 0;
	fixture_flush(&fixture);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(dropped.count, 2);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_DROPPED);
	check_int(stats_of(fixture.engine).expired, 1);
	check_int(stats_of(fixture.engine).periodic_runs, 3);
	check_int(stats_of(fixture.engine).dropped, 2);
	fixture_close(&fixture);
}

/*
 * Cancels a chain inside the hook that the chain is offered to. The chain must end, whatever the
 * policy for rejected timeouts.
 */
static void stop_chain(const struct tw_due *due, size_t count)
{
	(void)count;
	inside.cancelled = tw_cancel(due[0].handle);
}

Test(executor, chain_cancelled_while_it_is_offered_does_not_run)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	for (uint32_t rejection = TW_REJECTION_RUN; rejection <= TW_REJECTION_DROP; rejection++) {
		executor_open(&fixture, rejection, 0);
		executor.inside = stop_chain;
		probe_init(&probe, fixture.engine);
		check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &probe,
					       NULL),
			  0);
		fixture_flush(&fixture);
		fixture_advance(&fixture, 3 * NS_PER_MS);
		check_int(inside.cancelled, TW_CANCEL_STOPPED);
		check_int(executor.calls, 1);
		check_int(probe.runs, 0);
		check_int(dropped.count, 0);
		check_int(stats_of(fixture.engine).dropped, 0);
		check_int(probe.finalised, 1);
		check_int(probe.end, TW_END_CANCELLED);
		fixture_close(&fixture);
	}
}

/*
 * Ends the worker's thread inside the hook. The offered timeouts count as rejected, and stop must
 * end them.
 */
static void end_thread(const struct tw_due *due, size_t count)
{
	(void)due;
	(void)count;
	pthread_exit(NULL);
}

Test(executor, offered_timeout_ends_once_if_the_hook_ends_its_thread)
{
	static const enum tw_end ends[] = {TW_END_EXPIRED, TW_END_UNEXPIRED, TW_END_DROPPED};
	struct fixture fixture;
	struct probe probe;

	for (uint32_t rejection = TW_REJECTION_RUN; rejection <= TW_REJECTION_DROP; rejection++) {
		executor_open(&fixture, rejection, 0);
		executor.inside = end_thread;
		probe_schedule(&fixture, &probe, 1);
		fixture_flush(&fixture);
		check_int(tw_clock_set(fixture.clock, fixture.now_ns += NS_PER_MS), 0);
		check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
		fixture_stop(&fixture);
		check_int(probe.runs, rejection == TW_REJECTION_RUN);
		check_int(probe.finalised, 1);
		check_int(probe.end, ends[rejection]);
		fixture_close(&fixture);
	}
}

Test(executor, bad_options_are_rejected)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;

	options.rejection = TW_REJECTION_REQUEUE;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.dispatch = on_dispatch;
	options.rejection = TW_REJECTION_DROP;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.rejection = TW_REJECTION_DROP + 1;
	options.on_drop = on_drop;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.rejection = TW_REJECTION_RUN;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.rejection = TW_REJECTION_REQUEUE;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.on_drop = NULL;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(executor, bad_kinds_are_rejected)
{
	struct tw_kind kind = inline_probe_kind();
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REJECTION_RUN, 0);
	probe_init(&probe, fixture.engine);
	kind.flags = 4;
	check_int(tw_schedule(fixture.engine, 1, &kind, &probe, NULL), -EINVAL);
	/* An owner-only kind: in an engine with a worker thread, only callbacks on the worker
	 * may schedule it. */
	kind.flags = TW_KIND_FLAG_INLINE | TW_KIND_FLAG_OWNER_ONLY;
	check_int(tw_schedule(fixture.engine, 1, &kind, &probe, NULL), -EPERM);
	fixture_close(&fixture);
}
