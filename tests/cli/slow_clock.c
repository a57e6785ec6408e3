/* SPDX-License-Identifier: MIT */
/*
 * A library that is preloaded before tickwheel's. The program then reads an engine's time that is a
 * minute old, so every callback looks early to it. The library itself reads the clock through
 * another function.
 */
#include <stdint.h>
#include <time.h>

struct tw_engine;

int64_t tw_engine_now(struct tw_engine *engine);

int64_t tw_engine_now(struct tw_engine *engine)
{
	struct timespec now;

	(void)engine;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((int64_t)now.tv_sec - 60) * INT64_C(1000000000) + now.tv_nsec;
}
