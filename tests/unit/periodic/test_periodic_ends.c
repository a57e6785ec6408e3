/* SPDX-License-Identifier: MIT */
/*
 * How periodic timeouts (chains) end, and what calls return meanwhile. Chains are cancelled in each
 * place where they can be, and by each caller that may cancel them. Other tests: stop, late runs, a
 * callback that ends its thread, and the limit of pending timeouts.
 *
 * Seen to fail with these defects: the cancel of a running chain is forgotten at the end of the
 * run; such a cancel runs the finaliser itself; a cancel is not counted; a chain that ends does not
 * give back its place under the limit.
 */
#include "asleep.h"
#include "periodic_scene.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

Test(periodic_ends, cancel_in_ingress_ends_the_chain_without_a_run)
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

/* The results of the calls in a callback that cancels its own chain. */
struct self {
	int runs, finalised;
	enum tw_end end;
	int cancel, again, wait, reschedule, state_before, state_after, next;
	int stop_at; /* the run that makes the calls */
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
	handle = must_chain(&fixture, &ten_ms, &self_kind, &own);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	check_self(&own);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

/* Schedules a chain and moves the clock to `ms`. Returns when the first run has begun. */
static struct tw_handle hold_until(struct fixture *fixture, struct held *held, int64_t ms)
{
	struct tw_handle handle;

	memset(held, 0, sizeof(*held));
	gate_init(&held->gate);
	handle = must_chain(fixture, &ten_ms, &held_kind, held);
	fixture_flush(fixture);
	fixture->now_ns = ms * NS_PER_MS;
	check_int(tw_clock_set(fixture->clock, fixture->now_ns), 0);
	gate_await(&held->gate);
	return handle;
}

static struct tw_handle hold(struct fixture *fixture, struct held *held)
{
	return hold_until(fixture, held, 11);
}

Test(periodic_ends, cancel_during_a_run_stops_the_chain)
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
	asleep_thread number;
	struct held *held;
	int outcome;
	int finalised;
};

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	asleep_announce(&waiter->number);
	waiter->outcome = tw_cancel_wait(waiter->handle, PATIENCE_NS);
	waiter->finalised = waiter->held->finalised;
	return NULL;
}

Test(periodic_ends, cancel_wait_waits_for_the_run)
{
	struct fixture fixture;
	struct waiter waiter = {.number = 0};
	struct held held;
	pthread_t thread;

	fixture_open(&fixture, NULL);
	waiter.held = &held;
	waiter.handle = hold(&fixture, &held);
	check_int(pthread_create(&thread, NULL, waiter_main, &waiter), 0);
	check_true(asleep_await(&waiter.number));
	check_true(tw_timeout_state(waiter.handle) != TW_STATE_INIT);
	gate_open(&held.gate);
	check_int(pthread_join(thread, NULL), 0);
	/* The waiting call itself stopped the chain, so its outcome is DONE. */
	check_int(waiter.outcome, TW_CANCEL_DONE);
	check_int(waiter.finalised, 1);
	fixture_close(&fixture);
}

static void *stopper_main(void *argument)
{
	fixture_stop(argument);
	return NULL;
}

/* Stops the engine while a run is held at `ms`. The chain's next point is at 20 ms. */
static void stop_while_it_runs(int64_t ms)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct held held;
	pthread_t thread;

	fixture_open(&fixture, NULL);
	handle = hold_until(&fixture, &held, ms);
	check_int(pthread_create(&thread, NULL, stopper_main, &fixture), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_STOPPING));
	gate_open(&held.gate);
	check_int(pthread_join(thread, NULL), 0);
	check_int(held.runs, 1);
	check_int(held.finalised, 1);
	check_int(held.end, TW_END_UNEXPIRED);
	check_int(fixture.back.count, 1);
	check_true(fixture.back.arg == &held && fixture.back.kind == &held_kind);
	check_int(fixture.back.remaining_ns, (20 - ms) * NS_PER_MS);
	check_int(tw_cancel(handle), TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
}

Test(periodic_ends, stop_while_it_runs_hands_it_back_once)
{
	stop_while_it_runs(11);
}

/* The chain has missed runs, which the worker would make up for in the next turn. */
Test(periodic_ends, stop_while_it_catches_up_hands_it_back_once)
{
	stop_while_it_runs(95);
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
	check_end(&probe[0], TW_END_UNEXPIRED);
	check_end(&probe[1], TW_END_UNEXPIRED);
}

Test(periodic_ends, a_callback_ends_its_thread)
{
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	fixture_open(&fixture, NULL);
	probe_init(&probe, fixture.engine);
	handle = must_chain(&fixture, &ten_ms, &exit_kind, &probe);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(tw_clock_set(fixture.clock, 21 * NS_PER_MS), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	fixture_close(&fixture);
	check_int(probe.runs, 2);
	check_int(fixture.back.count, 1);
	check_end(&probe, TW_END_UNEXPIRED);
}

/* In the next test, the late hook is called instead of a run. The chain must continue. */
struct late {
	int count;
	struct tw_handle self;
	const void *arg;
	int64_t late_by_ns;
};

static void late_hook(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		      int64_t late_by_ns)
{
	struct late *late = context;

	late->count += kind == &probe_final_kind;
	late->self = self;
	late->arg = arg;
	late->late_by_ns = late_by_ns;
}

Test(periodic_ends, late_runs_go_to_the_hook)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;
	struct late late = {0};

	options.late_ns = 5 * NS_PER_MS;
	options.on_late = late_hook;
	options.late_context = &late;
	fixture_open(&fixture, &options);
	handle = probe_repeat(&fixture, &probe);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	fixture_advance_to(&fixture, 32 * NS_PER_MS);
	/* The run of 20 ms is 12 ms late, so the hook gets it. The run of 30 ms is not late
	 * enough for that. */
	check_int(probe.runs, 2);
	check_int(late.count, 1);
	check_int(late.late_by_ns, 12 * NS_PER_MS);
	check_true(same_handle(late.self, handle) && late.arg == &probe);
	check_int(stats_of(fixture.engine).late, 1);
	check_int(stats_of(fixture.engine).periodic_runs, 3);
	fixture_close(&fixture);
	check_end(&probe, TW_END_UNEXPIRED);
}

/* The results of calls that a callback must not make on its own engine. */
struct asker {
	struct tw_engine *engine;
	int runs, stop, flush, destroy;
};

static void on_asker(struct tw_handle self, void *arg)
{
	struct asker *asker = arg;

	(void)self;
	asker->runs++;
	asker->stop = tw_engine_stop(asker->engine, NULL, NULL, TW_NEVER);
	asker->flush = tw_engine_flush(asker->engine, TW_NEVER);
	asker->destroy = tw_engine_destroy(asker->engine);
}

Test(periodic_ends, its_engine_does_not_end_in_a_run)
{
	static const struct tw_kind kind = TW_KIND(on_asker, NULL);
	struct asker asker = {0};
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	asker.engine = fixture.engine;
	must_chain(&fixture, &ten_ms, &kind, &asker);
	fixture_advance(&fixture, 35 * NS_PER_MS);
	check_int(asker.runs, 3);
	check_int(asker.stop, -EDEADLK);
	check_int(asker.flush, -EDEADLK);
	check_int(asker.destroy, -EDEADLK);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}

/* A run that schedules other timeouts. It may end its own chain first. */
struct visit {
	struct tw_engine *engine;
	atomic_int *count;
	int stop_at; /* the run that cancels its own chain first; 0: none */
	int runs;
	int before, first, second, finalised;
};

static void on_heir(struct tw_handle self, void *arg)
{
	struct visit *heir = arg;

	if (++heir->runs == 1)
		heir->before = tw_schedule(heir->engine, 1, &count_kind, heir->count, NULL);
	if (heir->runs < 2)
		return;
	if (heir->runs == heir->stop_at)
		(void)tw_cancel(self);
	heir->first = tw_schedule_periodic(heir->engine, &ten_ms, &count_kind, heir->count, NULL);
	(void)tw_cancel(self);
	heir->second = tw_schedule(heir->engine, 1, &count_kind, heir->count, NULL);
}

static void on_heir_end(void *arg, enum tw_end end)
{
	struct visit *heir = arg;

	(void)end;
	heir->finalised = tw_schedule(heir->engine, 1, &count_kind, heir->count, NULL);
}

static void inherit(const struct tw_kind *kind, int stop_at)
{
	struct tw_options options = fixture_options();
	struct tw_period period = ten_ms;
	struct fixture fixture;
	atomic_int count = 0;
	struct visit heir = {.count = &count, .stop_at = stop_at};

	options.pending_limit = 1;
	period.runs = stop_at == 0 ? 2 : 0;
	fixture_open(&fixture, &options);
	heir.engine = fixture.engine;
	must_chain(&fixture, &period, kind, &heir);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	fixture_advance_to(&fixture, 21 * NS_PER_MS);
	check_int(heir.runs, 2);
	check_int(heir.before, -EAGAIN);
	check_int(heir.first, 0);
	check_int(heir.second, -EAGAIN);
	check_int(heir.finalised, kind->finaliser != NULL ? -EAGAIN : 0);
	check_int(tw_schedule(fixture.engine, 1, &count_kind, &count, NULL), -EAGAIN);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}

Test(periodic_ends, its_place_goes_to_what_its_last_run_schedules)
{
	static const struct tw_kind bare = TW_KIND(on_heir, NULL);
	static const struct tw_kind final = TW_KIND(on_heir, on_heir_end);

	inherit(&bare, 0);
	inherit(&bare, 2);
	inherit(&final, 0);
	inherit(&final, 2);
}

Test(periodic_ends, chain_takes_one_place_of_the_limit)
{
	struct tw_options options = fixture_options();
	struct self own = {.stop_at = 3};
	struct fixture fixture;
	struct tw_handle handle;
	atomic_int count = 0;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	must_chain(&fixture, &ten_ms, &self_kind, &own);
	for (int i = 0; i < 2; i++) {
		fixture_advance(&fixture, 11 * NS_PER_MS);
		check_int(tw_schedule(fixture.engine, 1, &count_kind, &count, NULL), -EAGAIN);
		check_int(tw_schedule_periodic(fixture.engine, &ten_ms, &count_kind, &count, NULL),
			  -EAGAIN);
	}
	fixture_advance(&fixture, 11 * NS_PER_MS);
	check_self(&own);
	handle = must_chain(&fixture, &ten_ms, &count_kind, &count);
	check_int(tw_schedule(fixture.engine, 1, &count_kind, &count, NULL), -EAGAIN);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	must_schedule(fixture.engine, 1, &count_kind, &count);
	check_int(stats_of(fixture.engine).rejected, 5);
	fixture_close(&fixture);
}
