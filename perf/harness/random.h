/* SPDX-License-Identifier: MIT */
/*
 * xorshift64*: one random number in about a nanosecond, the same sequence in each run.
 */
#ifndef PERF_HARNESS_RANDOM_H
#define PERF_HARNESS_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

static inline struct random random_seeded(uint64_t seed)
{
	return (struct random){.state = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15)};
}

static inline uint64_t random_next(struct random *random)
{
	uint64_t x = random->state;

	x ^= x >> 12;
	x ^= x << 25;
	x ^= x >> 27;
	random->state = x;
	return x * UINT64_C(0x2545f4914f6cdd1d);
}

/* Returns a uniformly distributed number in [0, bound). */
static inline uint32_t random_below(struct random *random, uint32_t bound)
{
	return (uint32_t)(((random_next(random) >> 32) * bound) >> 32);
}

/*
 * Returns a uniformly distributed delay in [from_us, to_us), in nanoseconds. `to_us` must be below
 * 2^32 (71 minutes).
 */
static inline int64_t random_delay_ns(struct random *random, uint32_t from_us, uint32_t to_us)
{
	return (int64_t)(from_us + random_below(random, to_us - from_us)) * 1000;
}

#endif
