/* SPDX-License-Identifier: MIT */
/*
 * The clock of the time stamp counter. The test replaces the counter and CLOCK_MONOTONIC by its own
 * values. These values drift, jump or stand still, and sometimes no sample is possible. If the
 * counter and CLOCK_MONOTONIC disagree too much, the clock is CLOCK_MONOTONIC from then on. This is
 * called the fall.
 *
 * Seen to fail with these defects (in parentheses: the tests):
 * - sample_fits() does not check one of its two conditions (falls_back_...), or allows a reading to
 *   be 5 us ahead (..._by_a_little);
 * - a sample is used for ever, does not raise the count of samples, or is used after the fall
 *   (a_sample_serves..., check_fallen);
 * - a sample's age counts from the end of the sample (a_slow_...);
 * - after the fall, the clock returns CLOCK_MONOTONIC although an earlier reading was ahead of it
 *   (does_not_step_back_...);
 * - after the fall, the clock returns the counter's greatest reading without waiting for
 *   CLOCK_MONOTONIC (waits_...).
 */
#include "check.h"
#include "clock/auto.h"
#include "clock/counter.h"
#include "clock/tsc.h"

#include <sys/syscall.h>
#include <tickwheel.h>
#include <time.h>
#include <unistd.h>

/* By the clock's measured rate, the counter runs at 3 GHz. */
#define RATE ((UINT64_C(1) << 32) / 3)
#define COUNTS_PER_US INT64_C(3000)

static uint64_t counter;
static int64_t monotonic;
static unsigned clock_reads;
static uint64_t sample_width;   /* how many counts pass after a sample has read the clock */
static int64_t sample_width_ns; /* how much time passes on the clock during a sample */
static uint64_t rate = RATE;

uint64_t twi_tsc_read(void)
{
	return counter;
}

uint64_t twi_tsc_rate(void)
{
	return rate;
}

/* Only the library's calls get the fake time, because Criterion needs the real clock. */
static __thread bool faked;

int clock_gettime(clockid_t id, struct timespec *ret_time)
{
	if (!faked)
		return (int)syscall(SYS_clock_gettime, id, ret_time);
	clock_reads++;
	ret_time->tv_sec = monotonic / NS_PER_S;
	ret_time->tv_nsec = monotonic % NS_PER_S;
	counter += sample_width;
	monotonic += sample_width_ns;
	return 0;
}

static unsigned warnings;

static void warning_count(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	(void)text;
	warnings += level == TW_LOG_WARNING;
}

static struct tw_clock *clock_open(void)
{
	static const struct tw_log log = {warning_count, NULL};
	struct tw_clock *clock = NULL;

	faked = true;
	counter = UINT64_C(1) << 40;
	monotonic = 1000 * NS_PER_S;
	check_int(tw_log_set(&log), 0);
	check_int(tw_clock_create(TW_CLOCK_TSC, &clock), 0);
	return clock;
}

static void pass(int64_t duration_ns, int64_t counts)
{
	monotonic += duration_ns;
	counter += (uint64_t)counts;
}

static void pass_us(int64_t us)
{
	pass(us * NS_PER_US, us * COUNTS_PER_US);
}

static void check_fallen(struct tw_clock *clock, unsigned told)
{
	check_int(tw_clock_now(clock), monotonic);
	check_int(tw_clock_type(clock), TW_CLOCK_MONOTONIC);
	check_int(warnings, told);
	/* The fall back to CLOCK_MONOTONIC must be final. */
	pass_us(5);
	clock_reads = 0;
	check_int(tw_clock_now(clock), monotonic);
	check_int(clock_reads, 1);
	check_int(warnings, told);
}

Test(clock_tsc, a_sample_serves_for_10_us)
{
	struct tw_clock *clock = clock_open();

	check_int(tw_clock_now(clock), monotonic - 1);
	clock_reads = 0;
	pass_us(9);
	check_at_most(tw_clock_now(clock), monotonic);
	check_int(clock_reads, 0);
	pass_us(3);
	check_int(tw_clock_now(clock), monotonic - 1);
	check_int(clock_reads, 1);
	check_int(tw_clock_type(clock), TW_CLOCK_TSC);
	check_int(warnings, 0);
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * The kernel may slew its clock by a tenth in either direction. The rate may have been measured
 * during such a slew. Both together give the factors 0.81 and 1.22.
 */
Test(clock_tsc, readings_stay_within_the_lag_while_the_rate_drifts)
{
	struct tw_clock *clock = clock_open();
	int64_t last_ns = 0;

	for (int i = 0; i < 100000; i++) {
		int64_t counts =
			(i / 1000) % 2 ? COUNTS_PER_US * 81 / 100 : COUNTS_PER_US * 122 / 100;
		int64_t now_ns;

		pass(NS_PER_US, counts);
		now_ns = tw_clock_now(clock);
		check_at_least(now_ns, last_ns);
		check_at_most(now_ns, monotonic);
		check_at_least(now_ns, monotonic - tw_clock_lag(clock));
		last_ns = now_ns;
	}
	check_int(tw_clock_type(clock), TW_CLOCK_TSC);
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * Every second sample is slow (wide). A slow sample gives a lower offset, which must not lower the
 * readings.
 */
Test(clock_tsc, slow_samples_do_not_lower_it)
{
	struct tw_clock *clock = clock_open();
	int64_t last_ns = 0;

	for (int i = 0; i < 10000; i++) {
		int64_t now_ns;

		sample_width = i % 2 ? 10 : 2 * COUNTS_PER_US;
		pass(11 * NS_PER_US, 11 * COUNTS_PER_US * 122 / 100);
		now_ns = tw_clock_now(clock);
		check_at_least(now_ns, last_ns);
		check_at_least(now_ns, monotonic - tw_clock_lag(clock));
		last_ns = now_ns;
	}
	check_int(tw_clock_type(clock), TW_CLOCK_TSC);
	check_int(tw_clock_destroy(clock), 0);
}

/* A sample's age must count from the beginning of the sample. Here the clock runs fast because of a
 * slew. */
Test(clock_tsc, a_slow_sample_is_old_already)
{
	struct tw_clock *clock = clock_open();

	pass_us(20);
	sample_width = 2 * COUNTS_PER_US;
	sample_width_ns = 2 * 1220;
	(void)tw_clock_now(clock);
	sample_width = 0;
	sample_width_ns = 0;
	pass(9900 * 122 / 100, 99 * COUNTS_PER_US / 10);
	check_at_least(tw_clock_now(clock), monotonic - tw_clock_lag(clock));
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * Lets the counter run for an hour while the clock stands still. Then lets both run for 8 us: the
 * longest time by which a reading may have been ahead of the clock.
 */
static void suspend(void)
{
	pass(0, INT64_C(3600) * 1000000 * COUNTS_PER_US);
	pass_us(8);
}

Test(clock_tsc, falls_back_after_a_suspend)
{
	struct tw_clock *clock = clock_open();

	suspend();
	check_fallen(clock, 1);
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * For `us` of the counter's time, lets the clock stand still, so that a reading gets ahead of it.
 * After the fall, readings must not step back.
 */
static void stand_and_fall(int64_t us)
{
	struct tw_clock *clock = clock_open();
	int64_t ahead_ns, now_ns;

	pass(0, us * COUNTS_PER_US);
	ahead_ns = tw_clock_now(clock);
	check_at_least(ahead_ns, monotonic + us * NS_PER_US / 2);
	pass(0, 20 * COUNTS_PER_US);
	now_ns = tw_clock_now(clock);
	check_int(tw_clock_type(clock), TW_CLOCK_MONOTONIC);
	check_at_least(now_ns, ahead_ns);
	check_at_most(now_ns, monotonic + 8 * NS_PER_US);
	check_at_least(tw_clock_now(clock), now_ns);
	pass_us(8);
	check_int(tw_clock_now(clock), monotonic);
	check_int(tw_clock_destroy(clock), 0);
}

Test(clock_tsc, does_not_step_back_when_the_clock_stands)
{
	for (int64_t us = 1; us < 10; us++)
		stand_and_fall(us);
}

/* The clock moves each time it is read, so after the fall the library can wait until it has
 * caught up. */
Test(clock_tsc, waits_for_the_clock_after_a_suspend)
{
	struct tw_clock *clock = clock_open();

	pass(0, INT64_C(3600) * 1000000 * COUNTS_PER_US);
	sample_width_ns = 100;
	check_at_most(tw_clock_now(clock), monotonic);
	sample_width_ns = 0;
	check_int(tw_clock_type(clock), TW_CLOCK_MONOTONIC);
	check_int(tw_clock_destroy(clock), 0);
}

Test(clock_tsc, falls_back_when_the_counter_is_reset)
{
	struct tw_clock *clock = clock_open();

	monotonic += NS_PER_MS;
	counter = 5;
	check_fallen(clock, 1);
	check_int(tw_clock_destroy(clock), 0);
}

/*
 * Takes a sample at a moment when a reading is `ahead_ns` ahead of the clock. Returns how far ahead
 * of the clock the reading after the sample is.
 */
static int64_t reading_ahead_ns(int64_t ahead_ns)
{
	struct tw_clock *clock = clock_open();
	int64_t duration_ns = 20 * NS_PER_US;
	int64_t now_ns;

	/*
	 * A reading is 1 ns behind its sample. Readings advance at 3/4 of the counter's rate, so
	 * four counts are one nanosecond.
	 */
	pass(duration_ns, (duration_ns + 1 + ahead_ns) * 4 + 2);
	now_ns = tw_clock_now(clock);
	check_at_most(now_ns, monotonic);
	check_int(tw_clock_type(clock), ahead_ns > 0 ? TW_CLOCK_MONOTONIC : TW_CLOCK_TSC);
	check_int(warnings, ahead_ns > 0);
	warnings = 0;
	check_int(tw_clock_destroy(clock), 0);
	return now_ns - monotonic;
}

/* If a reading is ahead of the clock by some time, timeouts may fire early by that time. So even
 * a little must cause the fall. */
Test(clock_tsc, falls_back_when_a_reading_is_ahead_by_a_little)
{
	static const int64_t ahead_ns[] = {1, 2, 10, 100, 1000, 4000, 5000, 6000};

	check_int(reading_ahead_ns(-1000), -1);
	check_int(reading_ahead_ns(0), 0);
	for (size_t i = 0; i < sizeof ahead_ns / sizeof ahead_ns[0]; i++)
		check_int(reading_ahead_ns(ahead_ns[i]), 0);
}

/* The counters of two processors may differ by a few counts. That must not cause the fall. */
Test(clock_tsc, differences_of_a_few_counts_cause_no_fall)
{
	struct tw_clock *clock = clock_open();

	pass(100, -20);
	check_at_most(tw_clock_now(clock), monotonic);
	check_int(tw_clock_type(clock), TW_CLOCK_TSC);
	check_int(tw_clock_destroy(clock), 0);
}

/* An engine without a clock option chose the counter itself. So the library must not warn of the
 * fall. */
Test(clock_tsc, the_automatic_clock_falls_back_in_silence)
{
	struct tw_clock *clock = clock_open();
	struct twi_clock_tsc own = {0};

	check_true(twi_clock_auto(&own, TWI_CLOCK_AUTO_TICK_NS, 0) == &own.system.clock);
	suspend();
	check_fallen(&own.system.clock, 0);
	check_int(tw_clock_destroy(clock), 0);
}

Test(clock_tsc, falls_back_where_no_sample_can_be_taken)
{
	struct tw_clock *clock = clock_open();

	sample_width = 3 * (uint64_t)COUNTS_PER_US;
	pass_us(20);
	check_fallen(clock, 1);
	check_int(tw_clock_destroy(clock), 0);
}

Test(clock_tsc, falls_back_at_once_without_trust)
{
	const uint64_t bad_rates[] = {0, UINT64_C(6) << 30, UINT64_MAX};

	for (unsigned i = 0; i < 3; i++) {
		struct tw_clock *clock;

		rate = bad_rates[i];
		clock = clock_open();
		check_fallen(clock, i + 1);
		check_int(tw_clock_lag(clock), 0);
		check_int(tw_clock_destroy(clock), 0);
	}
}
