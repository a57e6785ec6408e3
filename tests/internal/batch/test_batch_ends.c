/* SPDX-License-Identifier: MIT */
/*
 * Batches that end before their last item. The reasons: there is no memory; the engine is stopped
 * in the middle of the batch, was stopped before, or cannot be started; the calling thread is
 * cancelled (pthread_cancel).
 *
 * Seen to fail with these defects: a batch tries to start the engine for each item, or even if all
 * items are invalid; an engine that is stopped between two spans still gets items; a cancelled
 * thread ends inside its section.
 */
#include "batch_scene.h"

#include <errno.h>
#include <pthread.h>

enum {
	FEW = 8,
	/* Enough for several spans and for several magazines. */
	MANY = 5000,
};

/* The batch must start the engine only if it has at least one valid item. */
Test(batch_ends, bad_items_start_nothing)
{
	struct tw_kind owned = TW_KIND_OWNER_ONLY(count_kind.callback, NULL);
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item items[3] = {item_of(INT64_MIN, &count_kind, &runs), item_of(0, NULL, &runs),
				   item_of(0, &owned, &runs)};
	int errors[3];

	fixture_open(&fixture, NULL);
	check_int(tw_schedule_many(fixture.engine, items, 2, NULL, errors), 0);
	check_int(tw_schedule_many(fixture.engine, items, 3, NULL, errors), 0);
	check_int(errors[0], -ERANGE);
	check_int(errors[1], -EINVAL);
	check_int(errors[2], -EPERM);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_NEW);
	items[2].kind = &count_kind;
	check_int(tw_schedule_many(fixture.engine, items, 3, NULL, errors), 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(runs, 1);
	fixture_close(&fixture);
}

/*
 * The batch has more items than there is memory for. The rest must be rejected, and the accepted
 * items must stay.
 */
Test(batch_ends, without_memory_the_rest_is_rejected)
{
	enum { BEYOND = 100000 };
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item *items = items_make(BEYOND, NS_PER_MS, &count_kind, &runs);
	int *errors = array_make(BEYOND, sizeof *errors);
	int scheduled;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, 1, &count_kind, &runs);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_memory_cap_set(tw_memory_slab_bytes()), 0);
	scheduled = tw_schedule_many(fixture.engine, items, BEYOND, NULL, errors);
	check_true(scheduled > 0 && scheduled < BEYOND);
	for (int i = 0; i < BEYOND; i++)
		check_int(errors[i], i < scheduled ? 0 : -ENOMEM);
	check_int(stats_of(fixture.engine).rejected, BEYOND - scheduled);
	check_int(tw_memory_cap_set(0), 0);
	check_int(tw_schedule_many(fixture.engine, items, BEYOND, NULL, NULL), BEYOND);
	fixture_advance(&fixture, NS_PER_S);
	check_int(runs, 1 + scheduled + BEYOND);
	fixture_close(&fixture);
	free(items);
	free(errors);
}

/*
 * Allocates, and has a cancellation point, at which a thread with a pending pthread_cancel would
 * end.
 */
static void *cancellable_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	pthread_testcancel();
	return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

static void cancellable_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

static void *schedule_cancelled(void *argument)
{
	static atomic_int unused;
	struct tw_item *items = items_make(MANY, TW_NEVER, &count_kind, &unused);

	(void)pthread_cancel(pthread_self());
	(void)tw_schedule_many(argument, items, MANY, NULL, NULL);
	free(items);
	pthread_testcancel();
	return argument;
}

/*
 * No call may be a cancellation point. The thread must end only after the call has returned.
 * Otherwise it would end inside its section, and other threads would wait for that section for
 * ever.
 */
Test(batch_ends, cancelled_thread_ends_after_the_call)
{
	static const struct tw_allocator allocator = {.allocate = cancellable_allocate,
						      .release = cancellable_release};
	struct fixture fixture;
	pthread_t thread;
	void *result;

	fixture_open(&fixture, NULL);
	check_int(tw_memory_allocator_set(&allocator), 0);
	check_int(pthread_create(&thread, NULL, schedule_cancelled, fixture.engine), 0);
	check_int(pthread_join(thread, &result), 0);
	check_true(result == PTHREAD_CANCELED);
	check_int(tw_engine_pending(fixture.engine), MANY);
	fixture_close(&fixture);
	check_int(tw_memory_allocator_set(NULL), 0);
}

Test(batch_ends, schedule_many_after_stop_rejects_each_item)
{
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item *items = items_make(FEW, 0, &count_kind, &runs);
	struct tw_kind owned = TW_KIND_OWNER_ONLY(count_kind.callback, NULL);
	int errors[FEW];

	items[2].time_ns = INT64_MIN;
	items[3].kind = &owned;
	fixture_open(&fixture, NULL);
	fixture_stop(&fixture);
	check_int(tw_schedule_many(fixture.engine, items, FEW, NULL, errors), 0);
	for (int i = 0; i < FEW; i++)
		check_int(errors[i], i == 2 ? -ERANGE : i == 3 ? -EPERM : -ESHUTDOWN);
	check_int(stats_of(fixture.engine).rejected, FEW - 1);
	fixture_close(&fixture);
	check_int(runs, 0);
	free(items);
}

/* The engine that the allocator below stops when the library asks for memory beyond the first slab,
 * and the result of that stop. */
static struct tw_engine *to_be_stopped;
static int said_by_stop;

static void *stopping_allocate(void *context, size_t bytes, size_t align)
{
	void *memory = NULL;

	(void)context;
	if (to_be_stopped != NULL)
		said_by_stop = tw_engine_stop(to_be_stopped, NULL, NULL, 0);
	return posix_memalign(&memory, align, bytes) == 0 ? memory : NULL;
}

/*
 * Items of a span that has begun are accepted, and stop hands them back. Items of later spans must
 * be rejected.
 */
Test(batch_ends, no_span_is_accepted_after_a_stop)
{
	enum { TWO_SLABS = 70000, SPAN = 1024 };
	static const struct tw_allocator allocator = {.allocate = stopping_allocate,
						      .release = cancellable_release};
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item *items = items_make(TWO_SLABS, TW_NEVER, &count_kind, &runs);
	struct tw_handle *handles = array_make(TWO_SLABS, sizeof *handles);
	int *errors = array_make(TWO_SLABS, sizeof *errors);
	int scheduled;

	fixture_open(&fixture, NULL);
	must_schedule(fixture.engine, TW_NEVER, &count_kind, &runs);
	check_int(tw_memory_allocator_set(&allocator), 0);
	to_be_stopped = fixture.engine;
	scheduled = tw_schedule_many(fixture.engine, items, TWO_SLABS, handles, errors);
	to_be_stopped = NULL;
	check_int(said_by_stop, -ETIMEDOUT);
	check_true(scheduled > 0 && scheduled < TWO_SLABS);
	check_int(scheduled % SPAN, 0);
	for (int i = 0; i < TWO_SLABS; i++) {
		check_int(errors[i], i < scheduled ? 0 : -ESHUTDOWN);
		check_int(handles[i].node == NULL, i >= scheduled);
	}
	fixture_stop(&fixture);
	check_int(stats_of(fixture.engine).unexpired, scheduled + 1);
	check_int(stats_of(fixture.engine).rejected, TWO_SLABS - scheduled);
	fixture_close(&fixture);
	check_int(runs, 0);
	check_int(tw_memory_allocator_set(NULL), 0);
	free(items);
	free(handles);
	free(errors);
}

static int failing_hook(void *context, void *(*body)(void *arg), void *arg)
{
	(void)body;
	(void)arg;
	(*(int *)context)++;
	return EPERM;
}

/* The batch must try to start the engine once, not once per item. */
Test(batch_ends, batch_tries_to_start_the_engine_once)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	atomic_int runs = 0;
	struct tw_item *items = items_make(MANY, 0, &count_kind, &runs);
	int *errors = array_make(MANY, sizeof *errors);
	int tries = 0;

	options.thread = failing_hook;
	options.thread_context = &tries;
	fixture_open(&fixture, &options);
	check_int(tw_schedule_many(fixture.engine, items, MANY, NULL, errors), 0);
	check_int(tries, 1);
	for (int i = 0; i < MANY; i++)
		check_int(errors[i], -EPERM);
	check_int(tw_engine_destroy(fixture.engine), 0);
	check_int(tw_clock_destroy(fixture.clock), 0);
	free(items);
	free(errors);
}
