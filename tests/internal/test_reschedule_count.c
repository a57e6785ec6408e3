/* SPDX-License-Identifier: MIT */
/*
 * The counter `rescheduled` must be exact for each engine, whichever thread reschedules, and by
 * whichever call. It must be complete when stop returns. The fast path of reschedule holds a pin on
 * the engine until it has counted (thread/pin.h).
 *
 * Seen to fail with these defects:
 * - quick_postpone() does not count, counts twice, or counts in the first lane;
 * - done_count() does not count, or not atomically in the shared lane;
 * - a detached thread keeps its pin, or threads of the shared lane have a pin;
 * - twi_worker_finish() does not wait for pins;
 * - a forked child keeps the pins of the parent's threads.
 */
#include "engine/engine.h"

#include "heir.h"
#include "probe.h"
#include "slowdown.h"
#include "thread/pin.h"
#include "thread/thread.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>

enum {
	ENGINES = 3,
	THREADS = 3,
	/* More threads than near lanes. The others are far threads. An engine makes no lane for a
	 * far thread that only reschedules, so the far threads count in the shared lane. */
	CROWD = TWI_LANES + 6,
};

static atomic_int runs;
static pthread_barrier_t all_there;

static struct tw_handle far_schedule(struct tw_engine *engine)
{
	return must_schedule_at(engine, 1000 * NS_PER_S, &count_kind, &runs);
}

static void thread_begin(pthread_t *ret_thread, void *(*body)(void *argument), void *argument)
{
	check_int(pthread_create(ret_thread, NULL, body, argument), 0);
}

static void count_check(struct tw_engine *engine, uint64_t count)
{
	check_int(stats_of(engine).rescheduled, count);
}

/* Each of several threads has its own timeout in each engine. All threads also share one timeout
 * per engine. */

struct mover {
	pthread_t thread;
	struct tw_handle own[ENGINES];
	struct tw_handle shared[ENGINES];
	uint64_t done[ENGINES];
	unsigned seed;
};

static void move(struct mover *mover, int engine, struct tw_handle handle, int64_t deadline_ns)
{
	mover->done[engine] += tw_reschedule_at(handle, deadline_ns) == TW_RESCHEDULE_DONE;
}

/* Moves the thread's own timeouts to later times, and the shared ones to earlier times as well. */
static void *moves(void *argument)
{
	struct mover *mover = argument;
	int rounds = (int)slowed(20000);

	for (int i = 0; i < rounds; i++) {
		int engine = rand_r(&mover->seed) % ENGINES;

		for (int k = 0; k < 10; k++)
			move(mover, engine, mover->own[engine], (2000 + i) * NS_PER_S);
		move(mover, engine, mover->shared[engine],
		     (1000 + rand_r(&mover->seed) % 1000) * NS_PER_S);
	}
	return NULL;
}

Test(reschedule_count, counts_of_several_engines_are_exact, .timeout = 100)
{
	struct fixture fixture[ENGINES];
	struct mover mover[THREADS] = {0};

	for (int e = 0; e < ENGINES; e++) {
		fixture_open(&fixture[e], NULL);
		mover[0].shared[e] = far_schedule(fixture[e].engine);
		for (int i = 0; i < THREADS; i++)
			mover[i].own[e] = far_schedule(fixture[e].engine);
	}
	for (int i = 0; i < THREADS; i++) {
		memcpy(mover[i].shared, mover[0].shared, sizeof mover[i].shared);
		mover[i].seed = (unsigned)i + 1;
		thread_begin(&mover[i].thread, moves, &mover[i]);
	}
	for (int i = 0; i < THREADS; i++)
		check_int(pthread_join(mover[i].thread, NULL), 0);
	for (int e = 0; e < ENGINES; e++) {
		uint64_t done = 0;

		for (int i = 0; i < THREADS; i++)
			done += mover[i].done[e];
		count_check(fixture[e].engine, done);
		fixture_close(&fixture[e]);
	}
}

/*
 * In the next test, more threads than near lanes run at once. Each thread with a near lane counts
 * in its own lane, and all others count in the shared lane at the same time.
 */

struct member {
	pthread_t thread;
	struct tw_handle handle;
	uint32_t lane;
	uint64_t rounds;
};

static void *member_moves(void *argument)
{
	struct member *member = argument;

	check_int(tw_thread_attach(), 0);
	member->lane = twi_thread_self.lane;
	member->rounds = member->lane == TWI_LANE_SHARED ? slowed(200000) : 100;
	check_int(twi_thread_self.pin == NULL, member->lane == TWI_LANE_SHARED);
	(void)pthread_barrier_wait(&all_there);
	for (uint64_t i = 0; i < member->rounds; i++)
		check_int(tw_reschedule_at(member->handle, 2000 * NS_PER_S), TW_RESCHEDULE_DONE);
	return NULL;
}

Test(reschedule_count, counts_add_up_with_more_threads_than_lanes, .timeout = 100)
{
	uint64_t by_lane[TWI_LANES] = {0}, sum = 0;
	struct member member[CROWD];
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(pthread_barrier_init(&all_there, NULL, CROWD), 0);
	for (int i = 0; i < CROWD; i++) {
		member[i].handle = far_schedule(fixture.engine);
		thread_begin(&member[i].thread, member_moves, &member[i]);
	}
	for (int i = 0; i < CROWD; i++) {
		check_int(pthread_join(member[i].thread, NULL), 0);
		by_lane[member[i].lane] += member[i].rounds;
		sum += member[i].rounds;
	}
	count_check(fixture.engine, sum);
	for (int i = 0; i < TWI_LANES; i++)
		check_int(fixture.engine->worker.near.lane[i].rescheduled_count, by_lane[i]);
	(void)pthread_barrier_destroy(&all_there);
	fixture_close(&fixture);
}

/*
 * In the next test, threads use the same lane one after the other. Each thread also gives the lane
 * back, and has none for a time.
 */

static void *one_more(void *argument)
{
	struct tw_handle *handle = argument;
	static int64_t seconds = 2000;

	check_int(tw_thread_attach(), 0);
	cr_assert(twi_thread_self.pin != NULL);
	check_int(tw_reschedule_at(*handle, seconds++ * NS_PER_S), TW_RESCHEDULE_DONE);
	check_int(tw_thread_detach(), 0);
	cr_assert(twi_thread_self.pin == NULL);
	check_int(tw_reschedule_at(*handle, seconds++ * NS_PER_S), TW_RESCHEDULE_DONE);
	check_int(tw_thread_attach(), 0);
	check_int(tw_reschedule_at(*handle, seconds++ * NS_PER_S), TW_RESCHEDULE_DONE);
	return NULL;
}

Test(reschedule_count, goes_on_with_the_next_thread_of_a_lane, .timeout = 100)
{
	struct tw_handle handle;
	struct fixture fixture;
	pthread_t thread;

	fixture_open(&fixture, NULL);
	handle = far_schedule(fixture.engine);
	for (int i = 0; i < 100; i++) {
		thread_begin(&thread, one_more, &handle);
		check_int(pthread_join(thread, NULL), 0);
		count_check(fixture.engine, 3 * ((uint64_t)i + 1));
	}
	fixture_close(&fixture);
}

/*
 * In the next test, the owner of a loop reschedules outside and inside a turn, to later and to
 * earlier times.
 */

static void on_move(struct tw_handle self, void *arg)
{
	struct tw_handle *handle = arg;

	check_int(tw_reschedule_at(*handle, 4000 * NS_PER_S), TW_RESCHEDULE_DONE);
	check_int(tw_reschedule_at(*handle, 3000 * NS_PER_S), TW_RESCHEDULE_DONE);
	check_int(tw_reschedule_at(self, 3000 * NS_PER_S), TW_RESCHEDULE_RUNNING);
}

static void owner_moves(uint32_t flags)
{
	static const struct tw_kind move_kind = TW_KIND(on_move, NULL);
	struct tw_options options = fixture_options();
	struct tw_kind kind = count_kind;
	struct tw_handle handle;
	struct fixture fixture;

	kind.flags = flags;
	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	check_int(tw_engine_start(fixture.engine), 0);
	handle = must_schedule_at(fixture.engine, 1000 * NS_PER_S, &kind, &runs);
	check_int(tw_reschedule_at(handle, 2000 * NS_PER_S), TW_RESCHEDULE_DONE);
	check_int(tw_reschedule_at(handle, 1000 * NS_PER_S), TW_RESCHEDULE_DONE);
	(void)must_schedule(fixture.engine, 1, &move_kind, &handle);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	count_check(fixture.engine, 4);
	fixture_close(&fixture);
}

Test(reschedule_count, count_of_an_owner_is_exact)
{
	owner_moves(TW_KIND_FLAG_OWNER_ONLY);
}

Test(reschedule_count, counts_an_owner_with_shared_timeouts)
{
	owner_moves(0);
}

/* Only a reschedule that returns DONE may count. */
Test(reschedule_count, only_successful_reschedules_count)
{
	struct tw_handle handle, cancelled;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	handle = far_schedule(fixture.engine);
	cancelled = far_schedule(fixture.engine);
	check_int(tw_cancel(cancelled), TW_CANCEL_DONE);
	check_int(tw_reschedule_at(cancelled, 2000 * NS_PER_S), TW_RESCHEDULE_CANCELLED);
	check_int(tw_reschedule_at(handle, INT64_MIN), -ERANGE);
	check_int(tw_reschedule_at((struct tw_handle){0}, 1), -EINVAL);
	count_check(fixture.engine, 0);
	check_int(tw_reschedule_at(handle, 2000 * NS_PER_S), TW_RESCHEDULE_DONE);
	count_check(fixture.engine, 1);
	fixture_close(&fixture);
}

/*
 * In the next test, each engine gets the memory of the previous one. A thread reschedules until its
 * engine has stopped. Its last count must not go to the next engine.
 */

static void *engine_memory;

static void *again_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	if (bytes == sizeof(struct tw_engine) && engine_memory != NULL) {
		memory = engine_memory;
		engine_memory = NULL;
		return memory;
	}
	return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void again_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)align;
	memset(memory, 0xA5, bytes);
	if (bytes == sizeof(struct tw_engine) && engine_memory == NULL)
		engine_memory = memory;
	else
		free(memory);
}

static const struct tw_allocator again_allocator = {again_allocate, again_release, NULL};

static atomic_int moving;

static void *moves_until_it_ends(void *argument)
{
	struct tw_handle handle = *(struct tw_handle *)argument;
	uint64_t done = 0;

	check_int(tw_thread_attach(), 0);
	while (tw_reschedule_at(handle, (2000 + (int64_t)done) * NS_PER_S) == TW_RESCHEDULE_DONE) {
		done++;
		atomic_store(&moving, 1);
	}
	return (void *)(uintptr_t)done;
}

static struct tw_engine *loop_open(void)
{
	struct tw_options options;
	struct tw_engine *engine;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	check_int(tw_engine_create(&options, &engine), 0);
	check_int(tw_engine_start(engine), 0);
	return engine;
}

Test(reschedule_count, is_of_no_later_engine, .timeout = 100)
{
	struct tw_engine *engine, *before = NULL;
	struct tw_handle handle;
	uint64_t counted;
	pthread_t thread;
	void *done;

	check_int(tw_memory_allocator_set(&again_allocator), 0);
	for (uint64_t round = slowed(150); round > 0; round--) {
		engine = loop_open();
		cr_assert(before == NULL || engine == before);
		before = engine;
		count_check(engine, 0);
		handle = far_schedule(engine);
		atomic_store(&moving, 0);
		thread_begin(&thread, moves_until_it_ends, &handle);
		while (atomic_load(&moving) == 0)
			(void)sched_yield();
		check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
		counted = stats_of(engine).rescheduled;
		check_int(tw_engine_destroy(engine), 0);
		engine = loop_open();
		check_int(pthread_join(thread, &done), 0);
		check_int(counted, (uintptr_t)done);
		count_check(engine, 0);
		check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
		check_int(tw_engine_destroy(engine), 0);
	}
	free(engine_memory);
	engine_memory = NULL;
	check_int(tw_memory_allocator_set(NULL), 0);
}

/*
 * In the next test, the parent forks while one of its threads has rescheduled and not yet counted.
 * The child's counts must still be exact.
 */

static struct fixture fixture;
static struct tw_handle moved;

static void child_moves_and_stops(void)
{
	heir_take(&fixture, TW_REINIT_KEEP);
	child_need(tw_engine_start(fixture.engine), 0);
	child_need(heir_stats(&fixture).rescheduled, 0);
	child_need(tw_reschedule_at(moved, 3000 * NS_PER_S), TW_RESCHEDULE_DONE);
	child_need(heir_stats(&fixture).rescheduled, 1);
	heir_close(&fixture);
}

Test(reschedule_count, child_leaves_the_parents_count_alone, .timeout = 200)
{
	struct tw_options options = fixture_options();
	struct twi_pin *others = twi_pin_of_lane(TWI_LANE_SHARED - 1);

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&fixture, &options);
	moved = far_schedule(fixture.engine);
	check_int(tw_reschedule_at(moved, 2000 * NS_PER_S), TW_RESCHEDULE_DONE);
	twi_pin_set(others, fixture.engine);
	in_child(child_moves_and_stops);
	twi_pin_clear(others);
	count_check(fixture.engine, 1);
	fixture_close(&fixture);
}
