/* SPDX-License-Identifier: MIT */
/*
 * The threads that schedule and cancel: prepared, lined up, and let go at once.
 */
#ifndef PERF_PRODUCER_H
#define PERF_PRODUCER_H

#include "bench.h"
#include "random.h"
#include "sample.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

/* With --at, the harness reads the clock once for so many schedules. */
enum { PRODUCER_CLOCK_EVERY = 64 };

/* Own cache lines: what a producer writes in its loop is nobody else's. */
struct producer {
	alignas(64) struct bench *bench;
	struct tw_engine *engine;
	unsigned index;
	unsigned count;
	/* Its share of the operations, and where its ids begin. */
	uint64_t ops;
	uint64_t first_id;
	struct random random;
	/* Its share of the plan's live timeouts, and the room for their handles. */
	struct tw_handle *live;
	uint64_t live_count;
	/* Time of the schedules alone, where the rest of the loop is not what is measured. */
	int64_t inside_ns;
	struct tally scheduled;
	struct tally cancelled;
	int error;
	/* With --at: the time as last read. */
	bool at;
	/* With --loop: it owns the engine. */
	bool loop;
	uint64_t at_calls;
	int64_t at_now_ns;
	alignas(64) int64_t started_ns;
	int64_t ended_ns;
};

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
 * Opens a bench, runs the plan with the producers that the options ask for, closes it, and fills in
 * the sample: wall time from the first start to the last end, over all operations; CPU time of all
 * threads from the start until the worker has caught up. Returns 0 or an error of the library.
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
