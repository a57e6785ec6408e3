/* SPDX-License-Identifier: MIT */
/*
 * The workloads by name.
 */
#ifndef PERF_WORKLOAD_WORKLOAD_H
#define PERF_WORKLOAD_WORKLOAD_H

#include "harness/options.h"
#include "harness/sample.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * The kinds of workloads that other engines can run too. Only tickwheel can run a workload without
 * a kind.
 */
enum {
	WORKLOAD_KIND_SCHEDULE_CANCEL = 1 << 0,
	WORKLOAD_KIND_LIVE_RING = 1 << 1,
	WORKLOAD_KIND_FIRE = 1 << 2,
	WORKLOAD_KIND_LIGHT = 1 << 3,
	WORKLOAD_KIND_LOOP = 1 << 4,
	WORKLOAD_KIND_SHARED = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIVE_RING |
			       WORKLOAD_KIND_FIRE | WORKLOAD_KIND_LIGHT,
};

struct workload {
	const char *name;
	const char *summary;
	/*
	 * Runs one repeat in the calling process, which should be a new child. The options are
	 * complete: no number in them is 0 to stand for a default. Returns 0 or the library's
	 * error.
	 */
	int (*run)(const struct options *options, uint64_t parameter, struct sample *ret_sample);
	uint64_t parameter;
	uint64_t ops;
	/* The repeats of all workloads with this flag that match the operand alternate. */
	bool in_turns;
	/* The default number of producers. 0: one. */
	unsigned producers;
	unsigned repeat;
	/*
	 * The ns per operation include a clock read. Another column shows the figure without the
	 * cost of that read.
	 */
	bool beside_clock;
	/* The workload supports --loop. */
	bool loop_able;
	/* The engine's tick. 0: a millisecond. */
	uint64_t tick_ns;
	/* WORKLOAD_KIND_…, or 0. */
	unsigned kind;
	/* The workload ignores --ops and --producers. */
	bool fixed_size;
};

/* The number of keys of the keyed workloads. */
#define WORKLOAD_KEYED_KEYS 1000000

/* All workloads. Ends with a NULL name. */
extern const struct workload workloads[];

/*
 * Returns whether `operand` is the name of this workload, or the name of its family, such as
 * "batch".
 */
bool workload_matches(const struct workload *workload, const char *operand);

/* How many timeouts each producer of workload_threads has pending. */
#define WORKLOAD_THREADS_WINDOW 100

/*
 * The parameter of workload_periodic: skip missed runs, or use a fixed delay. 0: make up for missed
 * runs.
 */
enum { WORKLOAD_PERIODIC_SKIP = 1, WORKLOAD_PERIODIC_DELAY = 2 };
/*
 * The parameter of workload_date: how it schedules timeouts, or that it measures a step of the wall
 * clock.
 */
enum { WORKLOAD_DATE_AT, WORKLOAD_DATE_WALL, WORKLOAD_DATE_STEP };
/* Bits of workload_batch's parameter, in addition to the size of a batch. */
enum {
	WORKLOAD_BATCH_SINGLE = 1 << 16,
	WORKLOAD_BATCH_LIVE = 1 << 17,
	WORKLOAD_BATCH_SCOPE = 1 << 18,
};

/* Each runs one repeat. `live` is how many timeouts stay pending meanwhile. */
int workload_schedule_cancel(const struct options *options, uint64_t unused,
			     struct sample *ret_sample);
int workload_live_ring(const struct options *options, uint64_t live, struct sample *ret_sample);
int workload_fire(const struct options *options, uint64_t unused, struct sample *ret_sample);
int workload_light(const struct options *options, uint64_t crowd, struct sample *ret_sample);
int workload_idle(const struct options *options, uint64_t live, struct sample *ret_sample);
int workload_reschedule(const struct options *options, uint64_t earlier, struct sample *ret_sample);
int workload_periodic(const struct options *options, uint64_t rule, struct sample *ret_sample);
int workload_date(const struct options *options, uint64_t work, struct sample *ret_sample);
int workload_batch(const struct options *options, uint64_t parameter, struct sample *ret_sample);
/* `work`: an enum keyed_work (workload/keyed.h). workload_keyed_bare uses the hash table alone. */
int workload_keyed(const struct options *options, uint64_t work, struct sample *ret_sample);
int workload_keyed_bare(const struct options *options, uint64_t work, struct sample *ret_sample);
int workload_group(const struct options *options, uint64_t engines, struct sample *ret_sample);
int workload_pending(const struct options *options, uint64_t live, struct sample *ret_sample);
int workload_pending_fresh(const struct options *options, uint64_t live, struct sample *ret_sample);
/*
 * `percent`: how many of the timeouts have a delay of 1 ms; they fire unless they are cancelled
 * before.
 */
int workload_threads(const struct options *options, uint64_t percent, struct sample *ret_sample);
int workload_loop(const struct options *options, uint64_t live, struct sample *ret_sample);

#endif
