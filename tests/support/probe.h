/* SPDX-License-Identifier: MIT */
/*
 * Timeouts that record what happens to them: a probe counts runs and ends, a gate holds the worker
 * in its callback until the test opens it.
 */
#ifndef TESTS_PROBE_H
#define TESTS_PROBE_H

#include "fixture.h"

#include <semaphore.h>

struct probe {
	struct tw_engine *engine;
	atomic_int runs;
	atomic_int finalised;
	/* the enum tw_end that the finaliser got; -1: it has not run */
	atomic_int end;
	/* the engine's time when the callback ran; -1: it has not run */
	_Atomic int64_t ran_at_ns;
	/* the handle that the callback got */
	struct tw_handle self;
};

/* Two kinds that record into their argument, a struct probe. The second has a finaliser. */
extern const struct tw_kind probe_kind;
extern const struct tw_kind probe_final_kind;

/* A kind whose callback only counts; its argument is an atomic_int. */
extern const struct tw_kind count_kind;

void probe_init(struct probe *probe, struct tw_engine *engine);

/* Schedule a timeout and fail the test if it is rejected. */
struct tw_handle must_schedule(struct tw_engine *engine, int64_t delay_ns,
			       const struct tw_kind *kind, void *arg);
struct tw_handle must_schedule_at(struct tw_engine *engine, int64_t deadline_ns,
				  const struct tw_kind *kind, void *arg);

/* Initialises and schedules a probe with a finaliser. */
struct tw_handle probe_schedule(struct fixture *fixture, struct probe *probe, int64_t delay_ns);

struct gate {
	sem_t entered;
	sem_t leave;
};

extern const struct tw_kind gate_kind;

void gate_init(struct gate *gate);

/* Waits until the callback has begun. */
void gate_await(struct gate *gate);
void gate_open(struct gate *gate);

/* Schedules the gate, moves the clock by one tick and waits until the worker is in the callback. */
struct tw_handle gate_hold(struct fixture *fixture, struct gate *gate);

/* Allocates and frees blocks of the pool until `handle` is stale. Returns false if it does not
 * become stale. Moves the clock by a few ticks. */
bool make_stale(struct fixture *fixture, struct tw_handle handle);

#endif
