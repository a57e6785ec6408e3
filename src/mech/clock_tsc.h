/* SPDX-License-Identifier: MIT */
/*
 * The time stamp counter, kept to CLOCK_MONOTONIC.
 *
 *     reading = offset + 3/4 of what the counter says
 *
 * A sample (count, CLOCK_MONOTONIC) taken at one moment sets the offset so that the reading is the
 * clock's at that moment. From there on it falls behind, by a quarter and at most half of the time
 * that has passed: however the kernel slews its clock (it allows itself a tenth, and the rate was
 * measured while it may have done so), the reading's pace stays the slower one. So a reading is never
 * ahead of CLOCK_MONOTONIC. And it is used only near its sample (10 us); whoever comes later, the
 * worker after each sleep, takes a new one. So it is never far behind: the bound is the clock's lag.
 *
 * Never back. An offset is set by a later sample only: that is at the clock, the reading by the older
 * one was not ahead of it, both go on at one pace; so the new offset is the greater. Offset and
 * count of the sample are two words that only rise, by compare-and-swap; who has seen a value in one
 * thread, and told another one, is not told less there.
 *
 * Protocol (E18). Who samples raises the offset, then the count; who reads loads the count, and the
 * offset then: so the offset is at least that of the sample whose age it has judged.
 *
 * When it cannot be trusted any more, it falls back to CLOCK_MONOTONIC, for good, and tells the log:
 * where the counter has stepped back, or is ahead of the clock, as after a suspend in which it ran on
 * or was reset; and where a sample cannot be taken within 2 us. Every earlier reading was behind the
 * clock, so this is no step back. The count is then greater than any that the counter reaches, so nobody
 * changes it again, and no reading is near it.
 *
 * Progress. A reading: wait-free, but for a new sample, which is lock-free.
 */
#ifndef TWI_MECH_CLOCK_TSC_H
#define TWI_MECH_CLOCK_TSC_H

#include "base/tick.h"
#include "mech/clock_system.h"
#include "mech/tsc.h"

struct twi_clock_tsc {
	struct twi_clock_system system;
	uint64_t rate;             /* [const] 3/4 ns per 2^32 counts */
	uint64_t age_counts;       /* [const] for so long a sample serves */
	_Atomic uint64_t sampled;  /* [atomic E18] the count of the last sample */
	_Atomic int64_t offset_ns; /* [atomic E18] of the last sample */
	uint64_t width_counts;     /* [const] in so short a time it has to be taken */
	bool quiet; /* [const] the user has not asked for it: no word if it falls back */
};

extern const struct twi_clock_ops twi_clock_tsc_ops;

static inline int64_t twi_tsc_scaled_ns(const struct twi_clock_tsc *self, uint64_t count)
{
	uint64_t low = count & UINT32_MAX;

	return (int64_t)((count >> 32) * self->rate + (low * self->rate >> 32));
}

/*
 * As twi_clock_after_ns, without a call. The counter is read without a fence, so that the processor may
 * have done that a little before what comes earlier in the program: the lag holds that, too. False: of
 * another clock, or it takes a new sample.
 */
static inline bool twi_clock_quick_after_ns(struct tw_clock *clock, int64_t delay_ns,
					    int64_t *ret_deadline_ns)
{
	struct twi_clock_tsc *self = TWI_CONTAINER_OF(clock, struct twi_clock_tsc, system.clock);
	uint64_t last, count;
	int64_t now_ns;

	if (TWI_UNLIKELY(clock->ops != &twi_clock_tsc_ops))
		return false;
	/* E18, pairs with sampled_raise: as in a reading in order. */
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

/* In memory that is zero. `rate`: of twi_tsc_rate; 0 makes it fall back at once. */
void twi_clock_tsc_init(struct twi_clock_tsc *clock, uint64_t rate);

#endif
