/* SPDX-License-Identifier: MIT */
/*
 * CLOCK_BOOTTIME, which continues to count while the machine is suspended.
 *
 * A futex cannot wait by this clock. If it waited by CLOCK_MONOTONIC, and the machine were
 * suspended meanwhile, the worker would wake up too late, by the length of the suspend. So the
 * worker parks on descriptors (thread/park_fd.h).
 */
#include "clock/system.h"
#include "thread/park_fd.h"

#include <errno.h>

static int64_t boottime_now_ns(struct tw_clock *clock)
{
	(void)clock;
	return twi_system_ns(CLOCK_BOOTTIME);
}

static void boottime_wait(struct tw_clock *clock, struct twi_park *park, int64_t until_ns,
			  int64_t at_most_ns)
{
	(void)clock;
	twi_park_fd_wait(park, until_ns, at_most_ns);
}

static int boottime_attach(struct tw_clock *clock, struct twi_park *park)
{
	int error = twi_park_fd_open(park, CLOCK_BOOTTIME);

	return error != 0 ? error : twi_clock_system_attach(clock, park);
}

static void boottime_detach(struct tw_clock *clock, struct twi_park *park)
{
	twi_park_fd_close(park);
	twi_clock_system_detach(clock, park);
}

/*
 * Opens descriptors for the child. Otherwise parent and child would share the descriptors, and a
 * timer that one of them sets would wake the other.
 */
static int boottime_inherit(struct tw_clock *clock, struct twi_park *park)
{
	struct twi_park fresh;
	int error = twi_park_fd_open(&fresh, CLOCK_BOOTTIME);

	(void)clock;
	if (error != 0)
		return error;
	twi_park_fd_close(park);
	park->event_fd = fresh.event_fd;
	park->wait_fd = fresh.wait_fd;
	return 0;
}

static enum tw_clock_type boottime_type(struct tw_clock *clock)
{
	(void)clock;
	return TW_CLOCK_BOOTTIME;
}

static const struct twi_clock_ops boottime_ops = {
	.now_ns = boottime_now_ns,
	.wait = boottime_wait,
	.attach = boottime_attach,
	.detach = boottime_detach,
	.inherit = boottime_inherit,
	.busy = twi_clock_system_busy,
	.type = boottime_type,
};

int twi_clock_boottime_init(struct twi_clock_system *clock)
{
	struct timespec now;

	clock->clock.ops = &boottime_ops;
	return clock_gettime(CLOCK_BOOTTIME, &now) == 0 ? 0 : -EOPNOTSUPP;
}
