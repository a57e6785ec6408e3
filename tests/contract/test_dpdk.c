/* SPDX-License-Identifier: MIT */
/* Tests from DPDK's timer suite: several threads arm and stop many timers. */
#include "probe.h"

#include "random.h"

#include <pthread.h>
#include <string.h>

enum { TIMERS = 8192, THREADS = 4, PER_THREAD = TIMERS / THREADS, RESETS = 100000 };

static struct fixture fixture;
static struct tw_handle handles[TIMERS];
static atomic_int runs[TIMERS];
static atomic_int failures;
static atomic_int total;

static void on_timer(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
	atomic_fetch_add(&total, 1);
}

static const struct tw_kind timer_kind = TW_KIND(on_timer, NULL);

static void arm(int index, int64_t delay_ns)
{
	if (tw_schedule(fixture.engine, delay_ns, &timer_kind, &runs[index], &handles[index]) != 0)
		atomic_fetch_add(&failures, 1);
}

static void *arm_share(void *arg)
{
	int begin = (int)(intptr_t)arg * PER_THREAD;
	int i;

	for (i = begin; i < begin + PER_THREAD; i++)
		arm(i, i % 20 * NS_PER_MS + 1);
	return NULL;
}

/* Stops and resets timers of the thread's own share, at random. In the end each timer must be
 * armed once. */
static void *reset_share(void *arg)
{
	int begin = (int)(intptr_t)arg * PER_THREAD;
	struct random random = {(uint64_t)begin + 1};
	int index;
	int i;

	arm_share(arg);
	for (i = 0; i < RESETS / THREADS; i++) {
		index = begin + (int)random_below(&random, PER_THREAD);
		if (tw_cancel(handles[index]) != TW_CANCEL_DONE)
			atomic_fetch_add(&failures, 1);
		arm(index, (int64_t)random_below(&random, 20) * NS_PER_MS + 1);
	}
	return NULL;
}

static void on_all_threads(void *(*body)(void *arg))
{
	pthread_t threads[THREADS];
	intptr_t i;

	for (i = 0; i < THREADS; i++)
		/* NOLINTNEXTLINE(performance-no-int-to-ptr): the pointer holds a number */
		check_int(pthread_create(&threads[i], NULL, body, (void *)i), 0);
	for (i = 0; i < THREADS; i++)
		check_int(pthread_join(threads[i], NULL), 0);
}

static void check_each_ran(int times)
{
	int i;

	check_int(failures, 0);
	check_int(total, times * TIMERS);
	for (i = 0; i < TIMERS; i++)
		check_int(runs[i], times);
}

Test(dpdk, timers_armed_by_all_threads_run_once_each)
{
	struct tw_options options = fixture_options();

	options.check = TW_CHECK_CHEAP;
	fixture_open(&fixture, &options);
	on_all_threads(arm_share);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_each_ran(1);
	on_all_threads(reset_share);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_each_ran(2);
	check_int(stats_of(fixture.engine).cancelled, RESETS);
	fixture_close(&fixture);
}

/*
 * In the next test, the callback overwrites the storage of its own argument. The engine must not
 * read that storage afterwards.
 */
struct own_storage {
	struct tw_kind kind;
	char data[64];
};

static void on_overwrite(struct tw_handle self, void *arg)
{
	(void)self;
	memset(arg, 0xAA, sizeof(((struct own_storage *)arg)->data));
	atomic_fetch_add(&total, 1);
}

static const struct tw_kind overwrite_kind = TW_KIND(on_overwrite, NULL);

Test(dpdk, argument_overwritten_inside_its_callback)
{
	static char storage[1000][64];
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 1000; i++)
		must_schedule(fixture.engine, i % 10 * NS_PER_MS + 1, &overwrite_kind, storage[i]);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_int(total, 1000);
	fixture_close(&fixture);
}

/* A burst of cancels names each timeout three times. Only the first cancel of each may return
 * DONE. */
Test(dpdk, cancel_with_duplicates_in_one_burst)
{
	int outcomes[5] = {0};
	int i;

	fixture_open(&fixture, NULL);
	for (i = 0; i < 100; i++)
		arm(i, NS_PER_S);
	fixture_flush(&fixture);
	for (i = 0; i < 300; i++)
		outcomes[tw_cancel(handles[i % 100])]++;
	check_int(outcomes[TW_CANCEL_DONE], 100);
	check_int(outcomes[TW_CANCEL_CANCELLED] + outcomes[TW_CANCEL_STALE], 200);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(total, 0);
	fixture_close(&fixture);
}
