/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_MONOTONIC_COARSE: the time that the kernel stored at its last tick. A reading costs a few
 * loads.
 *
 * The kernel advances the stored time by whole steps (one step is the clock's resolution). At a
 * tick, the stored time may be up to one step behind, and up to one more step passes until the next
 * tick. So a reading is up to two resolutions behind. A third resolution allows for a late tick, as
 * under a hypervisor. The clock never reads ahead of CLOCK_MONOTONIC.
 */
#include "clock/system.h"

#include <errno.h>

enum {
	/* The clock's lag, in resolutions. */
	LAG_STEPS = 3,
	/* The usual delay until the clock shows a time that has come, in resolutions. */
	WAKE_STEPS = 2,
};

static int64_t coarse_now_ns(struct tw_clock *clock)
{
	(void)clock;
	return twi_system_ns(CLOCK_MONOTONIC_COARSE);
}

/*
 * Lets the worker sleep until the clock shows `until_ns`. If it woke up sooner, it would find
 * nothing due until the kernel's next tick, and would try again and again.
 */
static int64_t coarse_futex_until_ns(struct tw_clock *clock, int64_t until_ns)
{
	return twi_deadline_after(until_ns, WAKE_STEPS * clock->resolution_ns);
}

static enum tw_clock_type coarse_type(struct tw_clock *clock)
{
	(void)clock;
	return TW_CLOCK_COARSE;
}

static const struct twi_clock_ops coarse_ops = {
	.now_ns = coarse_now_ns,
	.futex_until_ns = coarse_futex_until_ns,
	.attach = twi_clock_system_attach,
	.detach = twi_clock_system_detach,
	.busy = twi_clock_system_busy,
	.type = coarse_type,
};

int twi_clock_coarse_init(struct twi_clock_system *clock)
{
	struct timespec step;

	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step) != 0)
		return -EOPNOTSUPP;
	clock->clock.ops = &coarse_ops;
	clock->clock.resolution_ns = (int64_t)step.tv_sec * TWI_NS_PER_S + step.tv_nsec;
	clock->clock.lag_ns = LAG_STEPS * clock->clock.resolution_ns;
	return 0;
}
