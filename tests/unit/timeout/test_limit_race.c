/* SPDX-License-Identifier: MIT */
/*
 * A test of defect B12 (docs/internals/testing.md): if a schedule counts itself before it checks
 * the limit, a rejected caller can cause the rejection of another caller. Three threads compete for
 * one place. A span is one schedule, with the cancel of its timeout if the schedule was accepted. A
 * common counter numbers the beginning and the end of each span. A rejected span must overlap an
 * accepted one, which held the place.
 *
 * The window is a few nanoseconds long, so this test did not find the defect when it was planted.
 * tests/freeze/limit.c did find it, because that test stops a thread inside the window.
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

enum { THREADS = 3, CALLS = 20000 };

struct span {
	long begin;
	long end;
	bool accepted;
};

struct contender {
	struct tw_engine *engine;
	atomic_long *stamp;
	pthread_t thread;
	struct span spans[CALLS];
	int unexpected;
};

static atomic_int never_run;

static void contend_once(struct contender *contender, struct span *span)
{
	struct tw_handle handle;
	int error;

	span->begin = atomic_fetch_add(contender->stamp, 1);
	error = tw_schedule(contender->engine, TW_NEVER, &count_kind, &never_run, &handle);
	span->accepted = error == 0;
	if (error == 0 && tw_cancel(handle) != TW_CANCEL_DONE)
		contender->unexpected++;
	if (error != 0 && error != -EAGAIN)
		contender->unexpected++;
	span->end = atomic_fetch_add(contender->stamp, 1);
}

static void *contender_main(void *arg)
{
	struct contender *contender = arg;
	int i;

	for (i = 0; i < CALLS; i++)
		contend_once(contender, &contender->spans[i]);
	return NULL;
}

static int by_begin(const void *left, const void *right)
{
	const struct span *a = left;
	const struct span *b = right;

	return (a->begin > b->begin) - (a->begin < b->begin);
}

/*
 * Counts the unjust rejections. The spans are sorted by `begin`. A rejection is just if an accepted
 * span overlaps it: that span begins before the rejection ends, and ends after the rejection
 * begins. `latest_end` is the latest end of the accepted spans so far.
 */
static int count_unjust(const struct span *spans, int count)
{
	long latest_end = -1;
	int unjust = 0;
	int i;
	int j;
	bool just;

	for (i = 0; i < count; i++) {
		just = spans[i].accepted || latest_end > spans[i].begin;
		for (j = i + 1; j < count && spans[j].begin < spans[i].end && !just; j++)
			just = spans[j].accepted;
		unjust += !just;
		if (spans[i].accepted && spans[i].end > latest_end)
			latest_end = spans[i].end;
	}
	return unjust;
}

static struct span *collect(struct contender *contenders)
{
	struct span *all = calloc((size_t)THREADS * CALLS, sizeof(*all));
	int i;
	int j;

	check_true(all != NULL);
	for (i = 0; i < THREADS; i++)
		for (j = 0; j < CALLS; j++)
			all[i * CALLS + j] = contenders[i].spans[j];
	qsort(all, (size_t)THREADS * CALLS, sizeof(*all), by_begin);
	return all;
}

Test(limit_race, b12_a_rejected_caller_makes_no_other_fail)
{
	static struct contender contenders[THREADS];
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_long stamp = 0;
	struct span *all;
	int i;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	for (i = 0; i < THREADS; i++) {
		contenders[i].engine = fixture.engine;
		contenders[i].stamp = &stamp;
		check_int(
			pthread_create(&contenders[i].thread, NULL, contender_main, &contenders[i]),
			0);
	}
	for (i = 0; i < THREADS; i++) {
		check_int(pthread_join(contenders[i].thread, NULL), 0);
		check_int(contenders[i].unexpected, 0);
	}
	all = collect(contenders);
	check_int(count_unjust(all, THREADS * CALLS), 0);
	free(all);
	check_int(tw_engine_pending(fixture.engine), 0);
	fixture_close(&fixture);
}
