/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter as a clock that follows CLOCK_MONOTONIC.
 *
 *     reading = offset + 3/4 of the counter's value
 *
 * Below, "the clock" is CLOCK_MONOTONIC. A sample is a count and the clock's time at the same
 * moment. The thread that takes a sample sets the offset so that the reading equals the clock at
 * that moment. From then on the reading falls behind, usually by a quarter of the time that has
 * passed. The kernel may slew the clock by a tenth, and the rate may have been measured while it
 * did so. Even then the reading advances more slowly than the clock, so it is never ahead of the
 * clock. It falls behind by half of the time that has passed, at most.
 *
 * A sample is used for 10 us only. If a thread reads later, as the worker does after each sleep, it
 * takes a new sample. So a reading is behind by no more than the lag.
 *
 * Readings never step back. Only a later sample sets a new offset. At that moment the reading by
 * the new offset equals the clock, and the reading by the old offset is not ahead of the clock.
 * Both readings advance at the same pace, so the new offset is not less than the old one. The
 * offset and the sample's count are two words that only rise, by compare-and-swap. So if one thread
 * passes a reading to another, the other thread never reads a smaller time.
 *
 * Protocol (E18). The thread that takes a sample raises the offset, then the count. A reader loads
 * the count, then the offset. So if the reader finds a sample recent by its count, the offset that
 * it loads is that sample's or a greater one.
 *
 * Fallback. If the counter can no longer be trusted, this clock reads CLOCK_MONOTONIC for good.
 * Unless this clock is quiet, it reports the fallback to the log. A thread falls back if it finds
 * that the counter has stepped back, or that the reading is ahead of CLOCK_MONOTONIC. A suspend can
 * cause both, because the counter may be reset in it, or run on. A thread also falls back if it
 * cannot take a sample within 2 us. The thread then sets the top bit of the sample's count. So no
 * thread changes the count again, and to every reader the sample looks too old.
 *
 * A fallback makes no step back either. If CLOCK_MONOTONIC stood still, readings by the last sample
 * were ahead of it, by at most 7.5 us (3/4 of 10 us). The greatest possible reading is that at the
 * end of the sample's 10 us. After the fallback, a thread reads CLOCK_MONOTONIC until it has passed
 * this bound. If CLOCK_MONOTONIC stands still, the thread returns the bound.
 *
 * Progress. A reading is wait-free if its sample is recent. Taking a new sample is lock-free.
 */
#ifndef TWI_CLOCK_TSC_H
#define TWI_CLOCK_TSC_H

#include "base/tick.h"
#include "clock/counter.h"
#include "clock/system.h"

struct twi_clock_tsc {
	struct twi_clock_system system;
	uint64_t rate;             /* [const] 3/4 of the ns per 2^32 counts */
	uint64_t age_counts;       /* [const] how long a sample is used */
	_Atomic uint64_t sampled;  /* [atomic E18] the count of the last sample */
	_Atomic int64_t offset_ns; /* [atomic E18] the offset of the last sample */
	uint64_t width_counts;     /* [const] the longest time that a sample may take */
	/* [const] a fallback is not logged, because the user did not choose this clock */
	bool quiet;
};

extern const struct twi_clock_ops twi_clock_tsc_ops;

static inline int64_t twi_tsc_scaled_ns(const struct twi_clock_tsc *self, uint64_t count)
{
	uint64_t low = count & UINT32_MAX;

	return (int64_t)((count >> 32) * self->rate + (low * self->rate >> 32));
}

/*
 * Does the same as twi_clock_after_ns, without a call through the ops table. Reads the counter
 * without a fence, so the processor may read it a little before earlier steps of the program. The
 * lag includes that time. Returns false if the clock is of another type, or if a new sample is
 * needed.
 */
static inline bool twi_clock_quick_after_ns(struct tw_clock *clock, int64_t delay_ns,
					    int64_t *ret_deadline_ns)
{
	struct twi_clock_tsc *self = TWI_CONTAINER_OF(clock, struct twi_clock_tsc, system.clock);
	uint64_t last, count;
	int64_t now_ns;

	if (TWI_UNLIKELY(clock->ops != &twi_clock_tsc_ops))
		return false;
	/* E18: pairs with sampled_raise(), as the load in tsc_now_ns() does. */
	last = twi_load_acquire(&self->sampled);
	/* RELAXED: as above. */
	now_ns = twi_load_relaxed(&self->offset_ns);
	count = twi_tsc_read_early();
	if (TWI_UNLIKELY(count - last > self->age_counts))
		return false;
	now_ns += twi_tsc_scaled_ns(self, count) + clock->lag_ns;
	*ret_deadline_ns = twi_deadline_after(now_ns, delay_ns);
	return true;
}

/*
 * Initialises a clock in zeroed memory. `rate` must come from twi_tsc_rate. If it is 0, the clock
 * falls back at once.
 */
void twi_clock_tsc_init(struct twi_clock_tsc *clock, uint64_t rate);

#endif
