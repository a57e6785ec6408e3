/* SPDX-License-Identifier: MIT */
/*
 * Memory for tasks. Tasks come in chunks, which are never released. The chunks of a destroyed queue
 * are spare and serve later queues, no matter which allocator they came from.
 */
#include "retry/task.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct twi_stack spare; /* [atomic E42] */

/*
 * Disables cancellation inside the hook: if a thread were cancelled (pthread_cancel) there, the queue
 * would count its task for ever.
 */
static void *hook_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align)
{
	void *memory;
	int cancel_state;

	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	memory = allocator->allocate(allocator->context, bytes, align);
	(void)pthread_setcancelstate(cancel_state, NULL);
	return memory;
}

void *twi_retry_allocate(const struct tw_allocator *allocator, size_t bytes, size_t align)
{
	void *memory = allocator == NULL ? aligned_alloc(align, bytes)
					 : hook_allocate(allocator, bytes, align);

	if (((uintptr_t)memory & (align - 1)) != 0) {
		twi_retry_release(allocator, memory, bytes, align);
		memory = NULL;
	}
	if (memory != NULL)
		memset(memory, 0, bytes);
	return memory;
}

void twi_retry_release(const struct tw_allocator *allocator, void *memory, size_t bytes,
		       size_t align)
{
	int cancel_state;

	if (allocator == NULL) {
		free(memory);
		return;
	}
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	allocator->release(allocator->context, memory, bytes, align);
	(void)pthread_setcancelstate(cancel_state, NULL);
}

static struct twi_task_chunk *chunk_take(const struct tw_allocator *allocator)
{
	struct twi_link *link = twi_stack_pop(&spare);

	if (link != NULL)
		return TWI_CONTAINER_OF(link, struct twi_task_chunk, spare);
	return twi_retry_allocate(allocator, sizeof(struct twi_task_chunk), TWI_TASK_BYTES);
}

static void chunk_add(struct tw_retry *queue, struct twi_task_chunk *chunk)
{
	/* RELAXED: only the swap below uses this pointer, and the swap compares it again. */
	struct twi_task_chunk *first = twi_load_relaxed(&queue->chunks);

	/*
	 * RELAXED, the store: the swap below publishes the number with the chunk. RELAXED, the load:
	 * an older number is lower. All tasks that will be submitted in the chunk get this number
	 * or a higher one.
	 */
	twi_store_relaxed(&chunk->age_least, twi_load_relaxed(&queue->submitted));
	do {
		chunk->next = first;
		/* E41: pairs with the search for the oldest; publishes the chunk. */
	} while (!twi_cas_release(&queue->chunks, &first, chunk));
	for (unsigned i = 0; i < TWI_CHUNK_TASKS; i++)
		twi_stack_push(&queue->free, &chunk->task[i].free);
}

bool twi_retry_grow(struct tw_retry *queue, uint64_t tasks)
{
	for (uint64_t made = 0; made < tasks; made += TWI_CHUNK_TASKS) {
		struct twi_task_chunk *chunk = chunk_take(queue->allocator);

		if (chunk == NULL)
			return false;
		chunk_add(queue, chunk);
	}
	return true;
}

struct twi_task *twi_task_take(struct tw_retry *queue)
{
	struct twi_link *link;

	/*
	 * RELAXED: only tw_retry_destroy reads this count, and no thread may submit any more by
	 * then.
	 */
	(void)twi_fetch_add_relaxed(&queue->out, 1);
	while ((link = twi_stack_pop(&queue->free)) == NULL) {
		if (!twi_retry_grow(queue, 1)) {
			/* RELAXED: as above. */
			(void)twi_fetch_sub_relaxed(&queue->out, 1);
			return NULL;
		}
	}
	return TWI_CONTAINER_OF(link, struct twi_task, free);
}

void twi_task_give(struct twi_task *task)
{
	struct tw_retry *queue = task->queue;
	/* RELAXED: only the step is kept, and it changes only when a thread takes the task. */
	uint64_t word = twi_load_relaxed(&task->word);

	twi_tsan_release(&task->word);
	twi_tsan_release(&queue->out);
	/*
	 * E40: a thread that reads the state word by a handle must see the task's end, and all that
	 * its hook did.
	 */
	twi_store_release(&task->word, twi_task_step(word) | TWI_TASK_FREE);
	twi_stack_push(&queue->free, &task->free);
	/* E43: pairs with tw_retry_destroy. This is the last access to the queue. */
	(void)twi_fetch_sub_release(&queue->out, 1);
}

void twi_retry_shed(struct tw_retry *queue)
{
	/* RELAXED: no thread adds chunks any more. */
	struct twi_task_chunk *chunk = twi_load_relaxed(&queue->chunks);

	while (chunk != NULL) {
		struct twi_task_chunk *next = chunk->next;

		twi_stack_push(&spare, &chunk->spare);
		chunk = next;
	}
}
