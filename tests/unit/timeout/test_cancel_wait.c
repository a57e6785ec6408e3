/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel_wait, while the callback runs in another thread.
 *
 * Seen to fail with this defect: the wait never checks its time limit.
 */
#include "asleep.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

struct waiter {
	struct tw_handle handle;
	pthread_t thread;
	asleep_thread number;
	atomic_int outcome;
	atomic_int done;
};

static void *waiter_main(void *arg)
{
	struct waiter *waiter = arg;

	asleep_announce(&waiter->number);
	atomic_store(&waiter->outcome, tw_cancel_wait(waiter->handle, TW_NEVER));
	atomic_store(&waiter->done, 1);
	return NULL;
}

static void waiter_start(struct waiter *waiter, struct tw_handle handle)
{
	waiter->handle = handle;
	atomic_store(&waiter->number, 0);
	atomic_store(&waiter->outcome, -1);
	atomic_store(&waiter->done, 0);
	check_int(pthread_create(&waiter->thread, NULL, waiter_main, waiter), 0);
}

static void waiter_check(struct waiter *waiter)
{
	check_int(pthread_join(waiter->thread, NULL), 0);
	check_true(waiter->outcome == TW_CANCEL_EXPIRED || waiter->outcome == TW_CANCEL_STALE);
}

Test(cancel_wait, cancels_what_does_not_run)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_cancel_wait(handle, TW_NEVER), TW_CANCEL_DONE);
	check_int(probe.end, TW_END_CANCELLED);
	check_int(probe.finalised, 1);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_cancel_wait(handle, -1), TW_CANCEL_DONE);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

Test(cancel_wait, plain_cancel_reports_a_running_callback)
{
	struct fixture fixture;
	struct gate gate;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	handle = gate_hold(&fixture, &gate);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	check_int(tw_timeout_state(handle), TW_STATE_EXPIRED);
	gate_open(&gate);
	fixture_flush(&fixture);
	check_int(tw_cancel(handle), TW_CANCEL_EXPIRED);
	fixture_close(&fixture);
}

/*
 * The guard's thread opens the gate after half of PATIENCE_NS, unless the test ends the guard
 * earlier. So a wait that ignores its time limit does not hang the test: it returns that the
 * callback has ended, and the test fails.
 */
struct guard {
	struct gate *gate;
	pthread_t thread;
	sem_t over;
};

static void *guard_main(void *arg)
{
	struct guard *guard = arg;
	struct timespec limit;

	clock_gettime(CLOCK_REALTIME, &limit);
	limit.tv_sec += PATIENCE_NS / NS_PER_S / 2;
	while (sem_timedwait(&guard->over, &limit) != 0) {
		if (errno != EINTR) {
			gate_open(guard->gate);
			break;
		}
	}
	return NULL;
}

static void guard_begin(struct guard *guard, struct gate *gate)
{
	guard->gate = gate;
	check_int(sem_init(&guard->over, 0, 0), 0);
	check_int(pthread_create(&guard->thread, NULL, guard_main, guard), 0);
}

static void guard_end(struct guard *guard)
{
	check_int(sem_post(&guard->over), 0);
	check_int(pthread_join(guard->thread, NULL), 0);
}

Test(cancel_wait, cancel_wait_times_out_while_the_callback_runs)
{
	struct fixture fixture;
	struct guard guard;
	struct gate gate;
	struct tw_handle handle;
	int64_t begin_ns;

	fixture_open(&fixture, NULL);
	handle = gate_hold(&fixture, &gate);
	guard_begin(&guard, &gate);
	check_int(tw_cancel_wait(handle, 0), -ETIMEDOUT);
	check_int(tw_cancel_wait(handle, -5), -ETIMEDOUT);
	begin_ns = monotonic_ns();
	check_int(tw_cancel_wait(handle, 20 * NS_PER_MS), -ETIMEDOUT);
	check_at_least(monotonic_ns() - begin_ns, 20 * NS_PER_MS);
	guard_end(&guard);
	gate_open(&gate);
	check_int(tw_cancel_wait(handle, PATIENCE_NS), TW_CANCEL_EXPIRED);
	fixture_close(&fixture);
}

Test(cancel_wait, waits_for_the_end)
{
	struct fixture fixture;
	struct waiter waiters[3];
	struct gate gate;
	struct tw_handle handle;
	int i;

	fixture_open(&fixture, NULL);
	handle = gate_hold(&fixture, &gate);
	for (i = 0; i < 3; i++)
		waiter_start(&waiters[i], handle);
	for (i = 0; i < 3; i++) {
		check_true(asleep_await(&waiters[i].number));
		check_int(waiters[i].done, 0);
	}
	gate_open(&gate);
	for (i = 0; i < 3; i++)
		waiter_check(&waiters[i]);
	fixture_close(&fixture);
}

struct slow_end {
	sem_t entered;
	sem_t leave;
	atomic_int ended;
};

static void on_slow(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_slow_end(void *arg, enum tw_end end)
{
	struct slow_end *slow = arg;

	(void)end;
	sem_post(&slow->entered);
	while (sem_wait(&slow->leave) != 0)
		;
	atomic_store(&slow->ended, 1);
}

static const struct tw_kind slow_kind = TW_KIND(on_slow, on_slow_end);

Test(cancel_wait, waits_for_the_finaliser_too)
{
	struct fixture fixture;
	struct slow_end slow = {.ended = 0};
	struct waiter waiter;
	struct tw_handle handle;

	fixture_open(&fixture, NULL);
	sem_init(&slow.entered, 0, 0);
	sem_init(&slow.leave, 0, 0);
	handle = must_schedule(fixture.engine, 1, &slow_kind, &slow);
	fixture.now_ns += NS_PER_MS;
	check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
	sem_wait(&slow.entered);
	check_int(tw_cancel(handle), TW_CANCEL_RUNNING);
	waiter_start(&waiter, handle);
	check_true(asleep_await(&waiter.number));
	check_int(waiter.done, 0);
	sem_post(&slow.leave);
	waiter_check(&waiter);
	check_int(slow.ended, 1);
	fixture_close(&fixture);
}

/* A callback of one engine waits for the running callback of another engine. */
struct cross {
	struct tw_handle target;
	asleep_thread number;
	atomic_int outcome;
};

static void on_cross(struct tw_handle self, void *arg)
{
	struct cross *cross = arg;

	(void)self;
	asleep_announce(&cross->number);
	atomic_store(&cross->outcome, tw_cancel_wait(cross->target, TW_NEVER));
}

static const struct tw_kind cross_kind = TW_KIND(on_cross, NULL);

Test(cancel_wait, wait_in_a_callback_of_another_engine_waits)
{
	struct cross cross = {.outcome = -1};
	struct fixture first;
	struct fixture second;
	struct gate gate;

	fixture_open(&first, NULL);
	fixture_open(&second, NULL);
	cross.target = gate_hold(&first, &gate);
	must_schedule(second.engine, 1, &cross_kind, &cross);
	check_int(tw_clock_set(second.clock, NS_PER_MS), 0);
	check_true(asleep_await(&cross.number));
	check_int(cross.outcome, -1);
	gate_open(&gate);
	fixture_advance_to(&second, NS_PER_MS);
	check_true(cross.outcome == TW_CANCEL_EXPIRED || cross.outcome == TW_CANCEL_STALE);
	fixture_close(&first);
	fixture_close(&second);
}

/* A cancel that waits races with the expiry. When it has returned, the caller may free the
 * argument. */
Test(cancel_wait, frees_the_argument_safely)
{
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle;
	int outcome;
	int expired = 0;
	int round;

	fixture_open(&fixture, NULL);
	for (round = 0; round < 2000; round++) {
		handle = probe_schedule(&fixture, &probe, 1);
		fixture.now_ns += NS_PER_MS;
		check_int(tw_clock_set(fixture.clock, fixture.now_ns), 0);
		if (round % 2)
			sched_yield();
		outcome = tw_cancel_wait(handle, PATIENCE_NS);
		check_true(outcome == TW_CANCEL_DONE || outcome == TW_CANCEL_EXPIRED);
		check_int(probe.finalised, 1);
		check_int(probe.runs, outcome == TW_CANCEL_EXPIRED);
		expired += outcome == TW_CANCEL_EXPIRED;
	}
	check_int(stats_of(fixture.engine).expired, expired);
	fixture_close(&fixture);
}
