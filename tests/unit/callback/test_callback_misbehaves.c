/* SPDX-License-Identifier: MIT */
/*
 * Callbacks, finalisers and hand-back hooks that end their thread, block for ten ticks, or schedule
 * a hundred thousand timeouts. Each timeout must still end exactly once. The engine must continue
 * to work, or be in the state FAILED.
 *
 * Seen to fail with these defects: tw_due_run has no cleanup handler, so stop hangs after an
 * executor's thread has ended; a thread still counts as the worker after its worker has died, so a
 * flush in a destructor returns the wrong code.
 */
#include "asleep.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>

enum { TIMEOUTS = 20, CROWD = 100000, BLOCK_TICKS = 10 };

static atomic_int runs, finalised, unexpired;

static void on_end_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&runs, 1);
	pthread_exit(NULL);
}

static void on_run(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&runs, 1);
}

static void on_final(void *arg, enum tw_end end)
{
	(void)arg;
	(void)end;
	atomic_fetch_add(&finalised, 1);
}

/* Ends its thread, but only in the first call. */
static void on_final_end_thread(void *arg, enum tw_end end)
{
	(void)arg;
	(void)end;
	if (atomic_fetch_add(&finalised, 1) == 0)
		pthread_exit(NULL);
}

static const struct tw_kind end_thread = TW_KIND(on_end_thread, on_final);
static const struct tw_kind final_end_thread = TW_KIND(on_run, on_final_end_thread);
static const struct tw_kind quiet = TW_KIND(on_run, on_final);

static struct tw_due due[TIMEOUTS];
static atomic_int due_count;

static size_t accept_all(void *context, const struct tw_due *offered, size_t count)
{
	int at = atomic_load(&due_count);

	(void)context;
	for (size_t i = 0; i < count; i++)
		due[at + (int)i] = offered[i];
	atomic_fetch_add(&due_count, (int)count);
	return count;
}

static void *executor_main(void *arg)
{
	(void)tw_due_run(arg);
	return NULL;
}

static void in_a_thread(void *(*body)(void *), void *arg)
{
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, body, arg), 0);
	check_int(pthread_join(thread, NULL), 0);
}

/*
 * Ends executors' threads in callbacks. The engine must continue to work, because these threads are
 * the user's. Stop must not wait for them.
 */
static void end_executors(const struct tw_kind *kind)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;

	options.dispatch = accept_all;
	options.pending_limit = TIMEOUTS;
	fixture_open(&fixture, &options);
	for (int i = 0; i < TIMEOUTS; i++)
		must_schedule(fixture.engine, 1, kind, NULL);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(due_count, TIMEOUTS);
	for (int i = 0; i < TIMEOUTS; i++)
		in_a_thread(executor_main, &due[i]);
	check_int(runs, TIMEOUTS);
	check_int(finalised, TIMEOUTS);
	for (int i = 0; i < TIMEOUTS; i++)
		check_int(tw_cancel_wait(due[i].handle, PATIENCE_NS), TW_CANCEL_EXPIRED);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_RUNNING);
	/* The ended threads must have given back all places under the limit. */
	for (int i = 0; i < TIMEOUTS; i++)
		must_schedule(fixture.engine, NS_PER_S, &quiet, NULL);
	fixture_stop(&fixture);
	check_int(fixture.back.count, TIMEOUTS);
	fixture_close(&fixture);
}

Test(callback_misbehaves, callback_ends_an_executor_thread)
{
	end_executors(&end_thread);
}

Test(callback_misbehaves, finaliser_ends_an_executor_thread)
{
	end_executors(&final_end_thread);
}

/* If the worker's thread ends, its engine fails, and stop hands the remaining timeouts back. */
Test(callback_misbehaves, finaliser_ends_the_worker)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < TIMEOUTS; i++)
		must_schedule(fixture.engine, i % 2 * NS_PER_S + 1, &final_end_thread, NULL);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_FAILED));
	fixture_stop(&fixture);
	check_int(finalised, TIMEOUTS);
	check_int(runs, 1);
	check_int(fixture.back.count, TIMEOUTS - 1);
	fixture_close(&fixture);
}

static void *cancel_main(void *arg)
{
	(void)tw_cancel(*(struct tw_handle *)arg);
	return NULL;
}

/* When the finaliser ends the thread, the cancel has already taken effect. The thread must not
 * hold anything that another thread waits for. */
Test(callback_misbehaves, finaliser_ends_the_thread_that_cancels)
{
	struct tw_handle handle[2];
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < 2; i++) {
		handle[i] = must_schedule(fixture.engine, NS_PER_S, &final_end_thread, NULL);
		/* One timeout is in the wheel, the other in ingress. */
		if (i == 0)
			fixture_flush(&fixture);
		atomic_store(&finalised, 0);
		in_a_thread(cancel_main, &handle[i]);
		check_int(finalised, 1);
		check_int(tw_cancel(handle[i]), TW_CANCEL_CANCELLED);
	}
	check_int(stats_of(fixture.engine).cancelled, 2);
	fixture_close(&fixture);
}

static void hand_back_end_thread(void *context, struct tw_handle handle, const struct tw_kind *kind,
				 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	if (atomic_fetch_add(&unexpired, 1) % 3 == 0)
		pthread_exit(NULL);
}

static void hand_back_quietly(void *context, struct tw_handle handle, const struct tw_kind *kind,
			      void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&unexpired, 1);
}

/*
 * Hands back timeouts in the wheel and in ingress. Each time the thread that hands them back ends,
 * another must take over, so that stop can end.
 */
static void end_handing_back(tw_unexpired_hook *on_unexpired, const struct tw_kind *kind)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	for (int i = 0; i < TIMEOUTS; i++) {
		must_schedule(fixture.engine, NS_PER_S, kind, NULL);
		if (i == TIMEOUTS / 2)
			fixture_flush(&fixture);
	}
	check_int(tw_engine_stop(fixture.engine, on_unexpired, NULL, PATIENCE_NS), 0);
	check_int(unexpired, TIMEOUTS);
	check_int(finalised, TIMEOUTS);
	check_int(runs, 0);
	check_int(stats_of(fixture.engine).unexpired, TIMEOUTS);
	fixture_close(&fixture);
}

Test(callback_misbehaves, hand_back_ends_its_thread)
{
	end_handing_back(hand_back_end_thread, &quiet);
}

Test(callback_misbehaves, finaliser_ends_the_thread_that_hands_back)
{
	end_handing_back(hand_back_quietly, &final_end_thread);
}

/*
 * In the next test, the worker's thread ends, and a destructor of its thread data calls the
 * library. The library must not treat this call as one of the worker.
 */
static struct {
	pthread_key_t key;
	struct tw_engine *engine;
	int flush;
	int stop;
	int detach;
	atomic_int done;
} late;

static void late_destroy(void *arg)
{
	(void)arg;
	late.flush = tw_engine_flush(late.engine, TW_NEVER);
	late.detach = tw_thread_detach();
	atomic_store(&late.done, 1);
}

static void on_late(struct tw_handle self, void *arg)
{
	(void)self;
	(void)pthread_setspecific(late.key, arg);
	pthread_exit(NULL);
}

static const struct tw_kind late_kind = TW_KIND(on_late, NULL);

Test(callback_misbehaves, flush_in_a_destructor_of_a_dead_worker_returns)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	late.engine = fixture.engine;
	check_int(pthread_key_create(&late.key, late_destroy), 0);
	must_schedule(fixture.engine, 1, &late_kind, &late);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	check_true(wait_until_at_least(&late.done, 1));
	check_int(late.flush, -ESHUTDOWN);
	check_int(late.detach, 0);
	fixture_close(&fixture);
	check_int(pthread_key_delete(late.key), 0);
}

static asleep_thread flushing;

/* Ends the worker's thread while a flush waits for it. The flush must be notified. */
static void on_slow_end(struct tw_handle self, void *arg)
{
	struct gate *gate = arg;

	(void)self;
	sem_post(&gate->entered);
	sem_wait(&gate->leave);
	/* When the flushing thread sleeps, it has registered its wait. */
	check_true(asleep_await(&flushing));
	pthread_exit(NULL);
}

static const struct tw_kind slow_end = TW_KIND(on_slow_end, NULL);

Test(callback_misbehaves, flush_returns_when_the_worker_dies)
{
	struct fixture fixture;
	struct gate gate;

	fixture_open(&fixture, NULL);
	gate_init(&gate);
	must_schedule(fixture.engine, 1, &slow_end, &gate);
	fixture_flush(&fixture);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	gate_await(&gate);
	gate_open(&gate);
	asleep_announce(&flushing);
	check_int(tw_engine_flush(fixture.engine, PATIENCE_NS), -ESHUTDOWN);
	fixture_close(&fixture);
}

struct crowd {
	struct tw_engine *engine;
	atomic_int rejected;
	atomic_int runs;
};

static void on_crowd(struct tw_handle self, void *arg)
{
	struct crowd *crowd = arg;

	(void)self;
	for (int i = 0; i < CROWD; i++)
		if (tw_schedule(crowd->engine, i % 50 * NS_PER_MS + 1, &count_kind, &crowd->runs,
				NULL) != 0)
			atomic_fetch_add(&crowd->rejected, 1);
}

static const struct tw_kind crowd_kind = TW_KIND(on_crowd, NULL);

Test(callback_misbehaves, a_hundred_thousand_of_one_callback_all_run)
{
	struct crowd crowd = {.runs = 0};
	struct tw_options options = fixture_options();
	struct fixture fixture;

	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	crowd.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &crowd_kind, &crowd);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(crowd.rejected, 0);
	for (int i = 0; i <= 50; i++)
		fixture_advance(&fixture, NS_PER_MS);
	check_int(crowd.runs, CROWD);
	check_int(stats_of(fixture.engine).expired, CROWD + 1);
	fixture_close(&fixture);
}

/*
 * In the next test, a callback blocks the worker for ten ticks of real time. Timeouts that become
 * due meanwhile must run once, and after that callback.
 */
struct held {
	struct tw_engine *engine;
	int64_t due_ns;
	_Atomic int64_t ran_ns;
	atomic_int *runs;
};

static void on_block(struct tw_handle self, void *arg)
{
	(void)self;
	sleep_ns(BLOCK_TICKS * NS_PER_MS);
	atomic_store((_Atomic int64_t *)arg, monotonic_ns());
}

static void on_held(struct tw_handle self, void *arg)
{
	struct held *held = arg;

	(void)self;
	atomic_store(&held->ran_ns, tw_engine_now(held->engine));
	atomic_fetch_add(held->runs, 1);
}

static const struct tw_kind block_kind = TW_KIND(on_block, NULL);
static const struct tw_kind held_kind = TW_KIND(on_held, NULL);

Test(callback_misbehaves, timeouts_run_after_a_callback_blocks_for_ten_ticks)
{
	struct tw_engine *engine = real_engine_open(NULL);
	struct held held[TIMEOUTS];
	_Atomic int64_t block_end_ns = 0;
	atomic_int held_runs = 0;
	int64_t now_ns;

	must_schedule(engine, NS_PER_MS, &block_kind, &block_end_ns);
	now_ns = tw_engine_now(engine);
	for (int i = 0; i < TIMEOUTS; i++) {
		held[i] = (struct held){engine, now_ns + (2 + i) * NS_PER_MS, 0, &held_runs};
		must_schedule_at(engine, held[i].due_ns, &held_kind, &held[i]);
	}
	check_true(wait_until_at_least(&held_runs, TIMEOUTS));
	check_true(block_end_ns != 0);
	for (int i = 0; i < TIMEOUTS; i++) {
		check_at_least(held[i].ran_ns, held[i].due_ns);
		check_at_least(held[i].ran_ns, block_end_ns);
	}
	check_int(stats_of(engine).expired, TIMEOUTS + 1);
	real_engine_close(engine);
}
