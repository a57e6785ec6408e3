/* SPDX-License-Identifier: MIT */
/*
 * All calls at once. usage: race_stress [threads] [seconds] [seed] [limit]
 *
 * Each thread schedules with short delays, and cancels its own and other threads' timeouts. Threads
 * exchange handles through shared places (offers). Many of these handles are stale. Each thread
 * also queries timeouts, and sometimes detaches. A third of the calls are batches of up to 32, in
 * which a handle may occur twice. Arguments are cells (cell.h), which are poisoned at the end of
 * each use and used again.
 *
 * Allowed outcomes: each accepted timeout ends exactly once, by its callback, by exactly one cancel
 * that returned "done", or by stop's hand-back. Its finaliser runs once, with the matching reason.
 * No thread touches a cell before its timeout is scheduled or after it has ended.
 *
 * Seen to fail with these defects: cancel changes the state word by a load and a store (a timeout
 * ends twice); twi_node_begin() does not raise the generation (a stale handle cancels another
 * timeout); a callback runs although its timeout was cancelled (it finds the magic word of a
 * poisoned cell); a finaliser is not called (the cell is never poisoned).
 */
#include "cell.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>

enum {
	HANDLES = 1024,
	/* how many cells each producer has */
	CELLS = 8192,
	/* how many operations there are between two reads of the clock */
	STRIDE = 256,
	/* the size of the largest batch */
	BATCH = 32,
};

/* A handle that any thread may take. A sequence lock guards its parts. */
struct offer {
	_Atomic uint64_t sequence;
	_Atomic uintptr_t node;
	_Atomic uint64_t generation;
	_Atomic(struct cell *) cell;
};

struct producer {
	pthread_t thread;
	uint64_t random;
	uint64_t operations;
	uint64_t accepted, rejected, cancelled, stale, late;
	struct cells cells;
};

static struct tw_engine *engine;
static struct offer offers[HANDLES];
static int64_t until_ns;
static _Atomic uint64_t expired_count, unexpired_count;

static void on_expire(struct tw_handle handle, void *arg)
{
	RACE_CHECK(tw_timeout_state(handle) == TW_STATE_EXPIRED);
	atomic_fetch_add_explicit(&expired_count, 1, memory_order_relaxed);
	cell_end(arg, TW_END_EXPIRED);
}

static void on_release(void *arg, enum tw_end how)
{
	cell_finalise(arg, how);
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	atomic_fetch_add_explicit(&unexpired_count, 1, memory_order_relaxed);
	cell_end(arg, TW_END_UNEXPIRED);
}

static const struct tw_kind plain = TW_KIND(on_expire, NULL);
static const struct tw_kind finalised = TW_KIND(on_expire, on_release);

/* Offers a handle here unless another thread uses this place. */
static void offer_put(struct offer *offer, struct tw_handle handle, struct cell *cell)
{
	uint64_t sequence = atomic_load_explicit(&offer->sequence, memory_order_relaxed);

	if (sequence % 2 != 0 ||
	    !atomic_compare_exchange_strong_explicit(&offer->sequence, &sequence, sequence + 1,
						     memory_order_acq_rel, memory_order_relaxed))
		return;
	atomic_store_explicit(&offer->node, (uintptr_t)handle.node, memory_order_release);
	atomic_store_explicit(&offer->generation, handle.generation, memory_order_release);
	atomic_store_explicit(&offer->cell, cell, memory_order_release);
	atomic_store_explicit(&offer->sequence, sequence + 2, memory_order_release);
}

static bool offer_get(struct offer *offer, struct tw_handle *ret_handle, struct cell **ret_cell)
{
	uint64_t sequence = atomic_load_explicit(&offer->sequence, memory_order_acquire);

	if (sequence == 0 || sequence % 2 != 0)
		return false;
	ret_handle->node = (void *)atomic_load_explicit(&offer->node, memory_order_acquire);
	ret_handle->generation = atomic_load_explicit(&offer->generation, memory_order_acquire);
	*ret_cell = atomic_load_explicit(&offer->cell, memory_order_acquire);
	return atomic_load_explicit(&offer->sequence, memory_order_acquire) == sequence;
}

/* Returns a delay: mostly of a few ticks, sometimes of many. */
static int64_t delay_ns(struct producer *producer)
{
	int64_t most_ns = race_random(&producer->random) % 64 == 0 ? 30000000 : 3000000;

	return (int64_t)(race_random(&producer->random) % (uint64_t)most_ns) - 1000;
}

static void one_schedule(struct producer *producer)
{
	const struct tw_kind *kind = race_random(&producer->random) % 2 ? &plain : &finalised;
	struct cell *cell = cell_take(&producer->cells, kind == &finalised);
	struct tw_handle handle;
	int result;

	if (cell == NULL)
		return;
	result = tw_schedule(engine, delay_ns(producer), kind, cell, &handle);
	if (result == 0) {
		producer->accepted++;
		offer_put(&offers[race_random(&producer->random) % HANDLES], handle, cell);
		return;
	}
	RACE_CHECK(result == -EAGAIN);
	cell_give_back(cell);
	producer->rejected++;
}

/* Makes an item with a cell as its argument. Returns false if it finds no free cell. */
static bool item_make(struct producer *producer, struct tw_item *ret_item)
{
	const struct tw_kind *kind = race_random(&producer->random) % 2 ? &plain : &finalised;
	struct cell *cell = cell_take(&producer->cells, kind == &finalised);

	*ret_item = (struct tw_item){delay_ns(producer), kind, cell};
	return cell != NULL;
}

static void batch_schedule(struct producer *producer)
{
	size_t most = 1 + race_random(&producer->random) % BATCH;
	struct tw_item items[BATCH];
	struct tw_handle handles[BATCH];
	int errors[BATCH];
	size_t count = 0;
	int scheduled;

	while (count < most && item_make(producer, &items[count]))
		count++;
	scheduled = tw_schedule_many(engine, items, count, handles, errors);
	RACE_CHECK(count == 0 ? scheduled == -EINVAL : scheduled >= 0);
	for (size_t i = 0; i < count; i++) {
		if (errors[i] == 0) {
			producer->accepted++;
			scheduled--;
			offer_put(&offers[race_random(&producer->random) % HANDLES], handles[i],
				  items[i].arg);
			continue;
		}
		RACE_CHECK(errors[i] == -EAGAIN);
		cell_give_back(items[i].arg);
		producer->rejected++;
	}
	RACE_CHECK(count == 0 || scheduled == 0);
}

static void cancelled(struct producer *producer, struct cell *cell, int outcome)
{
	switch (outcome) {
	case TW_CANCEL_DONE:
		producer->cancelled++;
		cell_end(cell, TW_END_CANCELLED);
		break;
	case TW_CANCEL_STALE:
		producer->stale++;
		break;
	default:
		RACE_CHECK(outcome > 0 && outcome < TW_CANCEL_STALE);
		producer->late++;
	}
}

static void batch_cancel(struct producer *producer)
{
	size_t most = 1 + race_random(&producer->random) % BATCH;
	struct tw_handle handles[BATCH];
	struct cell *cells[BATCH];
	int outcomes[BATCH];
	size_t count = 0;

	for (size_t i = 0; i < most; i++)
		count += offer_get(&offers[race_random(&producer->random) % HANDLES],
				   &handles[count], &cells[count]);
	if (count == 0)
		return;
	RACE_CHECK(tw_cancel_many(handles, count, outcomes) >= 0);
	for (size_t i = 0; i < count; i++)
		cancelled(producer, cells[i], outcomes[i]);
}

static void one_cancel(struct producer *producer)
{
	struct tw_handle handle;
	struct cell *cell;
	int outcome;

	if (!offer_get(&offers[race_random(&producer->random) % HANDLES], &handle, &cell))
		return;
	if (race_random(&producer->random) % 16 == 0)
		outcome = tw_cancel_wait(handle, TW_NEVER);
	else
		outcome = tw_cancel(handle);
	cancelled(producer, cell, outcome);
}

static void one_look(struct producer *producer)
{
	struct tw_timeout seen = {.size = sizeof seen};
	struct tw_handle handle;
	struct cell *cell;
	int result;

	if (!offer_get(&offers[race_random(&producer->random) % HANDLES], &handle, &cell))
		return;
	result = tw_timeout_get(handle, &seen);
	RACE_CHECK(result == 0 || result == -ESTALE);
	if (result == 0)
		RACE_CHECK(seen.engine == engine && seen.arg == cell);
}

static void one_operation(struct producer *producer)
{
	uint64_t dice = race_random(&producer->random) % 1024;

	if (dice == 0)
		RACE_CHECK(tw_thread_detach() == 0);
	else if (dice < 16)
		batch_schedule(producer);
	else if (dice < 32)
		batch_cancel(producer);
	else if (dice < 480)
		one_schedule(producer);
	else if (dice < 960)
		one_cancel(producer);
	else
		one_look(producer);
}

static void *producer_main(void *argument)
{
	struct producer *producer = argument;

	do {
		for (int i = 0; i < STRIDE; i++)
			one_operation(producer);
		producer->operations += STRIDE;
	} while (race_now_ns() < until_ns);
	return NULL;
}

static void engine_make(uint64_t limit)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = 100000;
	options.slots = 16;
	options.pending_limit = limit;
	options.check = TW_CHECK_CHEAP;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
}

static void sum_print(const struct producer *sum)
{
	uint64_t ended = expired_count + sum->cancelled + unexpired_count;

	printf("operations %" PRIu64 "; accepted %" PRIu64 " = expired %" PRIu64
	       " + cancelled %" PRIu64 " + handed back %" PRIu64 "; rejected %" PRIu64
	       "; cancels too late %" PRIu64 ", stale %" PRIu64 "; lost %" PRId64 "\n",
	       sum->operations, sum->accepted, expired_count, sum->cancelled, unexpired_count,
	       sum->rejected, sum->late, sum->stale, (int64_t)(sum->accepted - ended));
	RACE_CHECK(sum->accepted == ended);
}

static void all_account(struct producer *producers, uint64_t threads)
{
	static struct producer sum;
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	for (uint64_t i = 0; i < threads; i++) {
		sum.operations += producers[i].operations;
		sum.accepted += producers[i].accepted;
		sum.rejected += producers[i].rejected;
		sum.cancelled += producers[i].cancelled;
		sum.stale += producers[i].stale;
		sum.late += producers[i].late;
	}
	sum_print(&sum);
	/* No cell may be in use, and every sequence number must have been accepted or rejected. */
	for (uint64_t i = 0; i < threads; i++) {
		RACE_CHECK(producers[i].cells.sequence ==
			   producers[i].accepted + producers[i].rejected);
		cells_check(&producers[i].cells, producers[i].accepted);
	}
	RACE_CHECK(stats.scheduled == sum.accepted && stats.cancelled == sum.cancelled);
	RACE_CHECK(stats.expired == expired_count && stats.unexpired == unexpired_count);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
}

static void producer_init(struct producer *producer, uint64_t seed)
{
	producer->random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
	cells_init(&producer->cells, CELLS);
}

int main(int argc, char **argv)
{
	uint64_t threads = race_argument(argc, argv, 1, 2);
	uint64_t seconds = race_argument(argc, argv, 2, 1);
	uint64_t seed = race_argument(argc, argv, 3, 1);
	struct producer *producers = calloc(threads, sizeof *producers);

	race_watchdog(600 + (unsigned)seconds);
	RACE_CHECK(producers != NULL);
	engine_make(race_argument(argc, argv, 4, 0));
	for (uint64_t i = 0; i < threads; i++)
		producer_init(&producers[i], seed + i);
	until_ns = race_now_ns() + (int64_t)seconds * 1000000000;
	for (uint64_t i = 0; i < threads; i++)
		RACE_CHECK(pthread_create(&producers[i].thread, NULL, producer_main,
					  &producers[i]) == 0);
	for (uint64_t i = 0; i < threads; i++)
		RACE_CHECK(pthread_join(producers[i].thread, NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, TW_NEVER) == 0);
	all_account(producers, threads);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	for (uint64_t i = 0; i < threads; i++)
		cells_release(&producers[i].cells);
	free(producers);
	return 0;
}
