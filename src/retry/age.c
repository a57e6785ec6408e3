/* SPDX-License-Identifier: MIT */
/*
 * The oldest task of a queue, for the policy that drops it.
 *
 * Ages are numbers in the order of submission. Each chunk has a lower bound for the numbers of its
 * tasks. The bound stays valid when tasks end, because all later tasks have higher numbers. So
 * reading one number of each chunk (age_least) shows which chunk may have the oldest task. The
 * search goes through other chunks only if their bounds are out of date, and then brings them up to
 * date.
 *
 * RELAXED, all: ages need no order among each other, because the compare-and-swap on the task's
 * state word decides (E40). If the task has changed meanwhile, the search starts again. If a task
 * is submitted during a search, it may count as younger than it is.
 *
 * Progress: lock-free. A search repeats only if another thread has made a step on the task that the
 * search found.
 */
#include "retry/task.h"

struct oldest {
	struct twi_task *task;
	uint64_t word;
	uint64_t age;
};

/*
 * Searches a chunk for a task that is older than the oldest so far, and raises the chunk's bound.
 */
static void chunk_search(struct tw_retry *queue, struct twi_task_chunk *chunk,
			 struct oldest *oldest)
{
	/*
	 * Must be read before the tasks. Then all tasks that are submitted later have this age or a
	 * higher one.
	 */
	uint64_t least = twi_load_relaxed(&queue->submitted);

	for (unsigned i = 0; i < TWI_CHUNK_TASKS; i++) {
		struct twi_task *task = &chunk->task[i];
		uint64_t word = twi_task_look(task);
		uint64_t age = twi_load_relaxed(&task->age);

		if (twi_task_state(word) == TWI_TASK_FREE)
			continue;
		if (age < least)
			least = age;
		if (twi_task_rests(word) && age < oldest->age)
			*oldest = (struct oldest){task, word, age};
	}
	twi_store_relaxed(&chunk->age_least, least);
}

static struct twi_task_chunk *chunk_least(struct tw_retry *queue)
{
	/* E41: pairs with chunk_add. */
	struct twi_task_chunk *chunk = twi_load_acquire(&queue->chunks);
	struct twi_task_chunk *least = chunk;

	for (; chunk != NULL; chunk = chunk->next)
		if (twi_load_relaxed(&chunk->age_least) < twi_load_relaxed(&least->age_least))
			least = chunk;
	return least;
}

static struct oldest search(struct tw_retry *queue)
{
	struct oldest oldest = {.age = UINT64_MAX};
	struct twi_task_chunk *chunk;

	/*
	 * There is a chunk, because the caller has a task. Looks first at the chunk that should
	 * have the oldest task. If the task is there, the loop below searches other chunks only if
	 * their bounds are out of date.
	 */
	chunk_search(queue, chunk_least(queue), &oldest);
	chunk = twi_load_acquire(&queue->chunks); /* E41: pairs with chunk_add */
	for (; chunk != NULL; chunk = chunk->next) {
		if (twi_load_relaxed(&chunk->age_least) < oldest.age)
			chunk_search(queue, chunk, &oldest);
	}
	return oldest;
}

struct twi_task *twi_retry_evict(struct tw_retry *queue)
{
	struct oldest oldest;

	do {
		oldest = search(queue);
		if (oldest.task == NULL)
			return NULL;
	} while (!twi_task_swap(oldest.task, &oldest.word,
				twi_task_to(oldest.word, TWI_TASK_OWNED)));
	return oldest.task;
}
