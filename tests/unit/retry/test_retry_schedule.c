/* SPDX-License-Identifier: MIT */
/*
 * Schedules of retries in virtual time: tables of delays (checked to the tick), growing delays up
 * to the cap, jitter, and when a task gives up. Jitter must be within its bounds, and the same for
 * the same seed.
 *
 * Seen to fail with these defects: a table is read one entry too far; delays grow beyond the cap;
 * the jitter of one delay is carried over to the next; one attempt too many is counted; the time
 * limit ignores the next wait.
 */
#include "retry_scene.h"

#include <stdlib.h>

#define SECOND NS_PER_S
#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)

static const struct tw_retry_schedule failback = TW_RETRY_READY(TW_RETRY_FORM_FAILBACK);
static const struct tw_retry_schedule payment = TW_RETRY_READY(TW_RETRY_FORM_PAYMENT);

static const int64_t payment_delays[] = {
	15 * SECOND, 15 * SECOND, 30 * SECOND, 3 * MINUTE,  10 * MINUTE,
	20 * MINUTE, 30 * MINUTE, 30 * MINUTE, 30 * MINUTE, 60 * MINUTE,
	3 * HOUR,    3 * HOUR,    3 * HOUR,    6 * HOUR,    6 * HOUR,
};
enum { PAYMENT_DELAYS = sizeof payment_delays / sizeof *payment_delays };

/* The first attempt must come at once, then one after each delay of the table, and no more. */
Test(retry_schedule, payment_to_the_tick)
{
	static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &payment, 0);
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	must_submit(queue, 1, &kind, &job);
	advance_to_attempt(&fixture, &job, 0);
	for (int i = 0; i < PAYMENT_DELAYS; i++) {
		check_int(job.ended, 0);
		check_int(tw_retry_pending(queue), 1);
		advance_to_attempt(&fixture, &job, payment_delays[i]);
	}
	check_end(&job, TW_RETRY_END_GIVEN_UP, PAYMENT_DELAYS + 1);
	check_int(tw_retry_pending(queue), 0);
	fixture_advance(&fixture, 24 * HOUR);
	check_int(job.attempts, PAYMENT_DELAYS + 1);
	scene_close(&fixture, queue);
}

/* A call that has already failed is tried again every 5 s, three times. */
Test(retry_schedule, failback_after_a_failed_call)
{
	static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &failback, 3);
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	check_int(tw_retry_submit_failed(queue, &kind, &job, NULL), 0);
	for (int i = 0; i < 3; i++) {
		check_int(job.ended, 0);
		advance_to_attempt(&fixture, &job, 5 * SECOND);
	}
	check_end(&job, TW_RETRY_END_GIVEN_UP, 3);
	scene_close(&fixture, queue);
}

/* Without a limit of attempts, failback must not end. */
Test(retry_schedule, failback_without_a_bound_does_not_end)
{
	static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &failback, 0);
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	check_int(tw_retry_submit_failed(queue, &kind, &job, NULL), 0);
	for (int i = 0; i < 500; i++)
		advance_to_attempt(&fixture, &job, 5 * SECOND);
	check_int(job.ended, 0);
	scene_close(&fixture, queue);
	check_end(&job, TW_RETRY_END_STOPPED, 500);
}

Test(retry_schedule, ready_made_and_own_tables_tell_their_delays)
{
	static const int64_t own[] = {0, 7, 3};
	struct tw_retry_schedule table = TW_RETRY_TABLE(own);

	for (int i = 0; i < PAYMENT_DELAYS; i++)
		check_int(tw_retry_delay(&payment, (uint64_t)i), payment_delays[i]);
	check_int(tw_retry_delay(&payment, PAYMENT_DELAYS), -ERANGE);
	check_int(tw_retry_delay(&failback, 0), 5 * SECOND);
	check_int(tw_retry_delay(&failback, UINT64_MAX), 5 * SECOND);
	check_int(tw_retry_delay(&table, 1), 7);
	check_int(tw_retry_delay(&table, 3), -ERANGE);
	table.flags = TW_RETRY_FLAG_REPEAT_LAST;
	check_int(tw_retry_delay(&table, 3), 3);
	check_int(tw_retry_delay(&table, UINT64_MAX), 3);
}

/* A queue must use the same delays for the test's own table, whose last delay repeats. */
Test(retry_schedule, own_table_repeats_its_last_delay)
{
	static const int64_t own[] = {2 * SECOND, 4 * SECOND};
	static struct tw_retry_schedule table = TW_RETRY_TABLE(own);
	static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &table, 0);
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	table.flags = TW_RETRY_FLAG_REPEAT_LAST;
	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	job.result[6] = TW_RETRY_DONE;
	job.scripted = 6;
	for (int i = 1; i < 6; i++)
		job.result[i] = TW_RETRY_AGAIN;
	must_submit(queue, SECOND, &kind, &job);
	advance_to_attempt(&fixture, &job, SECOND);
	advance_to_attempt(&fixture, &job, 2 * SECOND);
	for (int i = 0; i < 4; i++)
		advance_to_attempt(&fixture, &job, 4 * SECOND);
	check_end(&job, TW_RETRY_END_DONE, 6);
	scene_close(&fixture, queue);
}

Test(retry_schedule, growth_to_the_cap)
{
	const struct tw_retry_schedule twice = TW_RETRY_EXPONENTIAL(100, 1000, 200, 0);
	const struct tw_retry_schedule half_more = TW_RETRY_EXPONENTIAL(3, TW_NEVER, 150, 0);
	const struct tw_retry_schedule constant = TW_RETRY_EXPONENTIAL(9, 9, 100, 0);
	const struct tw_retry_schedule just_over = TW_RETRY_EXPONENTIAL(599, 1000, 200, 0);
	static const int64_t doubled[] = {100, 200, 400, 800, 1000, 1000};
	static const int64_t halved[] = {3, 4, 6, 9, 13, 19, 28};

	for (uint64_t i = 0; i < 6; i++)
		check_int(tw_retry_delay(&twice, i), doubled[i]);
	for (uint64_t i = 0; i < 7; i++)
		check_int(tw_retry_delay(&half_more, i), halved[i]);
	check_int(tw_retry_delay(&twice, UINT64_MAX), 1000);
	check_int(tw_retry_delay(&constant, UINT64_MAX), 9);
	check_int(tw_retry_delay(&just_over, 1), 1000);
}

/* If growth would overflow, the delay must stay at the cap. It must never become small again. */
Test(retry_schedule, growth_does_not_overflow)
{
	static const uint64_t growths[] = {101, 199, 200, 333, 1000, 99999, 100000};

	for (size_t i = 0; i < sizeof growths / sizeof *growths; i++) {
		const struct tw_retry_schedule schedule =
			TW_RETRY_EXPONENTIAL(INT64_MAX / 200, TW_NEVER, growths[i], 0);
		int64_t last_ns = 0;

		for (uint64_t number = 0; number < 2000; number++) {
			int64_t delay_ns = tw_retry_delay(&schedule, number);

			check_at_least(delay_ns, last_ns);
			last_ns = delay_ns;
		}
		check_int(last_ns, TW_NEVER);
	}
}

/* The delays of a growing schedule in a queue, up to the cap. */
Test(retry_schedule, growing_delays_stop_at_the_cap)
{
	static const struct tw_retry_schedule schedule =
		TW_RETRY_EXPONENTIAL(NS_PER_S, 5 * NS_PER_S, 200, TW_RETRY_JITTER_NONE);
	static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 6);
	static const int64_t seconds[] = {1, 2, 4, 5, 5};
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	must_submit(queue, 1, &kind, &job);
	advance_to_attempt(&fixture, &job, 0);
	for (int i = 0; i < 5; i++)
		advance_to_attempt(&fixture, &job, seconds[i] * SECOND);
	check_end(&job, TW_RETRY_END_GIVEN_UP, 6);
	scene_close(&fixture, queue);
}

/*
 * Checks that a task whose delay never ends keeps its place until a caller ends it. Jitter must not
 * shorten the delay.
 */
static void never_waits(const struct tw_retry_schedule *schedule)
{
	const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, schedule, 0);
	struct fixture fixture;
	struct tw_retry *queue;
	struct tw_retry_handle handle;
	struct job job;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	handle = must_submit(queue, 1, &kind, &job);
	advance_to_attempt(&fixture, &job, 0);
	fixture_advance(&fixture, 1000 * 24 * HOUR);
	check_int(job.attempts, 1);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 1);
	check_int(fixture.back.remaining_ns, TW_NEVER);
	check_end(&job, TW_RETRY_END_STOPPED, 1);
	check_int(tw_retry_cancel(handle), TW_RETRY_CANCEL_ENDED);
	scene_close(&fixture, queue);
}

Test(retry_schedule, never_waits_for_good)
{
	static const int64_t never[] = {TW_NEVER};
	struct tw_retry_schedule table = TW_RETRY_TABLE(never);

	never_waits(&table);
	table.jitter_percent = TW_RETRY_JITTER_FULL;
	never_waits(&table);
}

/* The delay never ends because growth would overflow. */
Test(retry_schedule, growth_without_a_cap_waits_for_good)
{
	const struct tw_retry_schedule growing =
		TW_RETRY_EXPONENTIAL(TW_NEVER, TW_NEVER, 200, TW_RETRY_JITTER_EQUAL);

	never_waits(&growing);
}

enum { JITTER_TASKS = 200, JITTER_ATTEMPTS = 8 };

static int64_t jitter_ran_ns[2][JITTER_TASKS][JITTER_ATTEMPTS];
static struct job jitter_jobs[JITTER_TASKS];

/* Records when each attempt ran. */
static void jitter_run(uint32_t percent, uint64_t seed, int64_t ran_ns[][JITTER_ATTEMPTS])
{
	static struct tw_retry_schedule schedule;
	static const struct tw_retry_kind kind =
		TW_RETRY_KIND(on_attempt, on_ended, &schedule, JITTER_ATTEMPTS);
	struct tw_retry_options options;
	struct tw_retry *queue = NULL;
	struct fixture fixture;

	schedule = (struct tw_retry_schedule)TW_RETRY_EXPONENTIAL(64 * NS_PER_MS, 256 * NS_PER_MS,
								  200, percent);
	fixture_open(&fixture, NULL);
	check_int(tw_retry_options_init(&options, sizeof options), 0);
	options.seed = seed;
	check_int(tw_retry_create(fixture.engine, &options, &queue), 0);
	for (int i = 0; i < JITTER_TASKS; i++) {
		job_init(&jitter_jobs[i], fixture.engine, TW_RETRY_AGAIN);
		must_submit(queue, 1, &kind, &jitter_jobs[i]);
	}
	for (int tick = 0; tick < 2000; tick++)
		fixture_advance(&fixture, NS_PER_MS);
	for (int i = 0; i < JITTER_TASKS; i++) {
		check_end(&jitter_jobs[i], TW_RETRY_END_GIVEN_UP, JITTER_ATTEMPTS);
		for (int n = 0; n < JITTER_ATTEMPTS; n++)
			ran_ns[i][n] = jitter_jobs[i].ran_at_ns[n + 1];
	}
	scene_close(&fixture, queue);
}

/*
 * Checks the waits. Each must be within its bounds, plus a tick. Some waits must be near each
 * bound, and the mean of all waits must be near the middle.
 */
static void jitter_check(uint32_t percent)
{
	int64_t sum_ns = 0, whole_sum_ns = 0;
	int low = 0, high = 0;

	jitter_run(percent, 99, jitter_ran_ns[0]);
	for (int i = 0; i < JITTER_TASKS; i++) {
		int64_t whole_ns = 64 * NS_PER_MS;

		for (int n = 1; n < JITTER_ATTEMPTS; n++) {
			int64_t waited_ns = jitter_ran_ns[0][i][n] - jitter_ran_ns[0][i][n - 1];
			int64_t least_ns = whole_ns - whole_ns * percent / 100;

			check_at_least(waited_ns, least_ns);
			check_at_most(waited_ns, whole_ns + NS_PER_MS);
			low += waited_ns <= least_ns + (whole_ns - least_ns) / 10 + NS_PER_MS;
			high += waited_ns >= whole_ns - (whole_ns - least_ns) / 10;
			sum_ns += waited_ns;
			whole_sum_ns += whole_ns - whole_ns * percent / 200;
			whole_ns = whole_ns < 256 * NS_PER_MS ? 2 * whole_ns : whole_ns;
		}
	}
	check_at_least(low, JITTER_TASKS * JITTER_ATTEMPTS / 20);
	check_at_least(high, JITTER_TASKS * JITTER_ATTEMPTS / 20);
	check_at_most(llabs(sum_ns - whole_sum_ns), whole_sum_ns / 20);
}

Test(retry_schedule, full_jitter_stays_within_its_bounds)
{
	jitter_check(TW_RETRY_JITTER_FULL);
}

Test(retry_schedule, equal_jitter_stays_within_its_bounds)
{
	jitter_check(TW_RETRY_JITTER_EQUAL);
}

/* The same submits must get the same delays in each run with the same seed. Another seed must
 * give other delays. */
Test(retry_schedule, same_seed_gives_the_same_delays)
{
	jitter_run(TW_RETRY_JITTER_FULL, 5, jitter_ran_ns[0]);
	jitter_run(TW_RETRY_JITTER_FULL, 5, jitter_ran_ns[1]);
	check_int(memcmp(jitter_ran_ns[0], jitter_ran_ns[1], sizeof jitter_ran_ns[0]), 0);
	jitter_run(TW_RETRY_JITTER_FULL, 6, jitter_ran_ns[1]);
	check_true(memcmp(jitter_ran_ns[0], jitter_ran_ns[1], sizeof jitter_ran_ns[0]) != 0);
}

/* Without a seed option, each queue must have its own seed. */
Test(retry_schedule, without_a_seed_queues_have_different_delays)
{
	jitter_run(TW_RETRY_JITTER_FULL, 0, jitter_ran_ns[0]);
	jitter_run(TW_RETRY_JITTER_FULL, 0, jitter_ran_ns[1]);
	check_true(memcmp(jitter_ran_ns[0], jitter_ran_ns[1], sizeof jitter_ran_ns[0]) != 0);
}

/*
 * The task makes as many attempts as its time allows. If the next wait would exceed the time, the
 * task must end at once.
 */
Test(retry_schedule, task_ends_if_the_next_wait_exceeds_its_time)
{
	struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &failback, 0);
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	/* The attempts run at 0, 5 and 10 s, plus 1, 2 and 3 ticks. A fourth would be due at 15 s
	 * and 3 ms, which is beyond this limit. */
	kind.time_max_ns = 15 * NS_PER_S + 2 * NS_PER_MS;
	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	must_submit(queue, 1, &kind, &job);
	advance_to_attempt(&fixture, &job, 0);
	advance_to_attempt(&fixture, &job, 5 * SECOND);
	check_int(job.ended, 0);
	advance_to_attempt(&fixture, &job, 5 * SECOND);
	check_end(&job, TW_RETRY_END_GIVEN_UP, 3);
	kind.time_max_ns++;
	kind.time_max_ns += NS_PER_MS;
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	must_submit(queue, 1, &kind, &job);
	for (int i = 0; i < 4; i++)
		advance_to_attempt(&fixture, &job, i == 0 ? 0 : 5 * SECOND);
	check_end(&job, TW_RETRY_END_GIVEN_UP, 4);
	scene_close(&fixture, queue);
}

/* The first attempt must be made, even if it is late. */
Test(retry_schedule, time_limit_and_the_first_attempt)
{
	struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &failback, 0);
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;

	kind.time_max_ns = NS_PER_S;
	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 10, TW_RETRY_REJECT);
	job_init(&job, fixture.engine, TW_RETRY_AGAIN);
	check_int(tw_retry_submit_failed(queue, &kind, &job, NULL), 0);
	advance_to_attempt(&fixture, &job, 5 * SECOND);
	check_end(&job, TW_RETRY_END_GIVEN_UP, 1);
	scene_close(&fixture, queue);
}
