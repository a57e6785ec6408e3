/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC: the default clock, and the one that futexes use.
 */
#include "clock/system.h"

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

static enum tw_clock_type monotonic_type(struct tw_clock *clock)
{
	(void)clock;
	return TW_CLOCK_MONOTONIC;
}

/* The default clock is never freed, so the engines that use it need not be counted. */
static const struct twi_clock_ops default_ops = {
	.now_ns = monotonic_now_ns,
	.futex_until_ns = monotonic_futex_until_ns,
	.type = monotonic_type,
};

struct tw_clock twi_clock_monotonic = {.ops = &default_ops};

static const struct twi_clock_ops owned_ops = {
	.now_ns = monotonic_now_ns,
	.futex_until_ns = monotonic_futex_until_ns,
	.attach = twi_clock_system_attach,
	.detach = twi_clock_system_detach,
	.busy = twi_clock_system_busy,
	.type = monotonic_type,
};

int twi_clock_monotonic_init(struct twi_clock_system *clock)
{
	clock->clock.ops = &owned_ops;
	return 0;
}
