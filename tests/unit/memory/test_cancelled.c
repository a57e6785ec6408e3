/* SPDX-License-Identifier: MIT */
/*
 * Threads with a pending pthread_cancel call the library, and the allocator's hooks have a
 * cancellation point. No call is a cancellation point, so each thread ends after its call, and
 * everything that was accepted ends once.
 *
 * Seen to fail with this defect: twi_allocate() calls the hook with cancellation enabled. Then the
 * worker ends between its reads of a ring's entries, and stop processes them a second time; a
 * loop's owner ends while it moves timeouts into the wheel, and stop moves them again; a producer
 * ends between the count of a slab and the slab, which is lost to the cap.
 */
#include "check.h"
#include "fixture.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <tickwheel.h>

enum {
	FIRST = 3000,    /* timeouts that are in the wheel before the cancel */
	CANCELLED = 300, /* how many of these are cancelled */
	MORE = 20000,    /* enough to make the wheel allocate several times */
	SLABS = 2,
};

static atomic_bool armed;

static void *hook_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	if (atomic_load(&armed))
		pthread_testcancel();
	return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void hook_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	if (atomic_load(&armed))
		pthread_testcancel();
	free(memory);
}

static const struct tw_allocator allocator = {.allocate = hook_allocate, .release = hook_release};

static int handed_back;

static void hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind, void *arg,
		      int64_t left_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)left_ns;
	handed_back++;
}

static struct tw_engine *engine;
static struct tw_handle handles[FIRST];
static atomic_bool waits, may_end;
static atomic_int unused;

static struct tw_handle scheduled(int64_t delay_ns)
{
	struct tw_handle handle;

	check_int(tw_schedule(engine, delay_ns, &count_kind, &unused, &handle), 0);
	return handle;
}

static void open_engine(uint32_t flags)
{
	struct tw_options options;

	check_int(tw_memory_allocator_set(&allocator), 0);
	check_int(tw_options_init(&options, sizeof options), 0);
	options.flags |= flags;
	check_int(tw_engine_create(&options, &engine), 0);
}

/* The worker cancels itself, and its next turn allocates. */
static void cancel_self(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_store(&waits, true);
	while (!atomic_load(&may_end))
		sleep_ns(NS_PER_MS);
	(void)pthread_cancel(pthread_self());
	atomic_store(&armed, true);
}

Test(cancelled, worker_does_not_end_inside_the_allocator)
{
	static const struct tw_kind kind = TW_KIND(cancel_self, NULL);

	open_engine(0);
	check_int(tw_memory_reserve(FIRST + MORE + 100), 0);
	for (int i = 0; i < FIRST; i++)
		handles[i] = scheduled((100 + i) * NS_PER_S);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	check_int(tw_schedule(engine, NS_PER_MS, &kind, NULL, NULL), 0);
	while (!atomic_load(&waits))
		sleep_ns(NS_PER_MS);
	for (int i = 0; i < CANCELLED; i++)
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
	for (int i = 0; i < MORE; i++)
		(void)scheduled((5000 + 7 * i) * NS_PER_S);
	atomic_store(&may_end, true);
	check_int(tw_engine_flush(engine, PATIENCE_NS), 0);
	atomic_store(&armed, false);
	check_int(tw_engine_stop(engine, hand_back, NULL, PATIENCE_NS), 0);
	check_int(handed_back, FIRST - CANCELLED + MORE);
	check_last_books(engine);
	check_int(tw_engine_destroy(engine), 0);
}

static int accepted;

static void *owner(void *cancel_at)
{
	check_int(tw_loop_enter(engine), 0);
	for (int i = 0; i < MORE; i++) {
		if (i == *(int *)cancel_at) {
			(void)pthread_cancel(pthread_self());
			atomic_store(&armed, true);
		}
		(void)scheduled((1 + 37 * (int64_t)i % MORE) * NS_PER_S);
		accepted++;
	}
	atomic_store(&armed, false);
	pthread_testcancel();
	return NULL;
}

Test(cancelled, owner_of_a_loop_does_not_end_inside_the_allocator)
{
	int cancel_at = FIRST;
	pthread_t thread;
	void *result;

	open_engine(TW_ENGINE_LOOP);
	check_int(tw_memory_reserve(MORE + 100), 0);
	check_int(pthread_create(&thread, NULL, owner, &cancel_at), 0);
	check_int(pthread_join(thread, &result), 0);
	check_true(result == PTHREAD_CANCELED);
	atomic_store(&armed, false);
	check_int(accepted, MORE);
	check_int(tw_engine_stop(engine, hand_back, NULL, PATIENCE_NS), 0);
	check_int(handed_back, MORE);
	check_last_books(engine);
	check_int(tw_engine_destroy(engine), 0);
}

static void *producer(void *returned)
{
	(void)pthread_cancel(pthread_self());
	(void)tw_schedule(engine, NS_PER_S, &count_kind, &unused, NULL);
	atomic_store((atomic_bool *)returned, true);
	pthread_testcancel();
	return NULL;
}

/* Each producer needs a slab first. If a slab were lost, the next producer would soon exceed the
 * cap. */
Test(cancelled, schedule_is_no_cancellation_point)
{
	open_engine(0);
	check_int(tw_memory_cap_set(SLABS * INT64_C(2097152)), 0);
	atomic_store(&armed, true);
	for (int i = 0; i < 2 * SLABS; i++) {
		atomic_bool returned = false;
		pthread_t thread;
		void *result;

		check_int(pthread_create(&thread, NULL, producer, &returned), 0);
		check_int(pthread_join(thread, &result), 0);
		check_true(result == PTHREAD_CANCELED);
		check_true(atomic_load(&returned));
	}
	atomic_store(&armed, false);
	check_int(tw_engine_pending(engine) + atomic_load(&unused), 2 * SLABS);
	(void)scheduled(NS_PER_S);
	check_int(tw_memory_cap_set(0), 0);
	check_int(tw_engine_stop(engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_engine_destroy(engine), 0);
}
