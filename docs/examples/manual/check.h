/* SPDX-License-Identifier: MIT */
/* Shared by the programs of this folder: a check, and an engine on
 * a clock that the program moves. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

/* Ends the program with code 1 if the condition does not hold. */
#define CHECK(condition)                                           \
	check((condition), #condition, __FILE__, __LINE__)

static inline void check(bool holds, const char *condition,
			 const char *file, int line)
{
	if (!holds) {
		fprintf(stderr, "%s:%d: %s\n", file, line,
			condition);
		exit(1);
	}
}

/* An engine on a virtual clock. */
struct bench {
	struct tw_clock *clock;
	struct tw_engine *engine;
};

static inline struct tw_options bench_options(void)
{
	struct tw_options options;

	CHECK(tw_options_init(&options, sizeof(options)) == 0);
	return options;
}

static inline struct bench bench_open(struct tw_options options)
{
	struct bench bench;

	CHECK(tw_clock_create_virtual(0, &bench.clock) == 0);
	options.clock = bench.clock;
	CHECK(tw_engine_create(&options, &bench.engine) == 0);
	return bench;
}

/* Moves the clock. On return, all timeouts that became due have
 * run. */
static inline void bench_pass(struct bench *bench, int64_t ns)
{
	CHECK(tw_clock_set(bench->clock,
			   tw_clock_now(bench->clock) + ns) == 0);
	CHECK(tw_engine_flush(bench->engine, TW_NEVER) == 0);
}

static inline void bench_stop(struct bench *bench)
{
	CHECK(tw_engine_stop(bench->engine, NULL, NULL, TW_NEVER) ==
	      0);
}

/* Must be called after bench_stop. */
static inline void bench_close(struct bench *bench)
{
	CHECK(tw_engine_destroy(bench->engine) == 0);
	CHECK(tw_clock_destroy(bench->clock) == 0);
}

#endif
