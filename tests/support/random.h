/* SPDX-License-Identifier: MIT */
/* A small generator with a seed, so that a failing run can be repeated. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

struct random {
	uint64_t state;
};

/* Returns the next random number (splitmix64). */
static inline uint64_t random_next(struct random *random)
{
	uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

static inline uint64_t random_below(struct random *random, uint64_t limit)
{
	return random_next(random) % limit;
}

/* Returns a number below 2^bits. All magnitudes (lengths in bits) are equally likely. */
static inline int64_t random_magnitude(struct random *random, unsigned int bits)
{
	uint64_t width = random_below(random, bits) + 1;

	return (int64_t)(random_next(random) & ((UINT64_C(1) << width) - 1));
}

#endif
