/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts: how they end, and what is asked of them meanwhile. Cancel in each state and from each
 * place, stop, executors, a callback that ends its thread, bad input, memory, stale handles.
 *
 * Seen to fail: a cancel of a running chain that is forgotten at the end of the run; one that runs the
 * finaliser itself; an executor's chain that stop does not look for again; a run in an executor after the
 * cancel; a block that is not given back; a stale handle that finds a chain's block.
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

static const struct tw_period ten_ms = TW_PERIOD_RATE(10 * NS_PER_MS);

static struct tw_handle must_repeat(struct fixture *fixture, const struct tw_period *period,
				    const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle = {0};

	check_int(tw_schedule_periodic(fixture->engine, period, kind, arg, &handle), 0);
	return handle;
}

/* A probe that repeats, with a finaliser. */
static struct tw_handle probe_repeat(struct fixture *fixture, struct probe *probe)
{
	probe_init(probe, fixture->engine);
	return must_repeat(fixture, &ten_ms, &probe_final_kind, probe);
}

static void check_end(const struct probe *probe, enum tw_end end)
{
	check_int(probe->finalised, 1);
	check_int(probe->end, end);
}

Test(periodic_ends, cancel_in_ingress)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	fixture_open(&fixture, NULL);
	handle = probe_repeat(&fixture, &probe);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_end(&probe, TW_END_CANCELLED);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(probe.runs, 0);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
}

Test(periodic_ends, cancel_between_two_runs)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	fixture_open(&fixture, NULL);
	handle = probe_repeat(&fixture, &probe);
	fixture_advance(&fixture, 25 * NS_PER_MS);
	check_int(probe.runs, 2);
	check_true(same_handle(probe.self, handle));
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	check_int(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_DONE);
	check_end(&probe, TW_END_CANCELLED);
	check_int(tw_timeout_state(handle), TW_STATE_CANCELLED);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_int(probe.runs, 2);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
}

/* What a callback finds that cancels its own chain. */
struct self {
	int runs, finalised;
	enum tw_end end;
	int cancel, again, wait, reschedule, state_before, state_after, next;
	int stop_at; /* in this run */
};

static void on_self(struct tw_handle self, void *arg)
{
	struct self *own = arg;

	if (++own->runs != own->stop_at)
		return;
	own->state_before = tw_timeout_state(self);
	own->reschedule = tw_reschedule(self, 0);
	own->cancel = tw_cancel_wait(self, TW_NEVER);
	own->again = tw_cancel(self);
	own->wait = tw_cancel_wait(self, TW_NEVER);
	own->state_after = tw_timeout_state(self);
	own->next = tw_period_next(self, 1);
}

static void on_self_end(void *arg, enum tw_end end)
{
	struct self *own = arg;

	own->finalised++;
	own->end = end;
}

static const struct tw_kind self_kind = TW_KIND(on_self, on_self_end);

static void check_self(const struct self *own)
{
	check_int(own->runs, 3);
	check_int(own->state_before, TW_STATE_INIT);
	check_int(own->reschedule, TW_RESCHEDULE_RUNNING);
	check_int(own->cancel, TW_CANCEL_STOPPED);
	check_int(own->again, TW_CANCEL_RUNNING);
	check_int(own->wait, TW_CANCEL_RUNNING);
	check_int(own->state_after, TW_STATE_CANCELLED);
	check_int(own->next, 0);
	check_int(own->finalised, 1);
	check_int(own->end, TW_END_CANCELLED);
}

Test(periodic_ends, cancel_by_its_own_callback)
{
	struct self own = {.stop_at = 3};
	struct fixture fixture;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = must_repeat(&fixture, &ten_ms, &self_kind, &own);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_self(&own);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

/* A callback that is held until the test lets it go. */
struct held {
	struct gate gate;
	atomic_int runs, finalised;
	atomic_int end;
};

static void on_held(struct tw_handle self, void *arg)
{
	struct held *held = arg;

	(void)self;
	sem_post(&held->gate.entered);
	while (sem_wait(&held->gate.leave) != 0)
		;
	atomic_fetch_add(&held->runs, 1);
}

static void on_held_end(void *arg, enum tw_end end)
{
	struct held *held = arg;

	atomic_store(&held->end, end);
	atomic_fetch_add(&held->finalised, 1);
}

static const struct tw_kind held_kind = TW_KIND(on_held, on_held_end);

/* Its first run is under way. */
static struct tw_handle hold(struct fixture *fixture, struct held *held)
{
	struct tw_handle handle;

	memset(held, 0, sizeof(*held));
	gate_init(&held->gate);
	handle = must_repeat(fixture, &ten_ms, &held_kind, held);
	fixture_settle(fixture);
	fixture->now_ns += 11 * NS_PER_MS;
	check_int(tw_clock_set(fixture->clock, fixture->now_ns), 0);
	gate_await(&held->gate);
	return handle;
}

Test(periodic_ends, cancel_while_it_runs)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct tw_timeout seen = {.size = sizeof(seen)};
	struct held held;

	fixture_open(&fixture, NULL);
	handle = hold(&fixture, &held);
	check_int(tw_timeout_get(handle, &seen), 0);
	check_int(seen.state, TW_STATE_INIT);
	check_true(seen.arg == &held && seen.kind == &held_kind);
	check_int(tw_engine_pending(fixture.engine), 1);
	check_int(tw_reschedule(handle, 0), TW_RESCHEDULE_RUNNING);
	check_int(tw_cancel(handle), TW_CANCEL_STOPPED);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(tw_timeout_state(handle), TW_STATE_CANCELLED);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(tw_cancel_wait(handle, 0), -ETIMEDOUT);
	check_int(held.finalised, 0);
	gate_open(&held.gate);
	check_int(tw_cancel_wait(handle, PATIENCE_NS), TW_CANCEL_CANCELLED);
	check_int(held.runs, 1);
	check_int(held.finalised, 1);
	check_int(held.end, TW_END_CANCELLED);
	check_int(tw_timeout_get(handle, &seen), 0);
	check_true(seen.arg == NULL && seen.kind == &held_kind);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

struct waiter {
	struct tw_handle handle;
	struct held *held;
	int outcome;
	int finalised;
};

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	waiter->outcome = tw_cancel_wait(waiter->handle, PATIENCE_NS);
	waiter->finalised = waiter->held->finalised;
	return NULL;
}

Test(periodic_ends, cancel_that_waits_for_the_run)
{
	struct fixture fixture;
	struct waiter waiter;
	struct held held;
	pthread_t thread;

	fixture_open(&fixture, NULL);
	waiter.held = &held;
	waiter.handle = hold(&fixture, &held);
	check_int(pthread_create(&thread, NULL, waiter_main, &waiter), 0);
	while (tw_timeout_state(waiter.handle) == TW_STATE_INIT)
		sleep_ns(NS_PER_US);
	sleep_ns(NS_PER_MS);
	gate_open(&held.gate);
	check_int(pthread_join(thread, NULL), 0);
	/* It is the one that stopped the chain. */
	check_int(waiter.outcome, TW_CANCEL_DONE);
	check_int(waiter.finalised, 1);
	fixture_close(&fixture);
}

static void *stopper_main(void *argument)
{
	fixture_stop(argument);
	return NULL;
}

Test(periodic_ends, stop_while_it_runs_hands_it_back_once)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct held held;
	pthread_t thread;

	fixture_open(&fixture, NULL);
	handle = hold(&fixture, &held);
	check_int(pthread_create(&thread, NULL, stopper_main, &fixture), 0);
	while (tw_engine_state(fixture.engine) != TW_ENGINE_STOPPING)
		sleep_ns(NS_PER_US);
	gate_open(&held.gate);
	check_int(pthread_join(thread, NULL), 0);
	check_int(held.runs, 1);
	check_int(held.finalised, 1);
	check_int(held.end, TW_END_HANDED_BACK);
	check_int(fixture.back.count, 1);
	check_true(fixture.back.arg == &held && fixture.back.kind == &held_kind);
	check_int(fixture.back.remaining_ns, 9 * NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
}

Test(periodic_ends, stop_hands_back_what_waits)
{
	struct fixture fixture;
	struct probe probe[2];

	fixture_open(&fixture, NULL);
	probe_repeat(&fixture, &probe[0]);
	fixture_advance(&fixture, 15 * NS_PER_MS);
	probe_repeat(&fixture, &probe[1]);
	fixture_close(&fixture);
	check_int(fixture.back.count, 2);
	check_int(probe[0].runs, 1);
	check_int(probe[1].runs, 0);
	check_end(&probe[0], TW_END_HANDED_BACK);
	check_end(&probe[1], TW_END_HANDED_BACK);
}

/* Keeps what it accepts until the test runs it. */
struct executor {
	size_t accept;
	atomic_int count;
	struct tw_due due[16];
};

static size_t executor_hook(void *context, const struct tw_due *due, size_t count)
{
	struct executor *executor = context;
	size_t i;

	for (i = 0; i < count && i < executor->accept; i++)
		executor->due[executor->count++ % 16] = due[i];
	return i;
}

static void executor_open(struct fixture *fixture, struct executor *executor)
{
	struct tw_options options = fixture_options();

	*executor = (struct executor){.accept = 16};
	options.dispatch = executor_hook;
	options.dispatch_context = executor;
	fixture_open(fixture, &options);
}

Test(periodic_ends, in_an_executor_runs_do_not_overlap)
{
	struct executor executor;
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, &executor);
	handle = probe_repeat(&fixture, &probe);
	fixture_advance_to(&fixture, 50 * NS_PER_MS);
	/* Four points have passed, and it is due once. */
	check_int(executor.count, 1);
	check_true(same_handle(executor.due[0].handle, handle));
	check_true(executor.due[0].arg == &probe && executor.due[0].kind == &probe_final_kind);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	for (int run = 1; run <= 4; run++) {
		check_int(tw_due_run(&executor.due[run - 1]), 0);
		check_int(probe.runs, run);
		fixture_settle(&fixture);
		check_int(executor.count, run < 4 ? run + 1 : 4);
	}
	check_int(tw_due_run(&executor.due[3]), -ESTALE);
	fixture_advance_to(&fixture, 51 * NS_PER_MS);
	check_int(executor.count, 5);
	check_int(tw_due_run(&executor.due[4]), 0);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_end(&probe, TW_END_CANCELLED);
	fixture_close(&fixture);
}

Test(periodic_ends, cancelled_on_its_way_it_is_left_out)
{
	struct executor executor;
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, &executor);
	handle = probe_repeat(&fixture, &probe);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_STOPPED);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(probe.finalised, 0);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(probe.runs, 0);
	check_end(&probe, TW_END_CANCELLED);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	check_int(tw_due_run(&executor.due[0]), -ESTALE);
	fixture_close(&fixture);
}

Test(periodic_ends, refused_it_runs_on_the_worker)
{
	struct executor executor;
	struct fixture fixture;
	struct probe probe;

	executor_open(&fixture, &executor);
	executor.accept = 0;
	probe_repeat(&fixture, &probe);
	fixture_advance_to(&fixture, 51 * NS_PER_MS);
	check_int(probe.runs, 5);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
	check_end(&probe, TW_END_HANDED_BACK);
}

Test(periodic_ends, stop_waits_for_an_executor_and_hands_back)
{
	struct executor executor;
	struct fixture fixture;
	struct probe probe[2];

	executor_open(&fixture, &executor);
	probe_repeat(&fixture, &probe[0]);
	probe_repeat(&fixture, &probe[1]);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(executor.count, 2);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, 50 * NS_PER_MS),
		  -ETIMEDOUT);
	/* One that has run waits again, and one that is cancelled does not. */
	check_int(tw_cancel(executor.due[1].handle), TW_CANCEL_STOPPED);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(tw_due_run(&executor.due[1]), 0);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
	check_int(probe[0].runs, 1);
	check_end(&probe[0], TW_END_HANDED_BACK);
	check_int(probe[1].runs, 0);
	check_end(&probe[1], TW_END_CANCELLED);
}

static void on_exit_run(struct tw_handle self, void *arg)
{
	struct probe *probe = arg;

	(void)self;
	if (atomic_fetch_add(&probe->runs, 1) == 1)
		pthread_exit(NULL);
}

static void on_exit_end(void *arg, enum tw_end end)
{
	struct probe *probe = arg;

	atomic_store(&probe->end, end);
	atomic_fetch_add(&probe->finalised, 1);
}

static const struct tw_kind exit_kind = TW_KIND(on_exit_run, on_exit_end);

Test(periodic_ends, a_callback_ends_its_thread)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_init(&probe, fixture.engine);
	handle = must_repeat(&fixture, &ten_ms, &exit_kind, &probe);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(tw_clock_set(fixture.clock, 21 * NS_PER_MS), 0);
	while (tw_engine_state(fixture.engine) != TW_ENGINE_FAILED)
		sleep_ns(NS_PER_US);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	fixture_close(&fixture);
	check_int(probe.runs, 2);
	check_int(fixture.back.count, 1);
	check_end(&probe, TW_END_HANDED_BACK);
}

static void *due_main(void *argument)
{
	(void)tw_due_run(argument);
	return NULL;
}

Test(periodic_ends, a_callback_ends_an_executors_thread)
{
	struct executor executor;
	struct fixture fixture;
	struct probe probe;
	pthread_t thread;

	executor_open(&fixture, &executor);
	probe_init(&probe, fixture.engine);
	must_repeat(&fixture, &ten_ms, &exit_kind, &probe);
	for (int run = 0; run < 3; run++) {
		fixture_advance_to(&fixture, (11 + 10 * run) * NS_PER_MS);
		check_int(executor.count, run + 1);
		check_int(pthread_create(&thread, NULL, due_main, &executor.due[run]), 0);
		check_int(pthread_join(thread, NULL), 0);
		check_int(probe.runs, run + 1);
	}
	fixture_close(&fixture);
	check_end(&probe, TW_END_HANDED_BACK);
}

Test(periodic_ends, one_place_of_the_limit)
{
	struct tw_options options = fixture_options();
	struct self own = {.stop_at = 3};
	struct fixture fixture;
	struct tw_handle handle;
	atomic_int count = 0;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	must_repeat(&fixture, &ten_ms, &self_kind, &own);
	for (int i = 0; i < 2; i++) {
		fixture_advance(&fixture, 11 * NS_PER_MS);
		check_int(tw_schedule(fixture.engine, 0, &count_kind, &count, NULL), -EAGAIN);
		check_int(tw_schedule_periodic(fixture.engine, &ten_ms, &count_kind, &count, NULL),
			  -EAGAIN);
	}
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_self(&own);
	handle = must_repeat(&fixture, &ten_ms, &count_kind, &count);
	check_int(tw_schedule(fixture.engine, 0, &count_kind, &count, NULL), -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	must_schedule(fixture.engine, 0, &count_kind, &count);
	check_int(stats_of(fixture.engine).refused, 5);
	fixture_close(&fixture);
}

static int refusal(struct fixture *fixture, const struct tw_period *period)
{
	struct tw_handle handle = {.birth = 77};
	int error = tw_schedule_periodic(fixture->engine, period, &count_kind, NULL, &handle);

	check_int(handle.birth, 77);
	return error;
}

Test(periodic_ends, bad_input)
{
	static const struct tw_kind owners = TW_KIND_OWNER_ONLY(on_self, NULL);
	static const struct tw_kind none = TW_KIND(NULL, NULL);
	struct tw_period period = ten_ms;
	struct fixture fixture;
	struct {
		struct tw_period period;
		uint64_t more[2];
	} newer = {ten_ms, {0, 0}};

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_periodic(NULL, &ten_ms, &count_kind, NULL, NULL), -EINVAL);
	check_int(tw_schedule_periodic(fixture.engine, &ten_ms, NULL, NULL, NULL), -EINVAL);
	check_int(tw_schedule_periodic(fixture.engine, &ten_ms, &none, NULL, NULL), -EINVAL);
	check_int(tw_schedule_periodic(fixture.engine, &ten_ms, &owners, NULL, NULL), -EINVAL);
	check_int(refusal(&fixture, NULL), -EINVAL);
	period.size--;
	check_int(refusal(&fixture, &period), -EINVAL);
	period.size = 4097;
	check_int(refusal(&fixture, &period), -E2BIG);
	newer.period.size = sizeof(newer);
	check_int(tw_schedule_periodic(fixture.engine, &newer.period, &count_kind, NULL, NULL), 0);
	newer.more[1] = 1;
	check_int(refusal(&fixture, &newer.period), -E2BIG);
	for (int64_t wrong = -1; wrong <= 0; wrong++) {
		period = (struct tw_period)TW_PERIOD_RATE(wrong);
		check_int(refusal(&fixture, &period), -EINVAL);
	}
	period = (struct tw_period)TW_PERIOD_RATE(INT64_MIN);
	check_int(refusal(&fixture, &period), -ERANGE);
	period = ten_ms;
	period.first_ns = INT64_MIN;
	check_int(refusal(&fixture, &period), -ERANGE);
	period = ten_ms;
	period.mode = TW_PERIOD_FIXED_DELAY + 1;
	check_int(refusal(&fixture, &period), -EINVAL);
	period = ten_ms;
	period.missed = TW_MISSED_DELAY + 1;
	check_int(refusal(&fixture, &period), -EINVAL);
	period = ten_ms;
	period.jitter_ppm = 1000001;
	check_int(refusal(&fixture, &period), -EINVAL);
	period = ten_ms;
	period.reserved = 1;
	check_int(refusal(&fixture, &period), -EINVAL);
	/* A past begin is now. */
	period = ten_ms;
	period.first_ns = -5;
	must_repeat(&fixture, &period, &count_kind, &fixture.back.count);
	check_int(tw_engine_pending(fixture.engine), 2);
	fixture_stop(&fixture);
	check_int(refusal(&fixture, &ten_ms), -ESHUTDOWN);
	fixture_close(&fixture);
}

struct nexts {
	struct tw_handle peer;
	int runs;
	int own, zeros, minimum, other;
};

static void on_nexts(struct tw_handle self, void *arg)
{
	struct nexts *nexts = arg;

	nexts->runs++;
	nexts->zeros = tw_period_next((struct tw_handle){0}, 1);
	nexts->minimum = tw_period_next(self, INT64_MIN);
	nexts->other = tw_period_next(nexts->peer, 1);
	nexts->own = tw_period_next(self, -7);
}

static const struct tw_kind nexts_kind = TW_KIND(on_nexts, NULL);

Test(periodic_ends, period_next_is_for_its_own_run)
{
	struct fixture fixture;
	struct nexts chain = {0}, once = {0};
	struct tw_period period = ten_ms;
	struct tw_handle handle;

	period.runs = 3;
	fixture_open(&fixture, NULL);
	chain.peer = must_schedule(fixture.engine, TW_NEVER, &nexts_kind, NULL);
	handle = must_repeat(&fixture, &period, &nexts_kind, &chain);
	once.peer = handle;
	must_schedule(fixture.engine, 0, &nexts_kind, &once);
	check_int(tw_period_next(handle, 1), -EPERM);
	fixture_advance_to(&fixture, 5 * NS_PER_MS);
	check_int(once.own, -EPERM);
	check_int(once.other, -EPERM);
	/* An interval of nothing, three times. */
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(chain.runs, 3);
	check_int(chain.zeros, -EINVAL);
	check_int(chain.minimum, -ERANGE);
	check_int(chain.other, -EPERM);
	check_int(chain.own, 0);
	fixture_close(&fixture);
}

Test(periodic_ends, memory_comes_back)
{
	struct fixture fixture;
	struct probe probe[2000];
	struct tw_handle handle[2000];
	uint64_t bytes = 0;

	fixture_open(&fixture, NULL);
	for (int round = 0; round < 60; round++) {
		for (int i = 0; i < 2000; i++)
			handle[i] = probe_repeat(&fixture, &probe[i]);
		if (round % 3 != 0)
			fixture_advance(&fixture, (round % 3 == 1 ? 1 : 11) * NS_PER_MS);
		for (int i = 0; i < 2000; i++)
			check_int(tw_cancel(handle[i]), TW_CANCEL_DONE);
		fixture_advance(&fixture, NS_PER_MS);
		if (round == 10)
			bytes = tw_memory_slab_bytes();
	}
	check_int(tw_memory_slab_bytes(), bytes);
	fixture_close(&fixture);
}

Test(periodic_ends, no_memory)
{
	struct fixture fixture;
	atomic_int count = 0;
	int accepted = 0;
	int error;

	tw_memory_cap_set(1);
	fixture_open(&fixture, NULL);
	while ((error = tw_schedule_periodic(fixture.engine, &ten_ms, &count_kind, &count, NULL)) ==
	       0)
		accepted++;
	check_int(error, -ENOMEM);
	check_int(tw_engine_pending(fixture.engine), accepted);
	check_int(stats_of(fixture.engine).refused, 1);
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_int(count, accepted);
	fixture_stop(&fixture);
	check_int(fixture.back.count, accepted);
	tw_memory_cap_set(0);
	fixture_close(&fixture);
}

Test(periodic_ends, stale_handles_do_not_find_a_chains_own)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	struct fixture fixture;
	struct tw_handle old[300];
	atomic_int count = 0;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < 300; i++)
		old[i] = must_schedule(fixture.engine, NS_PER_MS, &count_kind, &count);
	for (int i = 0; i < 300; i++)
		check_int(tw_cancel(old[i]), TW_CANCEL_DONE);
	/* Each takes two of those. */
	for (int i = 0; i < 300; i++)
		must_repeat(&fixture, &ten_ms, &count_kind, &count);
	for (int i = 0; i < 300; i++) {
		int error = tw_timeout_get(old[i], &seen);

		if (error == 0)
			check_true(seen.kind == &count_kind && seen.arg == &count &&
				   seen.engine == fixture.engine);
		else
			check_int(error, -ESTALE);
		check_int(tw_cancel(old[i]), error == 0 ? TW_CANCEL_CANCELLED : TW_CANCEL_STALE);
	}
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_int(count, 300);
	fixture_close(&fixture);
	check_int(fixture.back.count, 300);
}
