/* SPDX-License-Identifier: MIT */
/*
 * The tour: calls of the whole public API, the same under every fault.
 *
 * It uses two engines. `real` uses CLOCK_MONOTONIC and makes its own thread. `moved` uses a virtual
 * clock, and has a thread hook, a dispatch hook and a limit of pending timeouts. docs/errors.md
 * must allow each code that a call returns, and the step or the plan's fault must give a reason for
 * it. At the end every accepted timeout must have ended exactly once.
 *
 * A tour needs a process of its own (report.h makes one), because it ends the process if a check
 * fails.
 */
#ifndef FAULTS_TOUR_H
#define FAULTS_TOUR_H

#include "codes.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

/* Events that the tour waits for must come within this time, however busy the machine is. */
#define TOUR_PATIENCE_NS INT64_C(20000000000)

/*
 * A tour takes milliseconds, or seconds under a sanitizer on a busy machine. One that takes longer
 * than this hangs.
 */
enum { TOUR_HUNG_S = 120 };

enum tour_course {
	/* The fault ends before stop. Then both engines must be usable. */
	TOUR_RECOVERS,
	/* The fault goes on until both engines are destroyed. */
	TOUR_STOPS_IN_FAULT,
};

enum producer_end { PRODUCER_RETURNS, PRODUCER_EXITS, PRODUCER_CANCELLED };

struct tour_plan {
	const char *name;
	/* The codes that the fault may cause. */
	uint32_t codes;
	enum tour_course course;
	/* Called before the first call. All hooks here may be NULL. */
	void (*arm)(void *context);
	/* Ends the fault. May be called twice. */
	void (*relent)(void *context);
	/* Returns how many calls the fault has hit in all tours. */
	long long (*injected)(void *context);
	/* Called when `real` and `moved` exist, and with NULL before they are destroyed. */
	void (*publish)(struct tw_engine *real, struct tw_engine *moved, struct tw_clock *clock);
	void *context;
	const struct tw_allocator *allocator;
	/*
	 * The stack size of the tour's own threads, including the worker of `moved`; 0: the
	 * default.
	 */
	size_t stack_bytes;
	enum producer_end producer_end;
	/* How long waiting calls wait, by the library's clock. 0: TOUR_PATIENCE_NS. */
	int64_t patience_ns;
	/* The number of tours, one after the other. 0 means one. */
	unsigned repeats;
};

/* The result of the tours, in memory that the tour's process shares with the reporting process. */
struct tour_result {
	atomic_llong tours;
	/* How many threads have ended as the plan asks. */
	atomic_llong ends;
	atomic_llong injected;
	atomic_llong calls;
	atomic_llong accepted;
	atomic_llong ended;
	atomic_llong lost;
	/* How often the fault caused each code. Codes that a step asks for do not count. */
	atomic_llong code_count[CODES];
	/* The current step and call, which are reported if the tour hangs. */
	_Atomic(const char *) step;
	_Atomic(const char *) call;
	atomic_bool complete;
};

void tour_run(const struct tour_plan *plan, struct tour_result *ret_result);

/* While set, the faults of inject.h leave the thread alone. */
extern _Thread_local bool tour_exempt;

/* Creates a thread that faults must not hit. Returns false if that fails. */
bool tour_thread_make(void *(*body)(void *), void *arg, void *ret_thread);

void tour_sleep_ns(int64_t duration_ns);

#endif
