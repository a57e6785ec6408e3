/* SPDX-License-Identifier: MIT */
/* The producers of a tickwheel engine. */
#ifndef PERF_HARNESS_PRODUCER_H
#define PERF_HARNESS_PRODUCER_H

#include "harness/bench.h"
#include "harness/crew.h"
#include "harness/random.h"
#include "harness/sample.h"

#include <stdbool.h>
#include <stdint.h>

/* With --at, the harness reads the clock once for so many schedules. */
enum { PRODUCER_CLOCK_EVERY = 64 };

/* Both functions return 0 or the library's error; `prepare` may be NULL. */
struct producer_plan {
	int (*prepare)(struct producer *producer);
	int (*run)(struct producer *producer);
	uint64_t ops;
	/*
	 * How many handles a producer keeps. Their memory is allocated and touched before the
	 * engine is created.
	 */
	uint64_t live_count;
	/*
	 * If true, the harness records the used memory when all producers have prepared and the
	 * worker is idle.
	 */
	bool memory_when_prepared;
	/* The CPU time includes the time until so many callbacks have run. */
	uint64_t wait_expired;
	int64_t wait_timeout_ns;
};

/*
 * Opens a bench, runs the plan with as many producers as the options ask for, closes the bench, and
 * fills in the sample. Returns 0 or an error of the library.
 */
int producers_bench(const struct options *options, const struct producer_plan *plan,
		    struct sample *ret_sample);

/* Schedules one timeout: by its delay, or with --at by a deadline that the harness computes. */
static inline int producer_schedule(struct producer *producer, int64_t delay_ns,
				    const struct tw_kind *kind, uint64_t id,
				    struct tw_handle *ret_handle)
{
	if (producer->loop)
		kind = &bench_kind_owned;
	if (!producer->at)
		return tw_schedule(producer->engine, delay_ns, kind, id_to_arg(id), ret_handle);
	if (producer->at_calls++ % PRODUCER_CLOCK_EVERY == 0)
		producer->at_now_ns = tw_engine_now(producer->engine);
	return tw_schedule_at(producer->engine, producer->at_now_ns + delay_ns, kind, id_to_arg(id),
			      ret_handle);
}

#endif
