/* SPDX-License-Identifier: MIT */
/*
 * Makes, uses, stops and destroys engines a thousand times. The process must then have as much
 * memory, as many threads and as many descriptors as after ten times. Three threads exist
 * throughout and schedule on each engine, so that each engine has its rings.
 *
 * Seen to fail with these defects: rings are not released; a timer's descriptor stays open.
 */
#include "footprint.h"
#include "probe.h"
#include "slowdown.h"

#include <pthread.h>

enum {
	ROUNDS = 1000,
	ROUNDS_BEFORE = 10,
	THREADS = 3,
};

/* Allows for memory that the C library itself uses: stacks that it keeps, counters. */
#define SLACK_BYTES (256 << 10)

static struct tw_engine *engine;
static pthread_barrier_t made, used;
static atomic_int runs, rejected;

static void *user_body(void *arg)
{
	int rounds = *(int *)arg;

	for (int round = 0; round < rounds; round++) {
		(void)pthread_barrier_wait(&made);
		for (int i = 0; i < 20; i++) {
			struct tw_handle handle;

			if (tw_schedule(engine, i % 2 * NS_PER_S + 1, &count_kind, &runs,
					&handle) != 0 ||
			    (i % 4 == 1 && tw_cancel(handle) != TW_CANCEL_DONE))
				atomic_fetch_add(&rejected, 1);
		}
		(void)pthread_barrier_wait(&used);
	}
	/* The threads must not end before the last footprint is taken, because it counts them. */
	(void)pthread_barrier_wait(&made);
	return NULL;
}

static void round_run(const struct tw_options *options)
{
	check_int(tw_engine_create(options, &engine), 0);
	if ((options->flags & TW_ENGINE_LOOP) != 0)
		check_at_least(tw_engine_fd(engine), 0);
	(void)pthread_barrier_wait(&made);
	(void)pthread_barrier_wait(&used);
	/*
	 * A deadline by delay includes the clock's lag, so a timeout without a delay may be due a
	 * tick later.
	 */
	if ((options->flags & TW_ENGINE_LOOP) != 0)
		check_int(tw_engine_poll_at(engine, tw_engine_now(engine) + 2 * NS_PER_MS, 0),
			  10 * THREADS);
	else if (atomic_load(&runs) == 0)
		check_true(wait_until_at_least(&runs, 1));
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_books(engine);
	check_int(tw_engine_destroy(engine), 0);
}

static void rounds_run(const struct tw_options *options)
{
	int rounds = 2 * ROUNDS_BEFORE + (int)slowed(ROUNDS - 2 * ROUNDS_BEFORE);
	struct footprint before = {0}, after;
	uint64_t slab_bytes = 0;
	pthread_t threads[THREADS];

	check_int(pthread_barrier_init(&made, NULL, THREADS + 1), 0);
	check_int(pthread_barrier_init(&used, NULL, THREADS + 1), 0);
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_create(&threads[i], NULL, user_body, &rounds), 0);
	for (int round = 0; round < rounds; round++) {
		if (round == ROUNDS_BEFORE) {
			slab_bytes = tw_memory_slab_bytes();
			before = footprint_take();
		}
		round_run(options);
	}
	after = footprint_take_after(&before);
	(void)pthread_barrier_wait(&made);
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_join(threads[i], NULL), 0);
	check_int(rejected, 0);
	check_at_least(runs, 1);
	check_int(tw_memory_slab_bytes(), slab_bytes);
	/*
	 * The first count may include a worker that had just been joined, because the system
	 * removes a thread a moment after the join. So there may be fewer threads now.
	 */
	check_at_most(after.threads, before.threads);
	check_int(after.descriptors, before.descriptors);
	if (FOOTPRINT_EXACT && slowdown() == 1)
		check_at_most(after.resident_bytes, before.resident_bytes + SLACK_BYTES);
}

Test(again, engines_with_a_thread_leave_nothing_behind)
{
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof options), 0);
	rounds_run(&options);
}

Test(again, engines_in_loop_mode_leave_nothing_behind)
{
	struct tw_options options;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	rounds_run(&options);
}
