/* SPDX-License-Identifier: MIT */
/*
 * Calls of other threads on a task by its handle: complete its attempt, or cancel it.
 *
 * A completion names a step. No step is ever used twice, so one compare-and-swap rejects a
 * completion that comes too late. A cancel names a generation. It reads the state word, then the
 * task's generation, then swaps the state word that it has read. No value of the state word ever
 * comes twice. So if the swap succeeds, the state word and the generation belong to the same task.
 */
#include "base/test_point.h"
#include "retry/task.h"

#include <errno.h>

static bool step_sane(uint64_t step)
{
	return step != 0 && twi_task_step(step) == step;
}

static int handle_check(struct tw_retry_handle handle)
{
	if (handle.task == NULL || (uintptr_t)handle.task % TWI_TASK_BYTES != 0 ||
	    !step_sane(handle.generation))
		return -EINVAL;
	return twi_task_of_parent(handle.task) ? -ECHILD : 0;
}

static bool result_right(int result)
{
	return result == TW_RETRY_DONE || result == TW_RETRY_AGAIN || result == TW_RETRY_GIVE_UP;
}

/*
 * Takes the attempt (the linearization point of the completion). If the task was PENDING, the
 * caller owns it now. Otherwise the result is left for the runner.
 */
static int attempt_take(struct twi_task *task, uint64_t attempt, int result)
{
	uint64_t word = twi_task_look(task);
	uint64_t next;

	do {
		if (twi_task_step(word) != attempt)
			return -ESTALE;
		if (twi_task_state(word) == TWI_TASK_PENDING)
			next = twi_task_to(word, TWI_TASK_OWNED);
		else if (twi_task_state(word) == TWI_TASK_RUNNING && twi_task_result(word) < 0)
			next = twi_task_with_result(word, result);
		else
			return -ESTALE;
	} while (!twi_task_swap(task, &word, next));
	return (int)twi_task_state(word);
}

int tw_retry_complete(struct tw_retry_handle handle, enum tw_retry_result result)
{
	int found = handle_check(handle);

	if (found != 0)
		return found;
	if (!step_sane(handle.attempt) || !result_right((int)result))
		return -EINVAL;
	found = attempt_take(handle.task, handle.attempt, (int)result);
	TWI_TEST_POINT("retry:completed");
	if (found == TWI_TASK_PENDING)
		twi_task_conclude(handle.task, (int)result);
	return found < 0 ? found : 0;
}

/*
 * Returns whether the task that a handle names has not ended. A task in STARTING does not count,
 * because it still belongs to its submitter alone.
 */
static bool task_lives(struct twi_task *task, uint64_t word, uint64_t generation)
{
	/*
	 * E40: the generation belongs to the same task as the state word, or to a later task in the
	 * same memory. If it is a later task's, the state word of the earlier task's end is
	 * visible, too, so the caller's swap fails.
	 */
	return twi_task_lives(word) && twi_load_acquire(&task->generation) == generation;
}

int tw_retry_cancel(struct tw_retry_handle handle)
{
	struct twi_task *task = handle.task;
	int error = handle_check(handle);
	uint64_t word, next;

	if (error != 0)
		return error;
	word = twi_task_look(task);
	do {
		if (!task_lives(task, word, handle.generation))
			return TW_RETRY_CANCEL_ENDED;
		TWI_TEST_POINT("retry:seen");
		next = twi_task_rests(word) ? twi_task_to(word, TWI_TASK_OWNED)
					    : word | TWI_TASK_STOP;
	} while (!twi_task_swap(task, &word, next));
	if (!twi_task_rests(word))
		return TW_RETRY_CANCEL_RUNNING;
	twi_task_end(task, TW_RETRY_END_CANCELLED);
	return TW_RETRY_CANCEL_DONE;
}
