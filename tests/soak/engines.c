/* SPDX-License-Identifier: MIT */
/*
 * Two engines. One runs callbacks on its worker. The other hands them to executors with a short
 * queue, so that some callbacks are rejected and run on the worker.
 *
 * A stop races with threads that schedule and cancel; this race is part of the load. Only destroy
 * must wait until no thread is inside a call with the engine's pointer.
 */
#include "soak.h"

#include <stdio.h>

enum { EXECUTORS = 2, QUEUE = 256, DISPATCHING = 1 };

struct books books;
struct item items[SEATS][ITEMS], crowd_items[CROWD_MAX][CROWD_ITEMS];

static struct tw_engine *engines[ENGINES];
static pthread_rwlock_t engines_lock;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t filled;
	struct tw_due due[QUEUE];
	size_t first, count;
	bool closing;
	pthread_t thread[EXECUTORS];
} queue = {.lock = PTHREAD_MUTEX_INITIALIZER, .filled = PTHREAD_COND_INITIALIZER};

static size_t on_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t accepted = 0;

	(void)context;
	pthread_mutex_lock(&queue.lock);
	while (accepted < count && queue.count < QUEUE)
		queue.due[(queue.first + queue.count++) % QUEUE] = due[accepted++];
	pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
	return accepted;
}

/* Takes a due timeout. Returns false when the queue is closed and empty. */
static bool queue_take(struct tw_due *ret_due)
{
	bool some;

	pthread_mutex_lock(&queue.lock);
	while (queue.count == 0 && !queue.closing)
		pthread_cond_wait(&queue.filled, &queue.lock);
	some = queue.count > 0;
	if (some) {
		*ret_due = queue.due[queue.first];
		queue.first = (queue.first + 1) % QUEUE;
		queue.count--;
	}
	pthread_mutex_unlock(&queue.lock);
	return some;
}

static void *executor_main(void *argument)
{
	struct tw_due due;

	(void)argument;
	while (queue_take(&due))
		RACE_CHECK(tw_due_run(&due) == 0);
	return NULL;
}

static struct tw_engine *engine_make(uint32_t number)
{
	struct tw_engine *engine;
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.slots = 512;
	options.check = TW_CHECK_CHEAP;
	if (number == DISPATCHING)
		options.dispatch = on_dispatch;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	atomic_fetch_add(&books.engines, 1);
	return engine;
}

void engines_open(void)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	/*
	 * Writers come first, because otherwise a renewal would never get the lock: one of the
	 * seats always holds it.
	 */
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	pthread_rwlock_init(&engines_lock, &attributes);
	pthread_rwlockattr_destroy(&attributes);
	for (uint32_t number = 0; number < ENGINES; number++)
		engines[number] = engine_make(number);
	for (int i = 0; i < EXECUTORS; i++)
		RACE_CHECK(pthread_create(&queue.thread[i], NULL, executor_main, NULL) == 0);
}

void engines_hold(void)
{
	pthread_rwlock_rdlock(&engines_lock);
}

void engines_release(void)
{
	pthread_rwlock_unlock(&engines_lock);
}

struct tw_engine *engine_of(uint32_t number)
{
	return engines[number];
}

uint64_t engines_pending(void)
{
	uint64_t pending = 0;

	for (uint32_t number = 0; number < ENGINES; number++)
		pending += (uint64_t)tw_engine_pending(engines[number]);
	return pending;
}

/*
 * Checks a row of items. No thread works on the engine any more, so an item that is still pending
 * was lost.
 */
static void items_check(const struct item *first, size_t count, uint32_t number)
{
	for (size_t i = 0; i < count; i++)
		RACE_CHECK(atomic_load(&first[i].life) == LIFE_FREE || first[i].engine != number);
}

static void stats_check(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.pending == 0 && stats.check_failures == 0);
	RACE_CHECK(stats.scheduled == stats.expired + stats.cancelled + stats.unexpired);
}

static void engine_end(uint32_t number)
{
	RACE_CHECK(tw_engine_stop(engines[number], item_hand_back, NULL, TW_NEVER) == 0);
	pthread_rwlock_wrlock(&engines_lock);
	items_check(&items[0][0], (size_t)SEATS * ITEMS, number);
	items_check(&crowd_items[0][0], (size_t)CROWD_MAX * CROWD_ITEMS, number);
	stats_check(engines[number]);
	RACE_CHECK(tw_engine_destroy(engines[number]) == 0);
	engines[number] = NULL;
}

void engine_renew(uint32_t number)
{
	engine_end(number);
	engines[number] = engine_make(number);
	pthread_rwlock_unlock(&engines_lock);
}

void engines_close(void)
{
	for (uint32_t number = 0; number < ENGINES; number++) {
		engine_end(number);
		pthread_rwlock_unlock(&engines_lock);
	}
	pthread_mutex_lock(&queue.lock);
	queue.closing = true;
	pthread_cond_broadcast(&queue.filled);
	pthread_mutex_unlock(&queue.lock);
	for (int i = 0; i < EXECUTORS; i++)
		RACE_CHECK(pthread_join(queue.thread[i], NULL) == 0);
}
