/* SPDX-License-Identifier: MIT */
/*
 * One engine under measurement, and the account of what happened to its timeouts.
 *
 * Every timeout's argument is its id. The worker counts callbacks, and each producer counts its own
 * calls. The counts are combined when the engine has ended. A process has only one bench, because
 * each repeat is a child process.
 */
#ifndef PERF_HARNESS_BENCH_H
#define PERF_HARNESS_BENCH_H

#include "harness/options.h"
#include "harness/sample.h"

#include <stdint.h>
#include <tickwheel.h>

struct bench {
	const struct options *options;
	struct tw_engine *engine;
	struct tw_clock *clock;
	uint64_t base_rss_bytes;
	/* The greatest values that bench_note_memory has read. */
	uint64_t most_pending;
	uint64_t most_accounted_bytes;
	uint64_t most_rss_bytes;
};

/*
 * Kinds whose callbacks count their timeouts. The last two also measure the lateness, of each
 * timeout or of every eighth.
 */
extern const struct tw_kind bench_kind;
extern const struct tw_kind bench_kind_owned; /* with --loop */
extern const struct tw_kind bench_kind_late;
extern const struct tw_kind bench_kind_late_sampled;

/*
 * Creates and starts an engine as the options say, on a virtual clock at 0 if `virtual_time` is
 * set. The caller must touch the harness's own memory before this call, because all later growth of
 * the process counts as the library's. Returns 0 or the library's error.
 */
int bench_open(const struct options *options, int virtual_time, struct bench *ret_bench);

/*
 * Records how many timeouts are pending and how much memory they take. The call is cheap enough for
 * once in 2^16 operations.
 */
void bench_note_memory(struct bench *bench);

/*
 * Waits until so many callbacks have run, but at most `timeout_ns`, so that a lost timeout does not
 * hang the program.
 */
void bench_wait_expired(uint64_t count, int64_t timeout_ns);

/*
 * Counts a keyed timeout that stop has handed back. The table's hook calls this function, on the
 * worker or on the thread that runs stop.
 */
void bench_count_unexpired(uint64_t id);

/*
 * Stops the engine before bench_close, if the caller must free something in between. Returns 0 or
 * the library's error.
 */
int bench_stop(struct bench *bench);

/*
 * Stops and frees the engine. Fills in the sample: how many timeouts expired or were handed back,
 * lateness, and memory. Returns 0 or the library's error.
 */
int bench_close(struct bench *bench, struct sample *ret_sample);

static inline void *id_to_arg(uint64_t id)
{
	return (void *)(uintptr_t)id;
}

static inline uint64_t id_of_arg(const void *arg)
{
	return (uint64_t)(uintptr_t)arg;
}

#endif
