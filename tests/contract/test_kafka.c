/* SPDX-License-Identifier: MIT */
/*
 * The tests of Kafka's suite for its keyed timers, in virtual time. Expired timeouts wait in an
 * executor's queue. The tests of Kafka's wheel are in test_agrona.c.
 */
#include "probe.h"

#include <string.h>

struct timer {
	/*
	 * the number of the try that succeeds; each wait before it is twice as long as the previous
	 * one
	 */
	int tries_wanted;
	atomic_int runs;
	atomic_int ended;
	atomic_int end;
};

static int64_t on_timer(const struct tw_keyed_self *self, void *arg)
{
	struct timer *timer = arg;

	atomic_fetch_add(&timer->runs, 1);
	if (self->runs >= (uint64_t)timer->tries_wanted)
		return TW_KEYED_END;
	return (INT64_C(10) << self->runs) * NS_PER_MS;
}

static void on_timer_end(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct timer *timer = arg;

	(void)self;
	atomic_store(&timer->end, (int)end);
	atomic_fetch_add(&timer->ended, 1);
}

static const struct tw_keyed_kind timer_kind = TW_KEYED_KIND(on_timer, on_timer_end);

/* The queue in which expired timeouts wait until queue_run, as in the queue of an executor. */
static struct tw_due queued[8];
static size_t queued_count;

static size_t on_dispatch(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	memcpy(&queued[queued_count], due, count * sizeof *due);
	queued_count += count;
	return count;
}

static void queue_run(void)
{
	while (queued_count > 0)
		check_int(tw_due_run(&queued[--queued_count]), 0);
}

struct purgatory {
	struct fixture fixture;
	struct tw_keyed *table;
};

static void purgatory_open(struct purgatory *purgatory)
{
	struct tw_options options = fixture_options();

	options.dispatch = on_dispatch;
	fixture_open(&purgatory->fixture, &options);
	check_int(tw_keyed_create(purgatory->fixture.engine, NULL, &purgatory->table), 0);
}

static void purgatory_close(struct purgatory *purgatory)
{
	fixture_stop(&purgatory->fixture);
	check_int(tw_keyed_destroy(purgatory->table), 0);
	fixture_close(&purgatory->fixture);
}

static void advance_and_run(struct purgatory *purgatory, int64_t step_ms)
{
	fixture_advance(&purgatory->fixture, step_ms * NS_PER_MS);
	queue_run();
}

/* Schedules a timer and lets it expire, so that it waits in the executor's queue. */
static void timer_queue(struct purgatory *purgatory, struct timer *timer)
{
	check_int(tw_keyed_schedule(purgatory->table, "key", 3, 10 * NS_PER_MS, &timer_kind, timer,
				    NULL),
		  TW_KEYED_DONE);
	fixture_advance(&purgatory->fixture, 20 * NS_PER_MS);
	check_int(queued_count, 1);
	check_int(timer->runs, 0);
}

Test(kafka, keyed_replace_kills_an_expiry_that_is_queued)
{
	struct timer first = {.tries_wanted = 1}, second = {.tries_wanted = 1};
	struct purgatory purgatory;

	purgatory_open(&purgatory);
	timer_queue(&purgatory, &first);
	check_int(tw_keyed_replace(purgatory.table, "key", 3, 10 * NS_PER_MS, &timer_kind, &second,
				   NULL),
		  TW_KEYED_REPLACED);
	queue_run();
	check_int(first.runs, 0);
	check_int(first.ended, 1);
	check_int(first.end, TW_KEYED_END_REPLACED);
	advance_and_run(&purgatory, 20);
	check_int(second.runs, 1);
	check_int(second.end, TW_KEYED_END_FIRED);
	purgatory_close(&purgatory);
}

Test(kafka, keyed_cancel_kills_an_expiry_that_is_queued)
{
	struct timer timer = {.tries_wanted = 1};
	struct purgatory purgatory;

	purgatory_open(&purgatory);
	timer_queue(&purgatory, &timer);
	check_int(tw_keyed_cancel(purgatory.table, "key", 3, TW_KEYED_ANY), TW_KEYED_DONE);
	queue_run();
	check_int(timer.runs, 0);
	check_int(timer.ended, 1);
	check_int(timer.end, TW_KEYED_END_CANCELLED);
	check_int(tw_keyed_count(purgatory.table), 0);
	purgatory_close(&purgatory);
}

Test(kafka, keyed_if_absent_keeps_the_first)
{
	struct timer first = {.tries_wanted = 1}, second = {.tries_wanted = 1};
	struct purgatory purgatory;

	purgatory_open(&purgatory);
	timer_queue(&purgatory, &first);
	/* The key must count as present also while its expiry is queued. */
	check_int(tw_keyed_schedule(purgatory.table, "key", 3, 0, &timer_kind, &second, NULL),
		  TW_KEYED_PRESENT);
	queue_run();
	check_int(first.runs, 1);
	check_int(first.end, TW_KEYED_END_FIRED);
	advance_and_run(&purgatory, 20);
	check_int(second.runs, 0);
	check_int(second.ended, 0);
	purgatory_close(&purgatory);
}

Test(kafka, keyed_retry_waits_longer_and_stays_one)
{
	struct timer timer = {.tries_wanted = 4};
	struct purgatory purgatory;

	purgatory_open(&purgatory);
	check_int(tw_keyed_schedule(purgatory.table, "key", 3, 10 * NS_PER_MS, &timer_kind, &timer,
				    NULL),
		  TW_KEYED_DONE);
	for (int run = 0; run < 4; run++) {
		int64_t wait_ms = INT64_C(10) << run;

		check_int(tw_keyed_count(purgatory.table), 1);
		check_int(tw_engine_pending(purgatory.fixture.engine), 1);
		advance_and_run(&purgatory, wait_ms - 1);
		check_int(timer.runs, run);
		advance_and_run(&purgatory, 2);
		check_int(timer.runs, run + 1);
	}
	check_int(timer.ended, 1);
	check_int(timer.end, TW_KEYED_END_FIRED);
	check_int(tw_keyed_count(purgatory.table), 0);
	check_int(tw_engine_pending(purgatory.fixture.engine), 0);
	purgatory_close(&purgatory);
}
