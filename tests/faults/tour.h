/* SPDX-License-Identifier: MIT */
/*
 * One tour through the whole public API, the same under every fault.
 *
 * It uses two engines. `real` lives by CLOCK_MONOTONIC and makes its own thread; `moved` lives by a
 * virtual clock, has a thread hook, a dispatch hook and a limit of pending timeouts. Each code that
 * a call returns must be one that docs/errors.md allows that call, and one that the step or the
 * plan's fault gives reason for. At the end every accepted timeout has ended exactly once.
 *
 * A tour needs a process of its own (report.h makes one): it ends the process where a check fails.
 */
#ifndef FAULTS_TOUR_H
#define FAULTS_TOUR_H

#include "codes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

/* What the tour waits for comes within this time, however busy the machine is. */
#define TOUR_PATIENCE_NS INT64_C(20000000000)

/* A tour takes milliseconds; under a sanitizer on a busy machine, seconds. Longer is a hang. */
enum { TOUR_HUNG_S = 120 };

enum tour_course {
	/* The fault ends before stop; then both engines must be usable. */
	TOUR_RECOVERS,
	/* It goes on until both engines are destroyed. */
	TOUR_STOPS_IN_FAULT,
};

enum producer_end { PRODUCER_RETURNS, PRODUCER_EXITS, PRODUCER_CANCELLED };

struct tour_plan {
	const char *name;
	/* Codes that the fault gives reason for. */
	uint32_t codes;
	enum tour_course course;
	/* Before the first call; may be NULL, as the others. */
	void (*arm)(void *context);
	/* Ends the fault. May be called twice. */
	void (*relent)(void *context);
	/* How many calls it has hit in all tours. */
	long long (*injected)(void *context);
	/* `real` and `moved` exist, or (NULL) are about to be destroyed. */
	void (*publish)(struct tw_engine *real, struct tw_engine *moved, struct tw_clock *clock);
	void *context;
	const struct tw_allocator *allocator;
	/* Stacks of the tour's own threads, the worker of `moved` among them; 0: the default. */
	size_t stack_bytes;
	enum producer_end producer_end;
	/* What waiting calls are given, by the library's clock; 0: TOUR_PATIENCE_NS. */
	int64_t patience_ns;
	/* So many tours one after the other; 0: one. */
	unsigned repeats;
};

/* Lies in memory that the tour's process shares with the one that reports. */
struct tour_result {
	atomic_llong tours;
	/* Threads that have ended in the way that the plan asks for. */
	atomic_llong ends;
	atomic_llong injected;
	atomic_llong calls;
	atomic_llong accepted;
	atomic_llong ended;
	atomic_llong lost;
	/* Codes that came of the fault; not those that a step asks for. */
	atomic_llong code_count[CODES];
	/* Where the tour is: for a report of a hang. */
	_Atomic(const char *) step;
	_Atomic(const char *) call;
	atomic_bool complete;
};

void tour_run(const struct tour_plan *plan, struct tour_result *ret_result);

/* While set, the faults of inject.h leave the thread alone. */
extern _Thread_local bool tour_exempt;

/* Makes a thread that no fault keeps from being made; false: none can be made. */
bool tour_thread_make(void *(*body)(void *), void *arg, void *ret_thread);

void tour_sleep_ns(int64_t duration_ns);

#endif
