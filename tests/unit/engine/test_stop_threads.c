/* SPDX-License-Identifier: MIT */
/*
 * Stop by several threads at once, or from inside a callback.
 *
 * Seen to fail with these defects: twi_worker_finish() does not wait for a grace period before it
 * empties ingress (b01); a hand-back does not run the finaliser (b07); a stop waits for longer than
 * its time limit, a second stop returns at once, or a stop sends the worker a signal that it does
 * not block (b11). These numbers are those of the defects in docs/internals/testing.md.
 */
#include "asleep.h"
#include "probe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct stopper {
	struct tw_engine *engine;
	struct back_log *back;
	pthread_t thread;
	asleep_thread number;
	atomic_int result;
	atomic_int done;
};

static void *stopper_main(void *arg)
{
	struct stopper *stopper = arg;

	asleep_announce(&stopper->number);
	atomic_store(&stopper->result,
		     tw_engine_stop(stopper->engine, back_log_hook, stopper->back, TW_NEVER));
	atomic_store(&stopper->done, 1);
	return NULL;
}

static void stopper_start(struct stopper *stopper, struct fixture *fixture)
{
	stopper->engine = fixture->engine;
	stopper->back = &fixture->back;
	atomic_store(&stopper->number, 0);
	atomic_store(&stopper->result, -1);
	atomic_store(&stopper->done, 0);
	check_int(pthread_create(&stopper->thread, NULL, stopper_main, stopper), 0);
}

Test(stop_threads, concurrent_stops_wait_for_the_same_end)
{
	struct fixture fixture;
	struct stopper stoppers[4];
	struct probe probe;
	struct gate gate;
	int i;

	fixture_open(&fixture, NULL);
	gate_hold(&fixture, &gate);
	probe_schedule(&fixture, &probe, NS_PER_S);
	for (i = 0; i < 4; i++)
		stopper_start(&stoppers[i], &fixture);
	for (i = 0; i < 4; i++) {
		check_true(asleep_await(&stoppers[i].number));
		check_int(stoppers[i].done, 0);
	}
	gate_open(&gate);
	for (i = 0; i < 4; i++) {
		check_int(pthread_join(stoppers[i].thread, NULL), 0);
		check_int(stoppers[i].result, 0);
	}
	check_int(fixture.back.count, 1);
	check_int(probe.finalised, 1);
	fixture_close(&fixture);
}

struct own_end {
	struct tw_engine *engine;
	atomic_int stop;
	atomic_int destroy;
	atomic_int flush;
	atomic_int detach;
};

static void on_own_end(struct tw_handle self, void *arg)
{
	struct own_end *own = arg;

	(void)self;
	atomic_store(&own->stop, tw_engine_stop(own->engine, NULL, NULL, TW_NEVER));
	atomic_store(&own->destroy, tw_engine_destroy(own->engine));
	atomic_store(&own->flush, tw_engine_flush(own->engine, TW_NEVER));
	atomic_store(&own->detach, tw_thread_detach());
}

static const struct tw_kind own_end_kind = TW_KIND(on_own_end, NULL);

Test(stop_threads, from_a_callback_is_rejected)
{
	struct fixture fixture;
	struct own_end own = {0};
	struct probe probe;

	fixture_open(&fixture, NULL);
	own.engine = fixture.engine;
	must_schedule(fixture.engine, 1, &own_end_kind, &own);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(own.stop, -EDEADLK);
	check_int(own.destroy, -EDEADLK);
	check_int(own.flush, -EDEADLK);
	check_int(own.detach, -EBUSY);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_RUNNING);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	fixture_close(&fixture);
}

/*
 * Defect B7: the finaliser must run for each timeout that stop hands back, because it frees the
 * timeout's resources.
 */
Test(stop_threads, b07_finaliser_runs_for_each_timeout_handed_back)
{
	struct fixture fixture;
	struct probe probes[5];
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 5; i++)
		probe_schedule(&fixture, &probes[i], (i + 1) * NS_PER_S);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 5);
	for (i = 0; i < 5; i++) {
		check_int(probes[i].finalised, 1);
		check_int(probes[i].end, TW_END_UNEXPIRED);
		check_int(probes[i].runs, 0);
	}
	fixture_close(&fixture);
}

/*
 * In the next test (defect B11), a callback blocks in a system call, and stop must not disturb it.
 * The call returns when the test writes to the descriptor. A signal would also end it, because the
 * kernel never restarts poll(2).
 */
struct sleeper {
	int fd;
	asleep_thread number;
	atomic_int interrupted;
	atomic_int finished;
};

static void on_sleeper(struct tw_handle self, void *arg)
{
	struct sleeper *sleeper = arg;
	struct pollfd polled = {.fd = sleeper->fd, .events = POLLIN};

	(void)self;
	asleep_announce(&sleeper->number);
	if (poll(&polled, 1, -1) != 1)
		atomic_fetch_add(&sleeper->interrupted, 1);
	atomic_fetch_add(&sleeper->finished, 1);
}

static const struct tw_kind sleeper_kind = TW_KIND(on_sleeper, NULL);

Test(stop_threads, b11_stop_does_not_interrupt_and_waits)
{
	struct fixture fixture;
	struct sleeper sleeper = {.fd = eventfd(0, EFD_CLOEXEC)};
	struct stopper second;

	check_at_least(sleeper.fd, 0);
	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, 1, &sleeper_kind, &sleeper);
	check_int(tw_clock_set(fixture.clock, NS_PER_MS), 0);
	check_true(asleep_await(&sleeper.number));
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, 50 * NS_PER_MS), -ETIMEDOUT);
	check_int(sleeper.finished, 0);
	stopper_start(&second, &fixture);
	check_true(asleep_await(&second.number));
	check_int(second.done, 0);
	check_int(sleeper.finished, 0);
	check_int(eventfd_write(sleeper.fd, 1), 0);
	check_int(pthread_join(second.thread, NULL), 0);
	check_int(second.result, 0);
	check_int(sleeper.finished, 1);
	check_int(sleeper.interrupted, 0);
	fixture_close(&fixture);
	check_int(close(sleeper.fd), 0);
}

/*
 * In the next test, producers schedule while another thread stops the engine. Each accepted timeout
 * must end exactly once.
 */
struct producer {
	struct tw_engine *engine;
	pthread_t thread;
	atomic_int *finalised;
	atomic_int accepted;
	int last_error;
};

static void on_nothing(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static void on_counted_end(void *arg, enum tw_end end)
{
	(void)end;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind counted_kind = TW_KIND(on_nothing, on_counted_end);

static void *producer_main(void *arg)
{
	struct producer *producer = arg;

	do {
		producer->last_error = tw_schedule(producer->engine, NS_PER_MS, &counted_kind,
						   producer->finalised, NULL);
		atomic_fetch_add(&producer->accepted, producer->last_error == 0);
	} while (producer->last_error == 0);
	return NULL;
}

static void race_once(int round)
{
	struct fixture fixture;
	struct producer producers[2];
	atomic_int finalised = 0;
	int accepted = 0;
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 2; i++) {
		producers[i] = (struct producer){.engine = fixture.engine, .finalised = &finalised};
		check_int(pthread_create(&producers[i].thread, NULL, producer_main, &producers[i]),
			  0);
	}
	/* Stop must meet producers that have not begun, and producers that are in full flow. */
	for (i = 0; i < 2; i++)
		check_true(wait_until_at_least(&producers[i].accepted, round % 4 * 100));
	fixture_stop(&fixture);
	for (i = 0; i < 2; i++) {
		check_int(pthread_join(producers[i].thread, NULL), 0);
		check_int(producers[i].last_error, -ESHUTDOWN);
		accepted += producers[i].accepted;
	}
	check_int(finalised, accepted);
	check_int(stats_of(fixture.engine).scheduled, accepted);
	fixture_close(&fixture);
}

Test(stop_threads, b01_schedule_racing_stop_loses_nothing)
{
	int round;

	for (round = 0; round < 100; round++)
		race_once(round);
}
