/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts that run on an executor: cancel, wait, limit, reschedule, stop, and a run that
 * ends its thread.
 *
 * Seen to fail with these defects:
 * - stop does not look again for a chain whose run in an executor has ended;
 * - a chain runs in an executor after its cancel;
 * - two runs of a chain overlap;
 * - the end of a run does not wake the worker;
 * - after a run inside another engine's callback, chain_again() files the chain as if it were on
 *   its own worker (planted: its check `run->thread->worker == run->worker` compares with NULL
 *   instead).
 */
#include "asleep.h"
#include "periodic_scene.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

/* Keeps the timeouts that it accepts until the test runs them. */
struct executor {
	size_t accept;
	atomic_int count;
	struct tw_due due[16];
};

static size_t executor_hook(void *context, const struct tw_due *due, size_t count)
{
	struct executor *executor = context;
	size_t i;

	for (i = 0; i < count && i < executor->accept; i++) {
		executor->due[atomic_load(&executor->count) % 16] = due[i];
		/* Counts last, because a thread that sees the new count may run the timeout. */
		atomic_fetch_add(&executor->count, 1);
	}
	return i;
}

static struct tw_options executor_options(struct executor *executor)
{
	struct tw_options options = fixture_options();

	*executor = (struct executor){.accept = 16};
	options.dispatch = executor_hook;
	options.dispatch_context = executor;
	return options;
}

static void executor_open(struct fixture *fixture, struct executor *executor)
{
	struct tw_options options = executor_options(executor);

	fixture_open(fixture, &options);
}

Test(periodic_executor, in_an_executor_runs_do_not_overlap)
{
	struct executor executor;
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, &executor);
	handle = probe_repeat(&fixture, &probe);
	fixture_advance_to(&fixture, 50 * NS_PER_MS);
	/* Four points have passed, but the chain is due only once. */
	check_int(executor.count, 1);
	check_true(same_handle(executor.due[0].handle, handle));
	check_true(executor.due[0].arg == &probe && executor.due[0].kind == &probe_final_kind);
	check_int(tw_timeout_state(handle), TW_STATE_INIT);
	for (int run = 1; run <= 4; run++) {
		check_int(tw_due_run(&executor.due[run - 1]), 0);
		check_int(probe.runs, run);
		fixture_flush(&fixture);
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

Test(periodic_executor, cancelled_on_its_way_it_is_left_out)
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

Test(periodic_executor, rejected_it_runs_on_the_worker)
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
	check_end(&probe, TW_END_UNEXPIRED);
}

Test(periodic_executor, stop_waits_for_an_executor_and_hands_back)
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
	/*
	 * The chain whose run has ended is pending again. The cancelled chain must not be pending.
	 */
	check_int(tw_cancel(executor.due[1].handle), TW_CANCEL_STOPPED);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(tw_due_run(&executor.due[1]), 0);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
	check_int(probe[0].runs, 1);
	check_end(&probe[0], TW_END_UNEXPIRED);
	check_int(probe[1].runs, 0);
	check_end(&probe[1], TW_END_CANCELLED);
}

/* The calls must return the same as for a one-shot timeout, except that the chain counts as
 * pending. */
Test(periodic_executor, calls_on_a_chain_in_an_executor_return_their_codes)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	struct executor executor;
	struct fixture fixture;
	struct tw_handle handle;
	struct probe probe;

	executor_open(&fixture, &executor);
	handle = probe_repeat(&fixture, &probe);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(executor.count, 1);
	check_int(tw_timeout_get(handle, &seen), 0);
	check_int(seen.state, TW_STATE_INIT);
	check_int(seen.deadline_ns, 10 * NS_PER_MS);
	check_true(seen.arg == &probe && seen.kind == &probe_final_kind);
	check_int(tw_reschedule(handle, 0), TW_RESCHEDULE_RUNNING);
	check_int(tw_reschedule_at(handle, TW_NEVER), TW_RESCHEDULE_RUNNING);
	check_int(tw_period_next(handle, 1), -EPERM);
	check_int(tw_engine_pending(fixture.engine), 1);
	check_int(stats_of(fixture.engine).periodic_runs, 1);
	check_int(tw_due_run(&executor.due[0]), 0);
	fixture_advance_to(&fixture, 21 * NS_PER_MS);
	check_int(executor.count, 2);
	check_int(tw_cancel_wait(handle, 0), -ETIMEDOUT);
	check_int(tw_due_run(&executor.due[1]), 0);
	check_int(probe.runs, 1);
	check_int(tw_cancel_wait(handle, 0), TW_CANCEL_CANCELLED);
	fixture_close(&fixture);
}

/* Each chain has two runs. One chain makes its last run, and the other is cancelled before it. */
Test(periodic_executor, chain_ends_after_its_number_of_runs)
{
	struct tw_period period = ten_ms;
	struct executor executor;
	struct fixture fixture;
	struct tw_handle handle[2];
	struct probe probe[2];

	period.runs = 2;
	executor_open(&fixture, &executor);
	for (int i = 0; i < 2; i++) {
		probe_init(&probe[i], fixture.engine);
		handle[i] = must_chain(&fixture, &period, &probe_final_kind, &probe[i]);
	}
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(tw_due_run(&executor.due[0]), 0);
	check_int(tw_due_run(&executor.due[1]), 0);
	fixture_advance_to(&fixture, 21 * NS_PER_MS);
	check_int(executor.count, 4);
	check_int(tw_cancel(handle[1]), TW_CANCEL_STOPPED);
	check_int(tw_due_run(&executor.due[2]), 0);
	check_int(tw_due_run(&executor.due[3]), 0);
	check_int(probe[0].runs, 2);
	check_end(&probe[0], TW_END_EXPIRED);
	check_int(tw_timeout_state(handle[0]), TW_STATE_EXPIRED);
	check_int(probe[1].runs, 1);
	check_end(&probe[1], TW_END_CANCELLED);
	check_int(tw_timeout_state(handle[1]), TW_STATE_CANCELLED);
	check_int(stats_of(fixture.engine).expired, 1);
	check_int(stats_of(fixture.engine).cancelled, 1);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

Test(periodic_executor, its_place_of_the_limit_is_free_after_its_run)
{
	struct executor executor;
	struct tw_options options = executor_options(&executor);
	struct fixture fixture;
	atomic_int count = 0;
	struct probe probe;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	probe_repeat(&fixture, &probe);
	for (int run = 0; run < 2; run++) {
		fixture_advance_to(&fixture, (11 + 10 * run) * NS_PER_MS);
		check_int(executor.count, run + 1);
		check_int(tw_schedule(fixture.engine, 1, &count_kind, &count, NULL), -EAGAIN);
		if (run == 1)
			check_int(tw_cancel(executor.due[1].handle), TW_CANCEL_STOPPED);
		check_int(tw_schedule(fixture.engine, 1, &count_kind, &count, NULL), -EAGAIN);
		check_int(tw_due_run(&executor.due[run]), 0);
	}
	check_end(&probe, TW_END_CANCELLED);
	must_schedule(fixture.engine, 1, &count_kind, &count);
	fixture_close(&fixture);
}

/* A callback in the executor sets the interval, which must count from the end of its run. */
Test(periodic_executor, interval_set_by_a_run_counts_from_its_end)
{
	static const struct tw_period period = TW_PERIOD_DELAY(10 * NS_PER_MS);
	struct executor executor;
	struct fixture fixture;
	struct log log;

	executor_open(&fixture, &executor);
	log_init(&log, &fixture);
	log.interval_ns = 20 * NS_PER_MS;
	must_repeat(&fixture, &period, &log);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	fixture_advance_to(&fixture, 15 * NS_PER_MS);
	check_int(tw_due_run(&executor.due[0]), 0);
	fixture_advance_to(&fixture, 35 * NS_PER_MS);
	check_int(executor.count, 1);
	fixture_advance_to(&fixture, 36 * NS_PER_MS);
	check_int(executor.count, 2);
	log.interval_ns = 0;
	check_int(tw_due_run(&executor.due[1]), 0);
	fixture_advance_to(&fixture, 47 * NS_PER_MS);
	check_int(executor.count, 3);
	check_int(tw_due_run(&executor.due[2]), 0);
	for (int run = 0; run < 3; run++)
		check_due_ms(&log, run, (int[]){10, 35, 46}[run]);
	fixture_close(&fixture);
}

/* In real time, so that only the end of the run can wake the worker. */
Test(periodic_executor, the_end_of_a_run_wakes_the_worker)
{
	struct tw_period period = TW_PERIOD_DELAY(NS_PER_MS);
	struct executor executor;
	struct tw_options options = executor_options(&executor);
	struct tw_engine *engine = real_engine_open(&options);
	atomic_int count = 0;

	/* The sixth run is the last one. Otherwise stop would wait for another one. */
	period.runs = 6;
	check_int(tw_schedule_periodic(engine, &period, &count_kind, &count, NULL), 0);
	for (int run = 0; run < 5; run++) {
		check_true(wait_until_at_least(&executor.count, run + 1));
		check_true(asleep_park_await(engine));
		check_int(tw_due_run(&executor.due[run]), 0);
	}
	check_true(wait_until_at_least(&executor.count, 6));
	check_int(tw_due_run(&executor.due[5]), 0);
	check_int(count, 6);
	real_engine_close(engine);
}

struct waiter {
	struct tw_handle handle;
	asleep_thread number;
	int outcome;
};

static void *waiter_main(void *argument)
{
	struct waiter *waiter = argument;

	asleep_announce(&waiter->number);
	waiter->outcome = tw_cancel_wait(waiter->handle, PATIENCE_NS);
	return NULL;
}

static void *due_main(void *argument)
{
	(void)tw_due_run(argument);
	return NULL;
}

Test(periodic_executor, a_callback_ends_an_executors_thread)
{
	struct executor executor;
	struct fixture fixture;
	struct probe probe;
	pthread_t thread;

	executor_open(&fixture, &executor);
	probe_init(&probe, fixture.engine);
	must_chain(&fixture, &ten_ms, &exit_kind, &probe);
	for (int run = 0; run < 3; run++) {
		fixture_advance_to(&fixture, (11 + 10 * run) * NS_PER_MS);
		check_int(executor.count, run + 1);
		check_int(pthread_create(&thread, NULL, due_main, &executor.due[run]), 0);
		check_int(pthread_join(thread, NULL), 0);
		check_int(probe.runs, run + 1);
	}
	fixture_close(&fixture);
	check_end(&probe, TW_END_UNEXPIRED);
}

Test(periodic_executor, cancel_wait_waits_for_the_executors_run)
{
	struct executor executor;
	struct fixture fixture;
	struct waiter waiter = {.number = 0};
	pthread_t thread[2];
	struct held held;

	executor_open(&fixture, &executor);
	memset(&held, 0, sizeof(held));
	gate_init(&held.gate);
	waiter.handle = must_chain(&fixture, &ten_ms, &held_kind, &held);
	fixture_advance_to(&fixture, 11 * NS_PER_MS);
	check_int(pthread_create(&thread[0], NULL, due_main, &executor.due[0]), 0);
	gate_await(&held.gate);
	check_int(pthread_create(&thread[1], NULL, waiter_main, &waiter), 0);
	check_true(asleep_await(&waiter.number));
	check_true(tw_timeout_state(waiter.handle) != TW_STATE_INIT);
	check_int(held.finalised, 0);
	gate_open(&held.gate);
	check_int(pthread_join(thread[1], NULL), 0);
	check_int(waiter.outcome, TW_CANCEL_DONE);
	check_int(held.finalised, 1);
	check_int(pthread_join(thread[0], NULL), 0);
	fixture_close(&fixture);
	check_int(fixture.back.count, 0);
}

/* Runs a dispatched timeout on the worker of another engine, which must not touch the chain's
 * wheel. */
static void on_run_due(struct tw_handle self, void *arg)
{
	(void)self;
	(void)tw_due_run(arg);
}

static const struct tw_kind run_due_kind = TW_KIND(on_run_due, NULL);

/*
 * Only the owner may touch the wheel. So another engine's worker must return the chain through a
 * queue.
 */
Test(periodic_executor, a_run_inside_another_engines_callback_comes_by_the_queue)
{
	struct executor executor;
	struct tw_options options = executor_options(&executor);
	struct fixture own, other;
	struct tw_handle handle;
	struct probe probe;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&own, &options);
	fixture_open(&other, NULL);
	check_int(tw_engine_start(own.engine), 0);
	handle = probe_repeat(&own, &probe);
	for (int run = 0; run < 3; run++) {
		int64_t due_ns = (11 + 10 * run) * NS_PER_MS;

		check_int(tw_clock_set(own.clock, due_ns), 0);
		check_int(tw_engine_poll(own.engine, 0), 1);
		check_int(executor.count, run + 1);
		must_schedule(other.engine, 1, &run_due_kind, &executor.due[run]);
		fixture_advance(&other, NS_PER_MS);
		check_int(probe.runs, run + 1);
		/* The chain is in a queue of its own engine, and the next poll files it. */
		check_int(tw_engine_next_due(own.engine), 0);
		check_int(tw_engine_poll(own.engine, 0), 0);
		check_int(tw_engine_next_due(own.engine), due_ns + 10 * NS_PER_MS);
	}
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	check_end(&probe, TW_END_CANCELLED);
	fixture_close(&other);
	fixture_close(&own);
}

/*
 * In real time. The chain's worker sleeps without a limit, so only the end of the run can wake it.
 */
Test(periodic_executor, a_run_inside_another_engines_callback_wakes_its_worker)
{
	static const struct tw_period period = TW_PERIOD_DELAY(NS_PER_MS);
	struct executor executor;
	struct tw_options options = executor_options(&executor);
	struct tw_engine *engine = real_engine_open(&options);
	struct tw_handle handle;
	struct fixture other;
	atomic_int count = 0;

	fixture_open(&other, NULL);
	check_int(tw_schedule_periodic(engine, &period, &count_kind, &count, &handle), 0);
	for (int run = 0; run < 5; run++) {
		check_true(wait_until_at_least(&executor.count, run + 1));
		must_schedule(other.engine, 1, &run_due_kind, &executor.due[run]);
		fixture_advance(&other, NS_PER_MS);
		check_int(count, run + 1);
	}
	check_true(wait_until_at_least(&executor.count, 6));
	/* The cancel makes this the last run. Otherwise stop would wait for another one. */
	check_int(tw_cancel(handle), TW_CANCEL_STOPPED);
	check_int(tw_due_run(&executor.due[5]), 0);
	fixture_close(&other);
	real_engine_close(engine);
}
