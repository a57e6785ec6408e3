/* SPDX-License-Identifier: MIT */
/*
 * The producers of an engine of ours.
 */
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
	/* Room for so many handles is made and touched before the engine begins. */
	uint64_t live_count;
	/* Note memory when all have prepared, with the worker idle. */
	bool memory_when_prepared;
	/* CPU time counts until so many callbacks have run. */
	uint64_t wait_expired;
	int64_t wait_timeout_ns;
};

/*
 * Opens a bench, runs the plan with a crew of as many producers as the options ask for, closes it,
 * and fills in the sample. Returns 0 or an error of the library.
 */
int producers_bench(const struct options *options, const struct producer_plan *plan,
		    struct sample *ret_sample);

/* One schedule, by delay or with the time given by the harness. */
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
