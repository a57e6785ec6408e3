/* SPDX-License-Identifier: MIT */
/*
 * A queue: its options, its limit of places, its creation and destruction.
 *
 * The limit `pending_limit` is the number of places. A submit takes a free place before any other
 * step that can fail. If there is none, and the policy drops the oldest task, the submit first
 * makes its task and then takes the oldest task's place. The thread that ends a task gives the
 * task's place back, exactly once. If a task takes the place of a dropped one, the count stays as
 * it is. So the count never exceeds the limit. A submit that finds no place does not change the
 * count, so it cannot make another submit fail.
 */
#include "base/sized.h"
#include "retry/task.h"

#include <errno.h>

enum { PENDING_DEFAULT = 1000 };

static const struct tw_retry_options defaults = {
	.size = sizeof defaults,
	.pending_limit = PENDING_DEFAULT,
};

int tw_retry_options_init(struct tw_retry_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, sizeof defaults, &defaults, sizeof defaults);
}

static int options_check(const struct tw_retry_options *options)
{
	int error = twi_size_check(options, options->size, sizeof *options, sizeof *options);

	if (error != 0)
		return error;
	if (options->flags != 0 || options->policy > TW_RETRY_DROP_OLDEST ||
	    options->pending_limit == 0 || options->pending_limit > TW_RETRY_PENDING_MAX ||
	    options->reserve > options->pending_limit)
		return -EINVAL;
	if (options->allocator != NULL &&
	    (options->allocator->allocate == NULL || options->allocator->release == NULL))
		return -EINVAL;
	return 0;
}

static void queue_release(struct tw_retry *queue)
{
	twi_retry_release(queue->allocator, queue, sizeof *queue, TWI_CACHE_LINE);
}

/* Returns a seed that very likely differs for each queue and each process. */
static uint64_t seed_make(const struct tw_retry *queue, int64_t now_ns)
{
	static _Atomic uint64_t made;
	/* RELAXED: each call must only get another number; an atomic addition makes it so. */
	uint64_t number = twi_fetch_add_relaxed(&made, 1);

	return ((uint64_t)(uintptr_t)queue + number) * UINT64_C(0x9e3779b97f4a7c15) +
	       (uint64_t)now_ns;
}

int tw_retry_create(struct tw_engine *engine, const struct tw_retry_options *options,
		    struct tw_retry **ret_retry)
{
	int error = options != NULL ? options_check(options) : 0;
	int state = tw_engine_state(engine);
	struct tw_retry *queue;

	if (ret_retry == NULL || error != 0)
		return ret_retry == NULL ? -EINVAL : error;
	if (state < 0)
		return state;
	if (options == NULL)
		options = &defaults;
	queue = twi_retry_allocate(options->allocator, sizeof *queue, TWI_CACHE_LINE);
	if (queue == NULL)
		return -ENOMEM;
	queue->engine = engine;
	queue->allocator = options->allocator;
	queue->seed = options->seed != 0 ? options->seed : seed_make(queue, tw_engine_now(engine));
	queue->pending_limit = options->pending_limit;
	queue->policy = options->policy;
	queue->fork_generation = tw_fork_generation();
	if (!twi_retry_grow(queue, options->reserve)) {
		twi_retry_shed(queue);
		queue_release(queue);
		return -ENOMEM;
	}
	*ret_retry = queue;
	return 0;
}

int tw_retry_destroy(struct tw_retry *retry)
{
	if (retry == NULL)
		return 0;
	/*
	 * E43: pairs with twi_task_give, a thread's last access to the queue. All accesses of other
	 * threads must come before the queue is freed.
	 */
	if (twi_load_acquire(&retry->out) != 0)
		return -EBUSY;
	twi_tsan_acquire(&retry->out);
	twi_retry_shed(retry);
	queue_release(retry);
	return 0;
}

bool twi_pending_take(struct tw_retry *queue)
{
	/* RELAXED, like all accesses to `pending`: it is a count, and publishes nothing. */
	uint32_t pending = twi_load_relaxed(&queue->pending);

	do {
		if (pending >= queue->pending_limit)
			return false;
		/* RELAXED: as above. */
	} while (!twi_cas_relaxed(&queue->pending, &pending, pending + 1));
	return true;
}

void twi_pending_give(struct tw_retry *queue)
{
	/* RELAXED: it is only a count. */
	(void)twi_fetch_sub_relaxed(&queue->pending, 1);
}

int64_t tw_retry_pending(struct tw_retry *retry)
{
	if (retry == NULL)
		return -EINVAL;
	if (twi_retry_of_parent(retry))
		return -ECHILD;
	/* RELAXED: it is only a count. */
	return (int64_t)twi_load_relaxed(&retry->pending);
}
