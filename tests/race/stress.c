/* SPDX-License-Identifier: MIT */
/*
 * Everything at once: [threads] [operations] [seed] [limit].
 *
 * Each thread schedules with short delays, cancels its own and other threads' timeouts (handles go
 * round in shared cells, and many are stale), asks about them, and now and then attaches and
 * detaches. A timeout is a cell with a magic word, its producer's sequence number, and a count of
 * ends.
 *
 * Allowed outcomes: each accepted timeout ends exactly once, by its callback, by exactly one cancel
 * that answered "done", or by stop's hand-back; its finaliser runs once, with the matching reason;
 * nothing is touched before its birth or after its end.
 *
 * Seen to fail: with cancel's compare-and-swap split in load and store (two ends), with the
 * generation not counted up (a stale handle cancels another timeout).
 */
#include "race.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

enum { HANDLES = 1024, MAGIC = 0x7c17a11d, DEAD = 0x0dead0ff };

struct timeout {
	_Atomic uint32_t magic;
	bool has_finaliser;
	_Atomic uint32_t ends;      /* times that it ended */
	_Atomic uint32_t finalised; /* 1 + enum tw_end */
	_Atomic uint32_t how;       /* 1 + enum tw_end, as the one who ended it saw */
};

/* A handle on offer to everybody: a sequence lock around two words. */
struct offer {
	_Atomic uint64_t sequence;
	_Atomic uintptr_t node;
	_Atomic uint64_t birth;
	_Atomic(struct timeout *) timeout;
};

struct producer {
	pthread_t thread;
	uint64_t random;
	uint64_t operations;
	struct timeout *timeout;
	uint64_t accepted, refused, cancelled, stale, late;
};

static struct tw_engine *engine;
static struct offer offers[HANDLES];
static _Atomic uint64_t expired_count, handed_back_count;

static void end(struct timeout *timeout, enum tw_end how)
{
	RACE_CHECK(atomic_load_explicit(&timeout->magic, memory_order_relaxed) == MAGIC);
	RACE_CHECK(atomic_fetch_add_explicit(&timeout->ends, 1, memory_order_relaxed) == 0);
	atomic_store_explicit(&timeout->how, 1 + (uint32_t)how, memory_order_relaxed);
}

static void on_expire(struct tw_handle handle, void *arg)
{
	RACE_CHECK(tw_timeout_state(handle) == TW_STATE_EXPIRED);
	end(arg, TW_END_EXPIRED);
	atomic_fetch_add_explicit(&expired_count, 1, memory_order_relaxed);
}

static void on_release(void *arg, enum tw_end how)
{
	struct timeout *timeout = arg;

	RACE_CHECK(atomic_exchange_explicit(&timeout->finalised, 1 + (uint32_t)how,
					    memory_order_relaxed) == 0);
}

static void on_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)remaining_ns;
	end(arg, TW_END_HANDED_BACK);
	atomic_fetch_add_explicit(&handed_back_count, 1, memory_order_relaxed);
}

static const struct tw_kind plain = TW_KIND(on_expire, NULL);
static const struct tw_kind finalised = TW_KIND(on_expire, on_release);

/* Puts a handle on offer, unless another thread is at this one. */
static void offer_put(struct offer *offer, struct tw_handle handle, struct timeout *timeout)
{
	uint64_t sequence = atomic_load_explicit(&offer->sequence, memory_order_relaxed);

	if (sequence % 2 != 0 ||
	    !atomic_compare_exchange_strong_explicit(&offer->sequence, &sequence, sequence + 1,
						     memory_order_acq_rel, memory_order_relaxed))
		return;
	atomic_store_explicit(&offer->node, (uintptr_t)handle.node, memory_order_release);
	atomic_store_explicit(&offer->birth, handle.birth, memory_order_release);
	atomic_store_explicit(&offer->timeout, timeout, memory_order_release);
	atomic_store_explicit(&offer->sequence, sequence + 2, memory_order_release);
}

static bool offer_get(struct offer *offer, struct tw_handle *ret_handle,
		      struct timeout **ret_timeout)
{
	uint64_t sequence = atomic_load_explicit(&offer->sequence, memory_order_acquire);

	if (sequence == 0 || sequence % 2 != 0)
		return false;
	ret_handle->node = (void *)atomic_load_explicit(&offer->node, memory_order_acquire);
	ret_handle->birth = atomic_load_explicit(&offer->birth, memory_order_acquire);
	*ret_timeout = atomic_load_explicit(&offer->timeout, memory_order_acquire);
	return atomic_load_explicit(&offer->sequence, memory_order_acquire) == sequence;
}

static void one_schedule(struct producer *producer, struct timeout *timeout)
{
	int64_t delay_ns = (int64_t)(race_random(&producer->random) % 3000000) - 1000;
	const struct tw_kind *kind = race_random(&producer->random) % 2 ? &plain : &finalised;
	struct tw_handle handle;
	int result;

	timeout->has_finaliser = kind == &finalised;
	atomic_store_explicit(&timeout->magic, MAGIC, memory_order_relaxed);
	result = tw_schedule(engine, delay_ns, kind, timeout, &handle);
	if (result == 0) {
		producer->accepted++;
		offer_put(&offers[race_random(&producer->random) % HANDLES], handle, timeout);
		return;
	}
	RACE_CHECK(result == -EAGAIN);
	atomic_store_explicit(&timeout->magic, DEAD, memory_order_relaxed);
	producer->refused++;
}

static void one_cancel(struct producer *producer)
{
	struct tw_handle handle;
	struct timeout *timeout;
	int outcome;

	if (!offer_get(&offers[race_random(&producer->random) % HANDLES], &handle, &timeout))
		return;
	if (race_random(&producer->random) % 16 == 0)
		outcome = tw_cancel_wait(handle, TW_NEVER);
	else
		outcome = tw_cancel(handle);
	switch (outcome) {
	case TW_CANCEL_DONE:
		end(timeout, TW_END_CANCELLED);
		producer->cancelled++;
		break;
	case TW_CANCEL_STALE:
		producer->stale++;
		break;
	default:
		RACE_CHECK(outcome > 0 && outcome < TW_CANCEL_STALE);
		producer->late++;
	}
}

static void one_look(struct producer *producer)
{
	struct tw_timeout seen = {.size = sizeof seen};
	struct tw_handle handle;
	struct timeout *timeout;
	int result;

	if (!offer_get(&offers[race_random(&producer->random) % HANDLES], &handle, &timeout))
		return;
	result = tw_timeout_get(handle, &seen);
	RACE_CHECK(result == 0 || result == -ESTALE);
	if (result == 0)
		RACE_CHECK(seen.engine == engine && seen.arg == timeout);
}

static void *producer_main(void *argument)
{
	struct producer *producer = argument;
	uint64_t used = 0;

	for (uint64_t i = 0; i < producer->operations; i++) {
		uint64_t dice = race_random(&producer->random) % 1024;

		if (dice == 0)
			RACE_CHECK(tw_thread_detach() == 0);
		else if (dice < 480)
			one_schedule(producer, &producer->timeout[used++]);
		else if (dice < 960)
			one_cancel(producer);
		else
			one_look(producer);
	}
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

/* Every timeout of a producer ended once, and its finaliser agrees. */
static void producer_account(const struct producer *producer)
{
	uint64_t accepted = 0;

	for (uint64_t i = 0; i < producer->operations; i++) {
		struct timeout *timeout = &producer->timeout[i];
		uint32_t magic = atomic_load_explicit(&timeout->magic, memory_order_relaxed);
		uint32_t finaliser =
			atomic_load_explicit(&timeout->finalised, memory_order_relaxed);

		RACE_CHECK(atomic_load_explicit(&timeout->ends, memory_order_relaxed) ==
			   (magic == MAGIC));
		accepted += magic == MAGIC;
		RACE_CHECK(finaliser ==
			   (magic == MAGIC && timeout->has_finaliser
				    ? atomic_load_explicit(&timeout->how, memory_order_relaxed)
				    : 0));
	}
	RACE_CHECK(accepted == producer->accepted);
}

static void all_account(const struct producer *producers, uint64_t threads)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct producer sum = {.accepted = 0};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	for (uint64_t i = 0; i < threads; i++) {
		producer_account(&producers[i]);
		sum.accepted += producers[i].accepted;
		sum.refused += producers[i].refused;
		sum.cancelled += producers[i].cancelled;
		sum.stale += producers[i].stale;
		sum.late += producers[i].late;
	}
	printf("accepted %lu = expired %lu + cancelled %lu + handed back %lu; refused %lu; cancels "
	       "too late %lu, stale %lu; lost 0\n",
	       (unsigned long)sum.accepted, (unsigned long)expired_count,
	       (unsigned long)sum.cancelled, (unsigned long)handed_back_count,
	       (unsigned long)sum.refused, (unsigned long)sum.late, (unsigned long)sum.stale);
	RACE_CHECK(sum.accepted == expired_count + sum.cancelled + handed_back_count);
	RACE_CHECK(stats.scheduled == sum.accepted && stats.cancelled == sum.cancelled);
	RACE_CHECK(stats.expired == expired_count && stats.handed_back == handed_back_count);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
}

int main(int argc, char **argv)
{
	uint64_t threads = race_argument(argc, argv, 1, 2);
	uint64_t operations = race_size(argc, argv, 2, 1000000);
	uint64_t seed = race_argument(argc, argv, 3, 1);
	struct producer *producers = calloc(threads, sizeof *producers);

	race_watchdog(600);
	RACE_CHECK(producers != NULL);
	engine_make(race_argument(argc, argv, 4, 0));
	for (uint64_t i = 0; i < threads; i++) {
		producers[i].random = (seed + i) * UINT64_C(0x9e3779b97f4a7c15) | 1;
		producers[i].operations = operations / threads;
		producers[i].timeout = calloc(operations / threads, sizeof(struct timeout));
		RACE_CHECK(producers[i].timeout != NULL);
		RACE_CHECK(pthread_create(&producers[i].thread, NULL, producer_main,
					  &producers[i]) == 0);
	}
	for (uint64_t i = 0; i < threads; i++)
		RACE_CHECK(pthread_join(producers[i].thread, NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, on_hand_back, NULL, TW_NEVER) == 0);
	all_account(producers, threads);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	for (uint64_t i = 0; i < threads; i++)
		free(producers[i].timeout);
	free(producers);
	return 0;
}
