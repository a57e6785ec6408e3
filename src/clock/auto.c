/* SPDX-License-Identifier: MIT */
#include "clock/auto.h"

#include "base/atomic.h"
#include "clock/counter.h"

/*
 * Measures the counter's rate once per process. RELAXED, both accesses: the rate is one number, and
 * no other data is read because of its value. If two threads measure it at the same time, their
 * results are nearly equal.
 */
static uint64_t rate_once(void)
{
	/* [atomic] the rate plus one, or 0 if it is not measured yet */
	static _Atomic uint64_t known;
	uint64_t rate = twi_load_relaxed(&known);

	if (rate == 0) {
		rate = twi_tsc_rate() + 1;
		twi_store_relaxed(&known, rate);
	}
	return rate - 1;
}

struct tw_clock *twi_clock_auto(struct twi_clock_tsc *own, uint64_t tick_ns, uint64_t spin_ns)
{
	uint64_t rate;

	if (tick_ns < TWI_CLOCK_AUTO_TICK_NS || spin_ns != 0)
		return &twi_clock_monotonic;
	rate = rate_once();
	if (rate == 0)
		return &twi_clock_monotonic;
	own->quiet = true;
	twi_clock_tsc_init(own, rate);
	return &own->system.clock;
}
