/* SPDX-License-Identifier: MIT */
/*
 * An executor of two threads, which run due timeouts in turn. The executor passes the timeouts on
 * by relaxed atomics, like code that ThreadSanitizer does not see. So any order comes from the
 * library.
 */
#ifndef POOL_H
#define POOL_H

#include "scene.h"

enum { POOL_THREADS = 2 };

struct pool_place {
	struct loose_handle handle;
	_Atomic(const struct tw_kind *) kind;
	_Atomic(void *) arg;
	atomic_int full;
};

struct pool {
	struct pool_place place[POOL_THREADS];
	pthread_t thread[POOL_THREADS];
	atomic_int turn;
	atomic_int held; /* while it is true, the pool runs nothing */
	atomic_int over;
};

static int pool_look(const atomic_int *what)
{
	return atomic_load_explicit(what, memory_order_relaxed);
}

static void pool_set(atomic_int *what, int to)
{
	atomic_store_explicit(what, to, memory_order_relaxed);
}

static inline void pool_run(struct pool_place *place)
{
	struct tw_due due = {
		.handle = loose_get(&place->handle),
		.kind = atomic_load_explicit(&place->kind, memory_order_relaxed),
		.arg = atomic_load_explicit(&place->arg, memory_order_relaxed),
	};

	pool_set(&place->full, 0);
	must(tw_due_run(&due) == 0);
}

struct pool_thread {
	struct pool *pool;
	struct pool_place *place;
};

static inline void *pool_body(void *argument)
{
	struct pool_thread own = *(struct pool_thread *)argument;

	free(argument);
	while (pool_look(&own.pool->over) == 0) {
		if (pool_look(&own.place->full) != 0 && pool_look(&own.pool->held) == 0)
			pool_run(own.place);
		else
			nap();
	}
	return NULL;
}

static inline void pool_begin(struct pool *pool)
{
	memset(pool, 0, sizeof *pool);
	for (int i = 0; i < POOL_THREADS; i++) {
		struct pool_thread *own = malloc(sizeof *own);

		*own = (struct pool_thread){pool, &pool->place[i]};
		pool->thread[i] = thread_begin(pool_body, own);
	}
}

static inline void pool_end(struct pool *pool)
{
	pool_set(&pool->over, 1);
	for (int i = 0; i < POOL_THREADS; i++)
		thread_end(pool->thread[i]);
}

/* Accepts one due timeout at a time, for the thread whose turn it is. */
static inline size_t pool_dispatch(void *context, const struct tw_due *due, size_t count)
{
	struct pool *pool = context;

	for (size_t i = 0; i < count; i++) {
		int turn = pool_look(&pool->turn);
		struct pool_place *place = &pool->place[turn];

		await(pool_look(&place->full) == 0);
		loose_put(&place->handle, due[i].handle);
		atomic_store_explicit(&place->kind, due[i].kind, memory_order_relaxed);
		atomic_store_explicit(&place->arg, due[i].arg, memory_order_relaxed);
		pool_set(&pool->turn, (turn + 1) % POOL_THREADS);
		pool_set(&place->full, 1);
	}
	return count;
}

#endif
