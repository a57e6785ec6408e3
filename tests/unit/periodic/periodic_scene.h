/* SPDX-License-Identifier: MIT */
/*
 * Periodic timeouts (chains) that record the time and the deadline of each run. A run that should
 * take time moves the clock. Include once per test program.
 */
#ifndef TESTS_PERIODIC_SCENE_H
#define TESTS_PERIODIC_SCENE_H

#include "probe.h"

#include <pthread.h>

static const struct tw_period ten_ms = TW_PERIOD_RATE(10 * NS_PER_MS);

static inline struct tw_handle must_chain(struct fixture *fixture, const struct tw_period *period,
					  const struct tw_kind *kind, void *arg)
{
	struct tw_handle handle = {0};

	check_int(tw_schedule_periodic(fixture->engine, period, kind, arg, &handle), 0);
	return handle;
}

/* Schedules a periodic probe with a finaliser. */
static inline struct tw_handle probe_repeat(struct fixture *fixture, struct probe *probe)
{
	probe_init(probe, fixture->engine);
	return must_chain(fixture, &ten_ms, &probe_final_kind, probe);
}

static inline void check_end(const struct probe *probe, enum tw_end end)
{
	check_int(probe->finalised, 1);
	check_int(probe->end, end);
}

/* A callback that waits until the test opens its gate. */
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

/* Ends its thread in the second run. */
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

enum { RUNS = 256 };

/* The record of a chain's runs. */
struct log {
	struct fixture *fixture;
	atomic_int count;
	int64_t due_ns[RUNS];
	int64_t ran_ns[RUNS];
	int64_t takes_ns;    /* by how much the callback moves the clock */
	int long_run;        /* the only run that moves the clock; -1: each does */
	int64_t interval_ns; /* passed to tw_period_next and doubled in each run; 0: no call */
	struct tw_timeout seen;
	const struct log *peer;
	int peer_count; /* the peer's count at the last run */
	struct tw_handle self;
};

static void takes(struct log *log, int run)
{
	if (log->takes_ns == 0 || (log->long_run >= 0 && log->long_run != run))
		return;
	(void)tw_clock_set(log->fixture->clock,
			   tw_engine_now(log->fixture->engine) + log->takes_ns);
}

static void on_run(struct tw_handle self, void *arg)
{
	struct log *log = arg;
	int run = log->count;

	log->seen.size = sizeof(log->seen);
	(void)tw_timeout_get(self, &log->seen);
	log->self = self;
	log->peer_count = log->peer != NULL ? log->peer->count : 0;
	log->ran_ns[run % RUNS] = tw_engine_now(log->fixture->engine);
	log->due_ns[run % RUNS] = log->seen.deadline_ns;
	if (log->interval_ns != 0) {
		(void)tw_period_next(self, log->interval_ns);
		log->interval_ns *= 2;
	}
	takes(log, run);
	atomic_store(&log->count, run + 1);
}

static const struct tw_kind run_kind = TW_KIND(on_run, NULL);

static inline void log_init(struct log *log, struct fixture *fixture)
{
	*log = (struct log){.fixture = fixture, .long_run = -1};
}

static inline struct tw_handle must_repeat(struct fixture *fixture, const struct tw_period *period,
					   struct log *log)
{
	return must_chain(fixture, period, &run_kind, log);
}

/* Advances tick by tick, so that each run comes in the tick of its deadline. */
static inline void step_to(struct fixture *fixture, int64_t ms)
{
	while (fixture->now_ns < ms * NS_PER_MS)
		fixture_advance(fixture, NS_PER_MS);
}

static inline void check_due_ms(const struct log *log, int run, int64_t ms)
{
	check_int(log->due_ns[run], ms * NS_PER_MS);
}

#endif
