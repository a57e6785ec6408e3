/* SPDX-License-Identifier: MIT */
/*
 * The threads that schedule and cancel. They prepare, wait for each other, and then start at once.
 * This file does not depend on the engine that they use.
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

/* A thread that schedules and cancels. The struct has its own cache lines, because the thread
 * writes to it in its loop. */
struct producer {
	alignas(64) struct bench *bench;
	struct tw_engine *engine;
	unsigned index;
	unsigned count;
	/* The producer's share of the operations, and its first id. */
	uint64_t ops;
	uint64_t first_id;
	struct random random;
	/* Memory for the handles of the producer's live timeouts (tickwheel only), and their
	 * number. */
	struct tw_handle *live;
	uint64_t live_count;
	/* The producer's timers, for a peer. */
	void *own;
	/*
	 * The time of the schedules alone, for workloads that do not measure the rest of the loop.
	 */
	int64_t inside_ns;
	struct tally scheduled;
	struct tally cancelled;
	int error;
	/*
	 * With --at: the producer passes a deadline to each schedule. at_now_ns is the producer's
	 * last reading of the clock.
	 */
	bool at;
	/* With --loop: the producer owns the engine. */
	bool loop;
	uint64_t at_calls;
	int64_t at_now_ns;
	alignas(64) int64_t started_ns;
	int64_t ended_ns;
};

/*
 * What the crew does. All functions but `run` may be NULL. Each returns 0 or a negative errno
 * value.
 */
struct crew_plan {
	unsigned count;
	uint64_t ops;
	uint64_t live_count;
	/* These run on the producer's thread. Only `run` is timed. */
	int (*begin)(struct producer *producer);
	int (*prepare)(struct producer *producer);
	int (*run)(struct producer *producer);
	int (*end)(struct producer *producer);
	/*
	 * These run on the main thread. `prepared` runs when all producers have prepared.
	 * `caught_up` runs when all have run, and waits until the engine has caught up. The CPU
	 * time includes that wait.
	 */
	int (*prepared)(void *context);
	int (*caught_up)(void *context);
	void *context;
};

struct crew {
	struct crew_plan plan;
	struct producer *producers;
	struct crew_member *members;
};

/*
 * Makes the producers, with their shares and seeds. Returns 0 or -ENOMEM. The caller must call
 * crew_done in both cases.
 */
int crew_init(struct crew *crew, const struct crew_plan *plan);

void crew_done(struct crew *crew);

/*
 * Runs the plan and fills in the sample. Wall time is the time from the first start to the last
 * end; if the producers measure inside_ns, it is the sum of these. CPU time is that of all threads,
 * from the start until the engine has caught up. Both are divided by the number of all operations.
 * The sample also gets the scheduled and cancelled timeouts. Returns 0 or the first error.
 */
int crew_run(struct crew *crew, struct sample *sample);

#endif
