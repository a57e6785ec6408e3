/* SPDX-License-Identifier: MIT */
/*
 * The threads that schedule and cancel: prepared, lined up, and let go at once. Which engine they
 * use is not known here.
 */
#ifndef PERF_HARNESS_CREW_H
#define PERF_HARNESS_CREW_H

#include "harness/random.h"
#include "harness/sample.h"

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

struct bench;
struct crew_member;
struct tw_engine;
struct tw_handle;

/* Has its own cache lines, because a producer writes it in its loop. */
struct producer {
	alignas(64) struct bench *bench;
	struct tw_engine *engine;
	unsigned index;
	unsigned count;
	/* Its share of the operations, and where its ids begin. */
	uint64_t ops;
	uint64_t first_id;
	struct random random;
	/* Its share of the plan's live timeouts, and the room for tickwheel's handles. */
	struct tw_handle *live;
	uint64_t live_count;
	/* A peer's timers. */
	void *own;
	/*
	 * The time of the schedules alone, for workloads that do not measure the rest of the loop.
	 */
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

/* All but `run` may be NULL; each returns 0 or a negative errno value. */
struct crew_plan {
	unsigned count;
	uint64_t ops;
	uint64_t live_count;
	/* In the producer's thread. The first two are not timed. */
	int (*begin)(struct producer *producer);
	int (*prepare)(struct producer *producer);
	int (*run)(struct producer *producer);
	int (*end)(struct producer *producer);
	/* In the main thread: when all have prepared; and when all have run, until the engine has
	 * caught up, which CPU time includes. */
	int (*prepared)(void *context);
	int (*caught_up)(void *context);
	void *context;
};

struct crew {
	struct crew_plan plan;
	struct producer *producers;
	struct crew_member *members;
};

/* Makes the producers, with their shares and seeds. 0 or -ENOMEM; crew_done in both cases. */
int crew_init(struct crew *crew, const struct crew_plan *plan);

void crew_done(struct crew *crew);

/*
 * Runs the plan and fills in the sample. Wall time goes from the first start to the last end,
 * divided by all operations. CPU time is that of all threads, from the start until the engine has
 * caught up. The sample also gets the scheduled and cancelled timeouts. Returns 0 or the first
 * error.
 */
int crew_run(struct crew *crew, struct sample *sample);

#endif
