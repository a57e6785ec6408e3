/* SPDX-License-Identifier: MIT */
/*
 * The oldest task of a queue, for the policy that drops it.
 *
 * Ages are numbers in the order of submission. Each chunk says below which age it has none: a bound
 * that stays right when tasks end, since all that come later are younger. So a look at one word for
 * each chunk finds where the oldest must be, and only chunks whose bound is out of date are looked
 * through; that brings the bound up to date.
 *
 * RELAXED, all: ages are looked at without order among each other; the compare-and-swap on the word
 * decides (E40), and a task that has gone on meanwhile is looked for anew. A task that is submitted while
 * somebody looks may count as younger than it is.
 *
 * Progress: lock-free: only another thread's step on the task repeats the search.
 */
#include "retry/task.h"

struct oldest {
	struct twi_task *task;
	uint64_t word;
	uint64_t age;
};

/* Looks through a chunk, notes a task older than the oldest so far, and raises the bound. */
static void chunk_search(struct tw_retry *queue, struct twi_task_chunk *chunk,
			 struct oldest *oldest)
{
	/* Before the tasks, so that what comes is younger. */
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
	struct twi_task_chunk *chunk = twi_load_acquire(&queue->chunks); /* E41 */
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

	/* There is one, since who looks has a task. First where the oldest should be: then that is all. */
	chunk_search(queue, chunk_least(queue), &oldest);
	chunk = twi_load_acquire(&queue->chunks); /* E41 */
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
