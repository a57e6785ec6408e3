/* SPDX-License-Identifier: MIT */
/*
 * Executors that refuse, block, and call back; timeouts that stay with the worker.
 *
 * Seen to fail: a refused one offered again in the same tick, or never again; expired twice in the books; a
 * waiter that is not woken when its timeout is pending again; a chain that runs after its cancel; a drop that
 * runs the callback too; a place among the refused ones kept that is gone; an inline kind offered.
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

enum { QUEUE = 512 };

static struct {
	struct tw_engine *engine;
	atomic_int calls;
	atomic_int offered;
	size_t accept; /* of each batch */
	int count;
	struct tw_due due[QUEUE];
	void *asked[QUEUE]; /* the arguments, in order */
	void (*inside)(const struct tw_due *due, size_t count);
} executor;

static void run_here(const struct tw_due *due, size_t count);

static size_t on_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accept = executor.accept < count ? executor.accept : count;
	int asked = atomic_load(&executor.offered);

	(void)context;
	for (size_t i = 0; i < count && asked + (int)i < QUEUE; i++)
		executor.asked[asked + (int)i] = due[i].arg;
	atomic_fetch_add(&executor.calls, 1);
	atomic_fetch_add(&executor.offered, (int)count);
	if (executor.inside != NULL)
		executor.inside(due, count);
	memcpy(&executor.due[executor.count], due, accept * sizeof(*due));
	executor.count += (int)accept;
	if (executor.inside == run_here)
		return count;
	return executor.accept > QUEUE ? executor.accept : accept;
}

static struct {
	atomic_int count;
	void *arg;
	const struct tw_kind *kind;
	struct tw_engine *engine;
	atomic_int runs;
	int scheduled;
} dropped;

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)context;
	(void)self;
	dropped.arg = arg;
	dropped.kind = kind;
	dropped.scheduled = tw_schedule(dropped.engine, TW_NEVER, &count_kind, &dropped.runs, NULL);
	atomic_fetch_add(&dropped.count, 1);
}

static struct tw_options executor_options(uint32_t refusal, size_t accept)
{
	struct tw_options options = fixture_options();

	memset(&executor, 0, sizeof(executor));
	memset(&dropped, 0, sizeof(dropped));
	executor.accept = accept;
	options.dispatch = on_dispatch;
	options.refusal = refusal;
	options.drop = refusal == TW_REFUSAL_DROP ? on_drop : NULL;
	return options;
}

static void executor_open(struct fixture *fixture, uint32_t refusal, size_t accept)
{
	struct tw_options options = executor_options(refusal, accept);

	fixture_open(fixture, &options);
	executor.engine = dropped.engine = fixture->engine;
}

static void run_all(void)
{
	for (int i = 0; i < executor.count; i++)
		check_int(tw_due_run(&executor.due[i]), 0);
	executor.count = 0;
}

/* As the hook of a pool that has room for all. */
static void run_here(const struct tw_due *due, size_t count)
{
	for (size_t i = 0; i < count; i++)
		(void)tw_due_run(&due[i]);
}

static int inside_cancelled;

static const struct tw_kind inline_kind = TW_KIND_INLINE(NULL, NULL);

/* A kind as probe_final_kind, on the worker. */
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

	executor_open(&fixture, TW_REFUSAL_RUN, QUEUE);
	for (int i = 0; i < 4; i++) {
		probe_init(&probe[i], fixture.engine);
		must_schedule(fixture.engine, 0, &kind, &probe[i]);
	}
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 0);
	for (int i = 0; i < 4; i++) {
		check_int(probe[i].runs, 1);
		check_int(probe[i].end, TW_END_EXPIRED);
	}
	for (int i = 0; i < 100; i++)
		must_schedule(fixture.engine, 0, i % 2 == 0 ? &count_kind : &kind,
			      i % 2 == 0 ? (void *)&runs : (void *)&probe[0]);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.offered, 50);
	check_int(runs, 0);
	check_int(probe[0].runs, 51);
	run_all();
	check_int(runs, 50);
	check_int(stats_of(fixture.engine).expired, 104);
	check_int(stats_of(fixture.engine).executor_refused, 0);
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
	struct tw_options options = executor_options(TW_REFUSAL_RUN, QUEUE);
	struct fixture fixture;

	options.flags = TW_ENGINE_ORDERED;
	fixture_open(&fixture, &options);
	for (int i = 0; i < 64; i++)
		must_schedule_at(fixture.engine, (64 - i) * NS_PER_US, &kind, (void *)(intptr_t)i);
	fixture_settle(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(order_count, 64);
	for (int i = 0; i < 64; i++)
		check_int(order[i], 63 - i);
	fixture_close(&fixture);
}

Test(executor, an_inline_chain)
{
	struct tw_kind kind = inline_probe_kind();
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_DROP, 0);
	probe_init(&probe, fixture.engine);
	period.runs = 3;
	check_int(tw_schedule_periodic(fixture.engine, &period, &kind, &probe, NULL), 0);
	fixture_settle(&fixture);
	for (int i = 0; i < 6; i++)
		fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 3);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_EXPIRED);
	check_int(executor.calls, 0);
	fixture_close(&fixture);
}

/* Without an executor, in a loop, and its owner's only as well: no difference. */
Test(executor, an_inline_kind_without_an_executor)
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
	must_schedule(fixture.engine, 0, &kind, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

Test(executor, a_hook_that_says_more_than_there_were)
{
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_RUN, QUEUE + 1);
	probe_schedule(&fixture, &probe, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 0);
	run_all();
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/* Refused, it is pending, and the hook is asked once a tick. */
Test(executor, requeued_once_a_tick)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	handle = probe_schedule(&fixture, &probe, 0);
	fixture_settle(&fixture);
	for (int tick = 1; tick <= 5; tick++) {
		fixture_advance(&fixture, NS_PER_MS);
		fixture_settle(&fixture);
		check_int(executor.calls, tick);
		check_int(tw_timeout_state(handle), TW_STATE_INIT);
		check_int(tw_engine_pending(fixture.engine), 1);
		check_int(stats_of(fixture.engine).expired, 0);
		check_int(stats_of(fixture.engine).executor_refused, tick);
	}
	check_int(probe.runs, 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	run_all();
	check_int(probe.runs, 1);
	check_int(probe.finalised, 1);
	check_int(stats_of(fixture.engine).expired, 1);
	/* After a long sleep of the executor's, not twice. */
	fixture_advance(&fixture, NS_PER_S);
	check_int(executor.calls, 6);
	fixture_close(&fixture);
}

Test(executor, requeued_in_their_order)
{
	static atomic_int runs[200];
	struct fixture fixture;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 3);
	for (int i = 0; i < 200; i++)
		must_schedule_at(fixture.engine, 0, &count_kind, &runs[i]);
	fixture_settle(&fixture);
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

/* What has piled up is asked for a few at a time, until the hook refuses one: in one tick where it does not. */
Test(executor, a_backlog)
{
	enum { BACKLOG = 5000 };
	static atomic_int runs[BACKLOG];
	struct fixture fixture;
	int asked;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	for (int i = 0; i < BACKLOG; i++)
		must_schedule_at(fixture.engine, 0, &count_kind, &runs[i]);
	fixture_settle(&fixture);
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

/* A finaliser on the worker, in the middle of a batch that is refused, takes its peers out again. */
static struct tw_handle peers[4];

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

Test(executor, peers_that_are_cancelled_while_they_are_requeued)
{
	static const struct tw_kind chain_kind = TW_KIND(on_order, on_cancel_peers);
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	atomic_int runs[4] = {0};
	struct fixture fixture;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	executor.inside = stop_chains;
	for (int i = 0; i < 4; i++) {
		if (i == 2)
			check_int(tw_schedule_periodic(fixture.engine, &period, &chain_kind, NULL,
						       NULL),
				  0);
		peers[i] = must_schedule(fixture.engine, NS_PER_MS, &count_kind, &runs[i]);
	}
	fixture_settle(&fixture);
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

Test(executor, requeued_and_cancelled)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	handle = probe_schedule(&fixture, &probe, 0);
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

Test(executor, requeued_and_rescheduled)
{
	struct fixture fixture;
	struct tw_handle later, sooner;
	struct probe one, two;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	later = probe_schedule(&fixture, &one, 2 * NS_PER_MS);
	sooner = probe_schedule(&fixture, &two, 2 * NS_PER_MS);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_int(executor.offered, 2);
	check_int(tw_reschedule(later, 10 * NS_PER_MS), TW_RESCHEDULE_DONE);
	executor.accept = QUEUE;
	/* For the past of this tick, which is where it is. */
	check_int(tw_reschedule_at(sooner, 0), TW_RESCHEDULE_DONE);
	fixture_settle(&fixture);
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

Test(executor, requeued_and_stopped)
{
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	probe_schedule(&fixture, &probe, 0);
	fixture_advance(&fixture, NS_PER_MS);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1);
	check_int(probe.end, TW_END_HANDED_BACK);
	check_int(probe.finalised, 1);
	check_int(stats_of(fixture.engine).expired, 0);
	fixture_close(&fixture);
}

/* Its deadline stays, so it can be late. */
Test(executor, requeued_until_it_is_late)
{
	struct tw_options options = executor_options(TW_REFUSAL_REQUEUE, 0);
	struct fixture fixture;
	struct probe probe;

	options.late_ns = (uint64_t)(3 * NS_PER_MS);
	fixture_open(&fixture, &options);
	probe_schedule(&fixture, &probe, 0);
	for (int tick = 0; tick < 10; tick++)
		fixture_advance(&fixture, NS_PER_MS);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	check_int(probe.runs, 1);
	check_int(stats_of(fixture.engine).late, 1);
	fixture_close(&fixture);
}

/* A full engine: what is pending again holds its place. */
Test(executor, requeued_within_the_limit)
{
	struct tw_options options = executor_options(TW_REFUSAL_REQUEUE, 0);
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe, more;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	handle = probe_schedule(&fixture, &probe, 0);
	fixture_advance(&fixture, NS_PER_MS);
	probe_init(&more, fixture.engine);
	check_int(tw_schedule(fixture.engine, 0, &probe_kind, &more, NULL), -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_int(tw_schedule(fixture.engine, 0, &probe_kind, &more, NULL), 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	check_int(more.runs, 1);
	fixture_close(&fixture);
}

/* A hook that blocks, with somebody who waits for what it was offered. */
static struct gate hook_gate;

static void block(const struct tw_due *due, size_t count)
{
	(void)due;
	(void)count;
	gate_kind.callback((struct tw_handle){0}, &hook_gate);
}

static void *wait_main(void *handle)
{
	return (void *)(intptr_t)tw_cancel_wait(*(const struct tw_handle *)handle, PATIENCE_NS);
}

static void hook_hold(struct fixture *fixture)
{
	executor.inside = block;
	gate_init(&hook_gate);
	fixture_settle(fixture);
	check_int(tw_clock_set(fixture->clock, fixture->now_ns += NS_PER_MS), 0);
	gate_await(&hook_gate);
}

Test(executor, a_wait_for_one_that_is_refused)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;
	pthread_t thread;
	void *outcome;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	handle = probe_schedule(&fixture, &probe, 0);
	hook_hold(&fixture);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(tw_reschedule(handle, 0), TW_RESCHEDULE_RUNNING);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	check_int(pthread_create(&thread, NULL, wait_main, &handle), 0);
	sleep_ns(20 * NS_PER_MS);
	gate_open(&hook_gate);
	check_int(pthread_join(thread, &outcome), 0);
	check_int((intptr_t)outcome, TW_CANCEL_DONE);
	check_int(probe.runs, 0);
	check_int(probe.end, TW_END_CANCELLED);
	/* The hook has returned. */
	fixture_settle(&fixture);
	executor.inside = NULL;
	fixture_close(&fixture);
}

/* The producers go on meanwhile, and stop with a deadline says that it cannot end yet. */
Test(executor, a_hook_that_blocks)
{
	struct fixture fixture;
	struct probe probe, more;

	executor_open(&fixture, TW_REFUSAL_RUN, 0);
	probe_schedule(&fixture, &probe, 0);
	hook_hold(&fixture);
	executor.inside = NULL;
	probe_schedule(&fixture, &more, NS_PER_S);
	check_int(tw_engine_settle(fixture.engine, 10 * NS_PER_MS), -ETIMEDOUT);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, 10 * NS_PER_MS),
		  -ETIMEDOUT);
	check_int(probe.runs, 0);
	gate_open(&hook_gate);
	fixture_stop(&fixture);
	check_int(probe.runs, 1);
	check_int(more.end, TW_END_HANDED_BACK);
	fixture_close(&fixture);
}

/* A hook that calls back: what a callback on the worker may. */
static struct {
	struct tw_handle peer;
	int scheduled, cancelled, own, stopped, settled, run, again;
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
	inside.settled = tw_engine_settle(executor.engine, TW_NEVER);
	inside.run = tw_due_run(&due[0]);
	inside.again = tw_due_run(&due[0]);
}

Test(executor, a_hook_that_calls_back)
{
	struct fixture fixture;
	struct probe probe, peer;

	for (uint32_t refusal = TW_REFUSAL_RUN; refusal <= TW_REFUSAL_DROP; refusal++) {
		memset(&inside, 0, sizeof(inside));
		executor_open(&fixture, refusal, 0);
		executor.inside = call_back;
		inside.peer = probe_schedule(&fixture, &peer, NS_PER_S);
		fixture_settle(&fixture);
		probe_schedule(&fixture, &probe, 0);
		fixture_advance(&fixture, NS_PER_MS);
		check_int(inside.scheduled, 0);
		check_int(inside.cancelled, TW_CANCEL_DONE);
		check_int(inside.own, TW_CANCEL_RUNNING);
		check_int(inside.stopped, -EDEADLK);
		check_int(inside.settled, -EDEADLK);
		/* It has run it itself, and says that it has refused it. */
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

Test(executor, dropped_ones)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_DROP, 0);
	handle = probe_schedule(&fixture, &probe, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(dropped.count, 1);
	check_true(dropped.arg == &probe && dropped.kind == &probe_final_kind);
	check_int(dropped.scheduled, 0);
	check_int(probe.runs, 0);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_DROPPED);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	check_int(stats_of(fixture.engine).dropped, 1);
	check_int(stats_of(fixture.engine).executor_refused, 1);
	check_int(stats_of(fixture.engine).expired, 1);
	fixture_advance(&fixture, NS_PER_S);
	check_int(executor.calls, 1);
	fixture_close(&fixture);
}

/* The drop hook stands where the callback would: its schedule takes over the place. */
Test(executor, dropped_within_the_limit)
{
	struct tw_options options = executor_options(TW_REFUSAL_DROP, 0);
	struct fixture fixture;
	struct probe probe;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	dropped.engine = fixture.engine;
	probe_schedule(&fixture, &probe, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(dropped.count, 1);
	check_int(dropped.scheduled, 0);
	check_int(tw_schedule(fixture.engine, 0, &count_kind, &dropped.runs, NULL), -EAGAIN);
	fixture_close(&fixture);
}

/* Of a chain runs are dropped, and the chain goes on. */
Test(executor, dropped_runs_of_a_chain)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_DROP, 0);
	probe_init(&probe, fixture.engine);
	period.runs = 3;
	check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &probe, NULL),
		  0);
	fixture_settle(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(dropped.count, 1);
	check_int(probe.finalised, 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	check_int(probe.runs, 1);
	executor.accept = 0;
	fixture_settle(&fixture);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(dropped.count, 2);
	check_int(probe.finalised, 1);
	check_int(probe.end, TW_END_DROPPED);
	check_int(stats_of(fixture.engine).expired, 1);
	check_int(stats_of(fixture.engine).periodic_runs, 3);
	check_int(stats_of(fixture.engine).dropped, 2);
	fixture_close(&fixture);
}

Test(executor, requeued_runs_of_a_chain)
{
	struct tw_period period = TW_PERIOD_RATE(10 * NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_REQUEUE, 0);
	probe_init(&probe, fixture.engine);
	period.runs = 2;
	check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &probe, NULL),
		  0);
	fixture_settle(&fixture);
	for (int tick = 0; tick < 15; tick++)
		fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 5);
	check_int(stats_of(fixture.engine).periodic_runs, 0);
	executor.accept = 1;
	fixture_advance(&fixture, NS_PER_MS);
	run_all();
	fixture_settle(&fixture);
	check_int(probe.runs, 1);
	/* On the grid again. */
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_int(executor.count, 1);
	run_all();
	check_int(probe.runs, 2);
	check_int(probe.end, TW_END_EXPIRED);
	check_int(stats_of(fixture.engine).periodic_runs, 2);
	fixture_close(&fixture);
}

/* Cancelled while it is offered, a chain ends, whatever becomes of refused ones. */
static void stop_chain(const struct tw_due *due, size_t count)
{
	(void)count;
	inside.cancelled = tw_cancel(due[0].handle);
}

Test(executor, a_chain_that_is_cancelled_while_it_is_offered)
{
	struct tw_period period = TW_PERIOD_RATE(NS_PER_MS);
	struct fixture fixture;
	struct probe probe;

	for (uint32_t refusal = TW_REFUSAL_RUN; refusal <= TW_REFUSAL_DROP; refusal++) {
		executor_open(&fixture, refusal, 0);
		executor.inside = stop_chain;
		probe_init(&probe, fixture.engine);
		check_int(tw_schedule_periodic(fixture.engine, &period, &probe_final_kind, &probe,
					       NULL),
			  0);
		fixture_settle(&fixture);
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

/* Only its owner's, refused: still only its owner's. */
static void *cancel_main(void *handle)
{
	return (void *)(intptr_t)tw_cancel(*(const struct tw_handle *)handle);
}

Test(executor, an_owners_timeout_that_is_requeued)
{
	struct tw_options options = executor_options(TW_REFUSAL_REQUEUE, 0);
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
	handle = must_schedule(fixture.engine, 0, &kind, &probe);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(executor.calls, 1);
	/* The loop is not told that it is due before the next tick. */
	check_int(tw_next_due(fixture.engine), 2 * NS_PER_MS);
	check_int(tw_poll(fixture.engine, 0), 0);
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

/* A hook that ends the worker's thread: what it was offered is refused, and stop comes to it. */
static void end_thread(const struct tw_due *due, size_t count)
{
	(void)due;
	(void)count;
	pthread_exit(NULL);
}

Test(executor, a_hook_that_ends_its_thread)
{
	static const enum tw_end ends[] = {TW_END_EXPIRED, TW_END_HANDED_BACK, TW_END_DROPPED};
	struct fixture fixture;
	struct probe probe;

	for (uint32_t refusal = TW_REFUSAL_RUN; refusal <= TW_REFUSAL_DROP; refusal++) {
		executor_open(&fixture, refusal, 0);
		executor.inside = end_thread;
		probe_schedule(&fixture, &probe, 0);
		fixture_settle(&fixture);
		check_int(tw_clock_set(fixture.clock, fixture.now_ns += NS_PER_MS), 0);
		for (int i = 0; i < 6000 && tw_engine_state(fixture.engine) != TW_ENGINE_FAILED;
		     i++)
			sleep_ns(NS_PER_MS);
		check_int(tw_engine_state(fixture.engine), TW_ENGINE_FAILED);
		fixture_stop(&fixture);
		check_int(probe.runs, refusal == TW_REFUSAL_RUN);
		check_int(probe.finalised, 1);
		check_int(probe.end, ends[refusal]);
		fixture_close(&fixture);
	}
}

Test(executor, bad_options)
{
	struct tw_options options = fixture_options();
	struct tw_engine *engine = NULL;

	options.refusal = TW_REFUSAL_REQUEUE;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.dispatch = on_dispatch;
	options.refusal = TW_REFUSAL_DROP;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.refusal = TW_REFUSAL_DROP + 1;
	options.drop = on_drop;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.refusal = TW_REFUSAL_RUN;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.refusal = TW_REFUSAL_REQUEUE;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.drop = NULL;
	options.reserved = 1;
	check_int(tw_engine_create(&options, &engine), -EINVAL);
	options.reserved = 0;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_destroy(engine), 0);
}

Test(executor, bad_kinds)
{
	struct tw_kind kind = inline_probe_kind();
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, TW_REFUSAL_RUN, 0);
	probe_init(&probe, fixture.engine);
	kind.flags = 4;
	check_int(tw_schedule(fixture.engine, 0, &kind, &probe, NULL), -EINVAL);
	/* Only its owner's: a worker thread's callbacks alone. */
	kind.flags = TW_KIND_FLAG_INLINE | TW_KIND_FLAG_OWNER_ONLY;
	check_int(tw_schedule(fixture.engine, 0, &kind, &probe, NULL), -EPERM);
	fixture_close(&fixture);
}
