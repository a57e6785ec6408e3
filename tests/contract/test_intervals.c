/* SPDX-License-Identifier: MIT */
/*
 * The tests of tokio's suite for its interval, and of wahern's for periodic timeouts. They use the
 * numbers of those suites, in virtual time.
 *
 * Seen to fail with these defects (in parentheses: the tests): with TW_MISSED_SKIP, the next run
 * counts from now (skip, primes); with a fixed delay, the next run counts from the due point; with
 * TW_MISSED_BURST, points are left out; the first run comes only after a whole period; a reset does
 * not move the grid.
 */
#include "../unit/periodic/periodic_scene.h"

#include <errno.h>

/* Begins an interval of 300 ms, whose first run is at once. */
static struct tw_handle tokio_begin(struct fixture *fixture, struct log *log, uint32_t missed)
{
	struct tw_period period = TW_PERIOD_RATE(300 * NS_PER_MS);
	struct tw_handle handle;

	period.first_ns = 0;
	period.missed = missed;
	fixture_open(fixture, NULL);
	log_init(log, fixture);
	handle = must_repeat(fixture, &period, log);
	fixture_advance_to(fixture, 1 * NS_PER_MS);
	check_int(log->count, 1);
	fixture_advance_to(fixture, 100 * NS_PER_MS);
	check_int(log->count, 1);
	fixture_advance_to(fixture, 301 * NS_PER_MS);
	check_int(log->count, 2);
	return handle;
}

/* Moves the clock from 301 to 950 ms in one jump, so that runs are missed. */
static void tokio(struct fixture *fixture, struct log *log, uint32_t missed)
{
	(void)tokio_begin(fixture, log, missed);
	fixture_advance_to(fixture, 950 * NS_PER_MS);
	check_due_ms(log, 2, 600);
}

static void tokio_next(struct fixture *fixture, struct log *log, int64_t ms)
{
	int before = log->count;

	fixture_advance_to(fixture, ms * NS_PER_MS);
	check_int(log->count, before);
	fixture_advance(fixture, NS_PER_MS);
	check_int(log->count, before + 1);
	check_due_ms(log, before, ms);
}

Test(intervals, tokio_burst_makes_up_for_missed_runs)
{
	struct fixture fixture;
	struct log log;

	tokio(&fixture, &log, TW_MISSED_BURST);
	check_int(log.count, 4);
	check_due_ms(&log, 3, 900);
	tokio_next(&fixture, &log, 1200);
	tokio_next(&fixture, &log, 1500);
	tokio_next(&fixture, &log, 1800);
	fixture_close(&fixture);
}

Test(intervals, tokio_delay_moves_the_grid)
{
	struct fixture fixture;
	struct log log;

	tokio(&fixture, &log, TW_MISSED_DELAY);
	check_int(log.count, 3);
	tokio_next(&fixture, &log, 1250);
	tokio_next(&fixture, &log, 1550);
	tokio_next(&fixture, &log, 1850);
	fixture_close(&fixture);
}

Test(intervals, tokio_skip_goes_on_with_the_old_grid)
{
	struct fixture fixture;
	struct log log;

	tokio(&fixture, &log, TW_MISSED_SKIP);
	check_int(log.count, 3);
	tokio_next(&fixture, &log, 1200);
	tokio_next(&fixture, &log, 1500);
	tokio_next(&fixture, &log, 1800);
	fixture_close(&fixture);
}

Test(intervals, tokio_reset_begins_a_new_grid)
{
	struct tw_handle handle;
	struct fixture fixture;
	struct log log;

	handle = tokio_begin(&fixture, &log, TW_MISSED_BURST);
	fixture_advance_to(&fixture, 400 * NS_PER_MS);
	check_int(tw_reschedule(handle, 300 * NS_PER_MS), TW_RESCHEDULE_DONE);
	fixture_advance_to(&fixture, 650 * NS_PER_MS);
	check_int(log.count, 2);
	tokio_next(&fixture, &log, 700);
	tokio_next(&fixture, &log, 1000);
	fixture_close(&fixture);
}

Test(intervals, tokio_zero_is_rejected)
{
	static const struct tw_period none = TW_PERIOD_RATE(0);
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_periodic(fixture.engine, &none, &run_kind, NULL, NULL), -EINVAL);
	fixture_close(&fixture);
}

enum { PRIMES = 10 };

struct prime {
	int64_t period_ns;
	struct tw_handle handle;
	struct log log;
};

static void primes_open(struct fixture *fixture, struct prime *prime, uint32_t missed)
{
	static const int number[PRIMES] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};

	fixture_open(fixture, NULL);
	for (int i = 0; i < PRIMES; i++) {
		struct tw_period period = TW_PERIOD_RATE(number[i] * NS_PER_MS);

		period.missed = missed;
		prime[i].period_ns = period.period_ns;
		log_init(&prime[i].log, fixture);
		prime[i].handle = must_repeat(fixture, &period, &prime[i].log);
	}
}

/*
 * Checks that the next run is at the first point of the grid that has not passed, whichever points
 * were left out.
 */
static void prime_check(const struct prime *prime, int64_t now_ns, uint32_t missed)
{
	struct tw_timeout seen = {.size = sizeof(seen)};
	const struct log *log = &prime->log;

	check_int(tw_timeout_get(prime->handle, &seen), 0);
	check_int(seen.deadline_ns % prime->period_ns, 0);
	check_at_least(seen.deadline_ns, now_ns);
	check_at_most(seen.deadline_ns,
		      now_ns > 0 ? now_ns + prime->period_ns - 1 : prime->period_ns);
	if (log->count > 0)
		check_int(log->due_ns[(log->count - 1) % RUNS] % prime->period_ns, 0);
	if (missed == TW_MISSED_BURST)
		check_int(log->count, now_ns > 0 ? (now_ns - 1) / prime->period_ns : 0);
}

/*
 * Repeats a test of wahern's suite: the periods are primes, and the clock moves by jumps of any
 * size.
 */
static void primes(uint32_t missed)
{
	static struct prime prime[PRIMES];
	uint64_t random = 12345;
	struct fixture fixture;

	primes_open(&fixture, prime, missed);
	while (fixture.now_ns < 1000 * NS_PER_MS) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407U;
		fixture_advance(&fixture, (int64_t)(random >> 59) * NS_PER_MS);
		for (int i = 0; i < PRIMES; i++)
			prime_check(&prime[i], fixture.now_ns, missed);
	}
	fixture_close(&fixture);
}

Test(intervals, primes_stay_on_the_grid)
{
	primes(TW_MISSED_BURST);
	primes(TW_MISSED_SKIP);
}
