/* SPDX-License-Identifier: MIT */
/*
 * A hand-written thread pool as an executor: a bounded queue under a mutex, and three threads. If
 * the queue is full, the engine offers the timeout again at the next tick. Until then the timeout
 * can be cancelled.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <tickwheel.h>
#include <unistd.h>

enum { ROOM = 16, THREADS = 3, JOBS = 200 };

struct pool {
	pthread_mutex_t mutex;
	pthread_cond_t filled;
	struct tw_due due[ROOM]; /* a ring */
	size_t first, count;
	bool closed;
	pthread_t thread[THREADS];
};

/* The dispatch hook, which runs on the worker: copies as many timeouts as fit, and never waits for
 * space. */
static size_t pool_take(void *context, const struct tw_due *due, size_t count)
{
	struct pool *pool = context;
	size_t taken = 0;

	pthread_mutex_lock(&pool->mutex);
	for (; taken < count && pool->count < ROOM; taken++)
		pool->due[(pool->first + pool->count++) % ROOM] = due[taken];
	pthread_mutex_unlock(&pool->mutex);
	if (taken > 0)
		pthread_cond_broadcast(&pool->filled);
	return taken;
}

/* Waits for a timeout. Returns false if the pool is closed and its queue is empty. */
static bool pool_next(struct pool *pool, struct tw_due *ret)
{
	bool some;

	pthread_mutex_lock(&pool->mutex);
	while (pool->count == 0 && !pool->closed)
		pthread_cond_wait(&pool->filled, &pool->mutex);
	some = pool->count > 0;
	if (some) {
		*ret = pool->due[pool->first];
		pool->first = (pool->first + 1) % ROOM;
		pool->count--;
	}
	pthread_mutex_unlock(&pool->mutex);
	return some;
}

/* Runs each accepted timeout once. */
static void *pool_main(void *context)
{
	struct tw_due due;

	while (pool_next(context, &due))
		tw_due_run(&due);
	return NULL;
}

static bool pool_open(struct pool *pool)
{
	for (int i = 0; i < THREADS; i++) {
		if (pthread_create(&pool->thread[i], NULL, pool_main, pool) != 0)
			return false;
	}
	return true;
}

/* Must be called after the stop of the engines, because a stop needs the pool's threads. */
static void pool_close(struct pool *pool)
{
	pthread_mutex_lock(&pool->mutex);
	pool->closed = true;
	pthread_mutex_unlock(&pool->mutex);
	pthread_cond_broadcast(&pool->filled);
	for (int i = 0; i < THREADS; i++)
		pthread_join(pool->thread[i], NULL);
}

static atomic_int done;
static atomic_bool beat;

/* Blocks. On the worker this would delay all other timeouts. */
static void on_job(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	usleep(1000);
	atomic_fetch_add(&done, 1);
}

/* A callback so short that handing it over would cost more. Therefore it runs on the worker. */
static void on_beat(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_store(&beat, true);
}

static const struct tw_kind job = TW_KIND(on_job, NULL);
static const struct tw_kind heartbeat = TW_KIND_INLINE(on_beat, NULL);

static int jobs_run(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof stats};

	for (int i = 0; i < JOBS; i++) {
		if (tw_schedule(engine, 0, &job, NULL, NULL) != 0)
			return 1;
	}
	if (tw_schedule(engine, 0, &heartbeat, NULL, NULL) != 0)
		return 1;
	while (atomic_load(&done) < JOBS || !atomic_load(&beat))
		usleep(1000);
	if (tw_stats_get(engine, &stats) != 0 || stats.executor_rejected == 0)
		return 1;
	printf("%d jobs done, %s rejected, none lost\n", atomic_load(&done),
	       stats.executor_rejected > 0 ? "some" : "none");
	return 0;
}

int main(void)
{
	static struct pool pool = {.mutex = PTHREAD_MUTEX_INITIALIZER,
				   .filled = PTHREAD_COND_INITIALIZER};
	struct tw_options options;
	struct tw_engine *engine;
	int result;

	tw_options_init(&options, sizeof options);
	options.dispatch = pool_take;
	options.dispatch_context = &pool;
	options.rejection = TW_REJECTION_REQUEUE;
	if (!pool_open(&pool) || tw_engine_create(&options, &engine) != 0)
		return 1;
	result = jobs_run(engine);
	result |= tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	result |= tw_engine_destroy(engine);
	pool_close(&pool);
	return result;
}
