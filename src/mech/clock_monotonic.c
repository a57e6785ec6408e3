/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC: the default clock, and the one that futexes count in.
 */
#include "mech/clock.h"

#include <stddef.h>

static int64_t monotonic_now_ns(struct tw_clock *clock)
{
	(void)clock;
	return twi_monotonic_ns();
}

static int64_t monotonic_futex_until_ns(struct tw_clock *clock, int64_t until_ns)
{
	(void)clock;
	return until_ns;
}

static const struct twi_clock_ops monotonic_ops = {
	.now_ns = monotonic_now_ns,
	.futex_until_ns = monotonic_futex_until_ns,
	.attach = NULL,
	.detach = NULL,
};

struct tw_clock twi_clock_monotonic = {.ops = &monotonic_ops};
