/* SPDX-License-Identifier: MIT */
#include "clock/tsc.h"

#include "clock/counter.h"
#include "thread/log.h"

/* This bit of `sampled` is set if the clock has fallen back. No real count is so great. */
#define FALLEN (UINT64_C(1) << 63)

/*
 * AGE_NS: a sample is used for this long. Taking a new one costs about one percent of that time.
 * WIDTH_NS: the longest time that a sample may take.
 */
#define AGE_NS UINT64_C(10000)
#define WIDTH_NS UINT64_C(2000)
/*
 * The lag has three parts. The first is half of AGE_NS: the reading advances at 3/4 of the
 * counter's pace, and CLOCK_MONOTONIC at up to 5/4. The second is the longest time that a sample
 * may take. The third is how early a thread may read the counter.
 */
#define LAG_NS ((int64_t)(AGE_NS / 2 + WIDTH_NS) + TWI_TSC_EARLY_NS)

enum {
	/*
	 * If a thread is interrupted at each of this many tries, the machine cannot use this clock.
	 */
	SAMPLE_TRIES = 100,
	/*
	 * After a fallback, CLOCK_MONOTONIC is read up to this many times, until it has passed the
	 * greatest reading that was given. Usually some hundred readings are enough.
	 */
	PASS_TRIES = 1000,
};

/* A time of CLOCK_MONOTONIC, and the counts that were read just before and after it. */
struct sample {
	uint64_t before;
	int64_t ns;
	uint64_t after;
};

static struct twi_clock_tsc *tsc_of(struct tw_clock *clock)
{
	return TWI_CONTAINER_OF(clock, struct twi_clock_tsc, system.clock);
}

static bool sample_take(const struct twi_clock_tsc *self, struct sample *ret_sample)
{
	for (int i = 0; i < SAMPLE_TRIES; i++) {
		ret_sample->before = twi_tsc_read();
		ret_sample->ns = twi_monotonic_ns();
		ret_sample->after = twi_tsc_read();
		if (ret_sample->after - ret_sample->before <= self->width_counts)
			return true;
	}
	return false;
}

/*
 * Returns true if the counter has not stepped back, and the reading by the last sample is not ahead
 * of CLOCK_MONOTONIC.
 */
static bool sample_fits(const struct twi_clock_tsc *self, const struct sample *sample,
			uint64_t last, int64_t offset_ns)
{
	if (last > sample->before && last - sample->before > self->width_counts)
		return false;
	return offset_ns + twi_tsc_scaled_ns(self, sample->before) <= sample->ns;
}

/*
 * Raises the offset to `offset_ns`, unless it is greater already. Returns the offset. RELAXED, load
 * and swap: the offset only rises, and the count that is stored afterwards publishes it.
 */
static int64_t offset_raise(struct twi_clock_tsc *self, int64_t offset_ns)
{
	int64_t seen_ns = twi_load_relaxed(&self->offset_ns);

	while (seen_ns < offset_ns) {
		if (twi_cas_relaxed(&self->offset_ns, &seen_ns, offset_ns))
			return offset_ns;
	}
	return seen_ns;
}

/*
 * Raises the last sample's count to `count`, unless it is greater already. Returns false if the
 * clock has fallen back.
 */
static bool sampled_raise(struct twi_clock_tsc *self, uint64_t count)
{
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	uint64_t seen = twi_load_relaxed(&self->sampled);

	while (seen < count) {
		/*
		 * E18: pairs with tsc_now_ns(). Publishes this sample's offset. Without it a reader
		 * could check the age of this sample, but then use an older offset.
		 */
		if (twi_cas_release(&self->sampled, &seen, count))
			return true;
	}
	return (seen & FALLEN) == 0;
}

/*
 * Lets the clock read CLOCK_MONOTONIC for good. RELAXED: no other data is read because of this bit.
 * The last sample's count stays in the other bits.
 */
static TWI_COLD void fall_back(struct twi_clock_tsc *self)
{
	if ((twi_fetch_or_relaxed(&self->sampled, FALLEN) & FALLEN) == 0 && !self->quiet)
		twi_log(TW_LOG_WARNING, "the time stamp counter is not trusted: that clock is "
					"CLOCK_MONOTONIC from now on");
}

/*
 * Returns the greatest reading that the clock may have given before it fell back. RELAXED, both
 * loads: the offset only rises, and the count no longer changes.
 */
static int64_t fallen_most_ns(struct twi_clock_tsc *self)
{
	uint64_t last = twi_load_relaxed(&self->sampled) & ~FALLEN;

	return twi_load_relaxed(&self->offset_ns) +
	       twi_tsc_scaled_ns(self, last + self->age_counts);
}

static TWI_COLD int64_t fallen_now_ns(struct twi_clock_tsc *self)
{
	int64_t most_ns = fallen_most_ns(self);
	int64_t now_ns = twi_monotonic_ns();

	for (int i = 0; i < PASS_TRIES && now_ns < most_ns; i++)
		now_ns = twi_monotonic_ns();
	return now_ns < most_ns ? most_ns : now_ns;
}

/*
 * Takes a new sample and returns its reading. RELAXED, both loads: the values are only compared
 * with the new sample. If another thread changes them meanwhile, it has made the same comparison
 * with its own sample.
 */
static TWI_COLD int64_t sampled_now_ns(struct twi_clock_tsc *self)
{
	uint64_t last = twi_load_relaxed(&self->sampled);
	int64_t offset_ns = twi_load_relaxed(&self->offset_ns);
	struct sample sample;

	if ((last & FALLEN) != 0)
		return fallen_now_ns(self);
	if (!sample_take(self, &sample) || !sample_fits(self, &sample, last, offset_ns)) {
		fall_back(self);
		return fallen_now_ns(self);
	}
	/*
	 * The 1 makes up for the rounding in twi_tsc_scaled_ns, so that no reading is ahead of
	 * CLOCK_MONOTONIC.
	 */
	offset_ns = offset_raise(self, sample.ns - 1 - twi_tsc_scaled_ns(self, sample.after));
	if (!sampled_raise(self, sample.before))
		return fallen_now_ns(self);
	return offset_ns + twi_tsc_scaled_ns(self, sample.after);
}

static int64_t tsc_now_ns(struct tw_clock *clock)
{
	struct twi_clock_tsc *self = tsc_of(clock);
	/*
	 * E18: pairs with sampled_raise(), so that the offset read below is at least the offset of
	 * the sample with this count.
	 */
	uint64_t last = twi_load_acquire(&self->sampled);
	/* RELAXED: as above. */
	int64_t offset_ns = twi_load_relaxed(&self->offset_ns);
	uint64_t count = twi_tsc_read();

	if (TWI_LIKELY(count - last <= self->age_counts))
		return offset_ns + twi_tsc_scaled_ns(self, count);
	return sampled_now_ns(self);
}

/*
 * Returns the time until which the worker must sleep: one nanosecond after `until_ns`, because the
 * worker takes a sample when it wakes up, and the reading is then one nanosecond less than
 * CLOCK_MONOTONIC.
 */
static int64_t tsc_futex_until_ns(struct tw_clock *clock, int64_t until_ns)
{
	(void)clock;
	return twi_deadline_after(until_ns, 1);
}

static enum tw_clock_type tsc_type(struct tw_clock *clock)
{
	/* RELAXED: no other data is read because of the answer. */
	return (twi_load_relaxed(&tsc_of(clock)->sampled) & FALLEN) != 0 ? TW_CLOCK_MONOTONIC
									 : TW_CLOCK_TSC;
}

const struct twi_clock_ops twi_clock_tsc_ops = {
	.now_ns = tsc_now_ns,
	.futex_until_ns = tsc_futex_until_ns,
	.attach = twi_clock_system_attach,
	.detach = twi_clock_system_detach,
	.busy = twi_clock_system_busy,
	.type = tsc_type,
};

/*
 * Returns whether the clock can use this rate. Scaling has 32 bits for it (3/4 of the nanoseconds
 * per 2^32 counts), so a counter of less than 0.75 GHz cannot be used.
 */
static bool rate_fits(uint64_t rate)
{
	return rate > 0 && rate / 4 * 3 <= UINT32_MAX;
}

/* RELAXED, both stores: no other thread has the clock yet. */
void twi_clock_tsc_init(struct twi_clock_tsc *clock, uint64_t rate)
{
	clock->system.clock.ops = &twi_clock_tsc_ops;
	twi_store_relaxed(&clock->offset_ns, INT64_MIN / 2);
	twi_store_relaxed(&clock->sampled, 0);
	if (!rate_fits(rate)) {
		fall_back(clock);
		return;
	}
	clock->system.clock.lag_ns = LAG_NS;
	clock->rate = rate / 4 * 3;
	clock->age_counts = (AGE_NS << 32) / rate;
	clock->width_counts = (WIDTH_NS << 32) / rate;
	(void)tsc_now_ns(&clock->system.clock);
}
