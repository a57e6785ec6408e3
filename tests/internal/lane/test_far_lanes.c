/* SPDX-License-Identifier: MIT */
/*
 * Threads with numbers beyond the near lanes ("far" threads). Each has its own lane, with a ring.
 * Idle lanes rest, so the worker does not look at them. If there is no memory, far threads share
 * one lane.
 *
 * Seen to fail with these defects: a far thread pushes to the shared lane; a lane never rests; the
 * bit of a lane that has rested is not set again; a lane's number is not given back when its thread
 * ends.
 */
#include "fixture.h"

#include "engine/engine.h"
#include "ingress/far.h"
#include "ingress/rest.h"

#include <pthread.h>
#include <stdlib.h>

enum {
	CROWD = TWI_LANES + 2 * TWI_REST_LEAST,
	EACH = 100,
};

static struct fixture fixture;
static pthread_barrier_t line;
static atomic_int runs;

static void count_run(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&runs, 1);
}

static const struct tw_kind run_kind = TW_KIND(count_run, NULL);

struct member {
	pthread_t thread;
	uint32_t far;
	uint32_t lane_number; /* the number of its lane in the engine */
	uint64_t pushed;      /* how many entries its ring has had */
	struct tw_handle kept;
};

static struct member crowd[CROWD];

static struct twi_worker *worker_here(void)
{
	return &fixture.engine->worker;
}

/* Schedules timeouts and cancels half of them, reschedules one, and keeps a far timeout. */
static void *member_work(void *argument)
{
	struct member *member = argument;
	struct tw_handle handle;
	struct twi_lane *lane;

	check_int(tw_thread_attach(), 0);
	(void)pthread_barrier_wait(&line);
	for (int i = 0; i < EACH; i++) {
		check_int(tw_schedule(fixture.engine, NS_PER_S, &run_kind, NULL, &handle), 0);
		if (i % 2 == 0)
			check_int(tw_cancel(handle), TW_CANCEL_DONE);
	}
	check_int(tw_schedule(fixture.engine, TW_NEVER, &run_kind, NULL, &member->kept), 0);
	check_int(tw_reschedule(member->kept, TW_NEVER), TW_RESCHEDULE_DONE);
	lane = twi_lane_of(worker_here(), twi_thread());
	member->far = twi_thread()->far;
	member->lane_number = lane->number;
	member->pushed = twi_ring_pushed(&lane->ring);
	(void)pthread_barrier_wait(&line);
	return NULL;
}

static void crowd_run(void)
{
	check_int(pthread_barrier_init(&line, NULL, CROWD), 0);
	for (int i = 0; i < CROWD; i++)
		check_int(pthread_create(&crowd[i].thread, NULL, member_work, &crowd[i]), 0);
	for (int i = 0; i < CROWD; i++)
		check_int(pthread_join(crowd[i].thread, NULL), 0);
	check_int(pthread_barrier_destroy(&line), 0);
}

static void crowd_check(void)
{
	struct tw_stats stats = stats_of(fixture.engine);

	check_int(stats.scheduled, CROWD * (EACH + 1));
	check_int(stats.cancelled, CROWD * EACH / 2);
	check_int(stats.rescheduled, CROWD);
	check_int(stats.pending, CROWD * (EACH / 2 + 1));
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, CROWD * EACH / 2);
	for (int i = 0; i < CROWD; i++)
		check_int(tw_cancel(crowd[i].kept), TW_CANCEL_DONE);
	check_int(stats_of(fixture.engine).pending, 0);
}

Test(far_lanes, each_thread_pushes_to_a_ring_of_its_own, .timeout = 100)
{
	int far = 0;

	runs = 0;
	fixture_open(&fixture, NULL);
	crowd_run();
	for (int i = 0; i < CROWD; i++) {
		far += crowd[i].far != 0;
		check_true(crowd[i].far == 0 || crowd[i].lane_number == crowd[i].far);
		check_true(crowd[i].lane_number != TWI_LANE_SHARED);
		check_at_least(crowd[i].pushed, EACH + 1);
	}
	check_at_least(far, CROWD - TWI_LANES);
	crowd_check();
	fixture_close(&fixture);
}

/* Later threads must use the numbers and lanes of ended threads, so that a second crowd needs no
 * further page of lanes. */
Test(far_lanes, lanes_are_used_again_by_later_threads, .timeout = 100)
{
	runs = 0;
	fixture_open(&fixture, NULL);
	crowd_run();
	crowd_check();
	check_int(twi_lane_block_next(worker_here(), 1), 1);
	check_true(twi_lane_block_next(worker_here(), 4) == TWI_BLOCKS);
	runs = 0;
	crowd_run();
	check_int(stats_of(fixture.engine).scheduled, 2 * CROWD * (EACH + 1));
	check_true(twi_lane_block_next(worker_here(), 4) == TWI_BLOCKS);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, CROWD * EACH / 2);
	fixture_close(&fixture);
}

static unsigned lanes_looked_at(void)
{
	unsigned count = 0;

	for (uint32_t number = 1;
	     (number = twi_lane_block_next(worker_here(), number)) < TWI_BLOCKS; number++)
		count += (unsigned)__builtin_popcountll(
			twi_lane_block_used(twi_lane_block_at(worker_here(), number)));
	return count;
}

static void *push_once(void *argument)
{
	(void)argument;
	check_int(tw_thread_attach(), 0);
	(void)pthread_barrier_wait(&line);
	check_int(tw_schedule(fixture.engine, NS_PER_S, &run_kind, NULL, NULL), 0);
	check_int(tw_engine_flush(fixture.engine, TW_NEVER), 0);
	(void)pthread_barrier_wait(&line);
	(void)pthread_barrier_wait(&line);
	check_int(tw_schedule(fixture.engine, NS_PER_S, &run_kind, NULL, NULL), 0);
	(void)pthread_barrier_wait(&line);
	return NULL;
}

/*
 * When the threads have been idle for some of the worker's sleeps, the worker must look at few of
 * their lanes. Then each thread pushes once more, and its timeout must still run.
 */
Test(far_lanes, idle_lanes_rest_and_wake, .timeout = 100)
{
	unsigned at_first;

	runs = 0;
	fixture_open(&fixture, NULL);
	check_int(pthread_barrier_init(&line, NULL, CROWD + 1), 0);
	for (int i = 0; i < CROWD; i++)
		check_int(pthread_create(&crowd[i].thread, NULL, push_once, NULL), 0);
	(void)pthread_barrier_wait(&line);
	(void)pthread_barrier_wait(&line);
	at_first = CROWD - TWI_LANE_SHARED;
	for (int i = 0; i < 10; i++)
		fixture_advance(&fixture, NS_PER_S);
	check_int(runs, CROWD);
	check_true(lanes_looked_at() < TWI_REST_LEAST && lanes_looked_at() < at_first);
	(void)pthread_barrier_wait(&line);
	(void)pthread_barrier_wait(&line);
	for (int i = 0; i < CROWD; i++)
		check_int(pthread_join(crowd[i].thread, NULL), 0);
	check_int(stats_of(fixture.engine).scheduled, 2 * CROWD);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, 2 * CROWD);
	check_int(pthread_barrier_destroy(&line), 0);
	fixture_close(&fixture);
}

static atomic_bool no_pages;
static atomic_int pages_asked;

static void *page_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	if (atomic_load(&no_pages) && bytes % sizeof(struct twi_lane_block) == 0) {
		atomic_fetch_add(&pages_asked, 1);
		return NULL;
	}
	return aligned_alloc(align, (bytes + align - 1) / align * align);
}

static void page_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

/* Without memory for a page of lanes, far threads must share a lane. They share it as long as
 * the engine exists, even when there is memory again. */
Test(far_lanes, without_memory_threads_share_a_lane, .timeout = 100)
{
	const struct tw_allocator allocator = {
		.allocate = page_allocate,
		.release = page_release,
	};

	runs = 0;
	check_int(tw_memory_allocator_set(&allocator), 0);
	atomic_store(&no_pages, true);
	fixture_open(&fixture, NULL);
	crowd_run();
	crowd_check();
	for (int i = 0; i < CROWD; i++)
		check_true(crowd[i].far == 0 || crowd[i].lane_number == TWI_LANE_SHARED);
	check_at_least(pages_asked, 1);
	atomic_store(&no_pages, false);
	runs = 0;
	crowd_run();
	check_true(twi_lane_block_next(worker_here(), 1) == TWI_BLOCKS);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(runs, CROWD * EACH / 2);
	fixture_close(&fixture);
}
