/* SPDX-License-Identifier: MIT */
/*
 * tw_retry_submit. It makes a task with its timer, takes a place, and then lets the task wait. From
 * then on any thread may take the task. All steps that can reject the task come before. If an old
 * task is dropped to free a place, the old task's hook runs afterwards.
 *
 * If stop hands the timer back meanwhile, the timer's finaliser sets the flag gone. The submit
 * finds the flag in its last step, and fails as if it had been called after the stop.
 */
#include "base/sized.h"
#include "base/test_point.h"
#include "retry/task.h"

#include <errno.h>

struct order {
	struct tw_retry *queue;
	const struct tw_retry_kind *kind;
	void *arg;
	int64_t delay_ns;
	bool tried; /* the caller has already tried, so the task begins with a delay */
};

static int kind_check(const struct tw_retry_kind *kind)
{
	int error;

	if (kind == NULL || kind->size < sizeof *kind || kind->flags != 0 ||
	    kind->attempt == NULL || kind->time_max_ns > (uint64_t)INT64_MAX)
		return -EINVAL;
	error = twi_schedule_check(kind->schedule);
	if (error != 0)
		return error;
	if (kind->size > TWI_STRUCT_BYTES_MAX || !twi_tail_zero(kind, sizeof *kind, kind->size))
		return -E2BIG;
	return 0;
}

/*
 * Rejects or drops the new task. Called if the queue is full and its policy does not drop the
 * oldest task. Returns the error, or TW_RETRY_SUBMIT_DROPPED.
 */
static int submit_reject(const struct order *order, struct tw_retry_handle *ret_handle)
{
	int state;

	if (order->queue->policy == TW_RETRY_REJECT)
		return -EAGAIN;
	state = tw_engine_state(order->queue->engine);
	if (state < 0)
		return state;
	if (state >= TW_ENGINE_FAILED)
		return -ESHUTDOWN;
	if (ret_handle != NULL)
		*ret_handle = (struct tw_retry_handle){0};
	if (order->kind->ended != NULL)
		order->kind->ended(order->arg, TW_RETRY_END_DROPPED, 0);
	return TW_RETRY_SUBMIT_DROPPED;
}

/*
 * Sets up a free task for this submit: sets the step for the task's handle, and resets the fields
 * of the task that had the memory before.
 */
static void task_renew(struct twi_task *task, const struct order *order)
{
	/* RELAXED: no thread changes the state word of a free task. */
	uint64_t word = twi_task_next_step(twi_load_relaxed(&task->word), TWI_TASK_STARTING);

	task->queue = order->queue;
	task->kind = order->kind;
	task->arg = order->arg;
	task->attempts = 0;
	task->delays = 0;
	task->delay_ns = 0;
	/* RELAXED: see twi_task_of_parent. */
	twi_store_relaxed(&task->fork_generation, order->queue->fork_generation);
	task->begun_ns = order->kind->time_max_ns != 0 ? tw_engine_now(order->queue->engine) : 0;
	/*
	 * E40: a thread that finds this generation must see the end of the task that had the memory
	 * before.
	 */
	twi_store_release(&task->generation, twi_task_step(word));
	/*
	 * RELAXED, both accesses: later changes of the state word publish the age, and the numbers
	 * must only differ.
	 */
	twi_store_relaxed(&task->age, twi_fetch_add_relaxed(&order->queue->submitted, 1));
	/* E40: as above, for a thread that finds this step. */
	twi_store_release(&task->word, word);
}

/*
 * Takes back a task that never began. Cancels its timer if it has one. If the cancel comes too
 * late, the end of the timer frees the task.
 */
static void task_unmake(struct twi_task *task)
{
	uint64_t word = twi_task_look(task);

	if ((word & TWI_TASK_GONE) == 0 && tw_cancel(twi_task_timer(task)) != TW_CANCEL_DONE)
		while ((word & TWI_TASK_GONE) == 0)
			if (twi_task_swap(task, &word, twi_task_to(word, TWI_TASK_ABANDONED)))
				return;
	twi_task_give(task);
}

/*
 * Lets the task wait (the linearization point of the submit). Only the engine's stop can make this
 * fail. The handle is written before the swap, because afterwards the task may be run, dropped or
 * cancelled, and its hook may free the memory of the handle. If stop came first, the submit fails
 * and restores the old handle.
 */
static bool task_begin(struct twi_task *task, struct tw_retry_handle *ret_handle)
{
	/* RELAXED: no other thread gives this task another generation before the swap. */
	struct tw_retry_handle handle = {.task = task,
					 .generation = twi_load_relaxed(&task->generation)};
	uint64_t word = twi_task_look(task);
	struct tw_retry_handle before;

	if ((word & TWI_TASK_GONE) != 0)
		return false;
	if (ret_handle == NULL)
		return twi_task_swap(task, &word, twi_task_to(word, TWI_TASK_WAITING));
	before = *ret_handle;
	*ret_handle = handle;
	if (twi_task_swap(task, &word, twi_task_to(word, TWI_TASK_WAITING)))
		return true;
	*ret_handle = before;
	return false;
}

/* Makes a task with its timer, or returns the error that rejected it. */
static int task_make(const struct order *order, struct twi_task **ret_task)
{
	struct twi_task *task = twi_task_take(order->queue);
	int error;

	if (task == NULL)
		return -ENOMEM;
	task_renew(task, order);
	error = twi_timer_make(task);
	if (error == 0)
		*ret_task = task;
	else
		twi_task_give(task);
	return error;
}

/*
 * Takes a free place, or the place of the oldest task. If a task ends at this moment, the first
 * look may come before its place is free, and the search may come after its end and find no task.
 * So there must be a second look at the free places.
 */
static bool place_take(struct tw_retry *queue, struct twi_task **ret_victim)
{
	if (twi_pending_take(queue))
		return true;
	*ret_victim = twi_retry_evict(queue);
	TWI_TEST_POINT("retry:sought");
	return *ret_victim != NULL || twi_pending_take(queue);
}

/*
 * Submits a task. `placed`: the caller has taken a place for it. Otherwise this function takes one,
 * if necessary that of the oldest task.
 */
static int task_submit(const struct order *order, bool placed, struct tw_retry_handle *ret_handle)
{
	struct twi_task *task, *victim = NULL;
	int64_t delay_ns = order->delay_ns;
	struct tw_handle timer;
	int error = task_make(order, &task);

	if (error != 0) {
		if (placed)
			twi_pending_give(order->queue);
		return error;
	}
	if (!placed && !place_take(order->queue, &victim)) {
		task_unmake(task);
		return -EAGAIN;
	}
	if (order->tried)
		delay_ns = twi_task_wait_ns(task);
	timer = twi_task_timer(task);
	TWI_TEST_POINT("retry:begin");
	if (task_begin(task, ret_handle)) {
		/*
		 * The task may be in any state by now, but `timer` still names the timer that it
		 * began with.
		 */
		(void)tw_reschedule(timer, delay_ns);
	} else {
		task_unmake(task);
		twi_pending_give(order->queue);
		error = -ESHUTDOWN;
	}
	if (victim != NULL)
		twi_task_end_evicted(victim);
	return error;
}

static int submit(const struct order *order, struct tw_retry_handle *ret_handle)
{
	int error = order->queue == NULL ? -EINVAL : kind_check(order->kind);
	bool placed;

	if (error != 0)
		return error;
	if (order->delay_ns == INT64_MIN)
		return -ERANGE;
	if (twi_retry_of_parent(order->queue))
		return -ECHILD;
	placed = twi_pending_take(order->queue);
	if (!placed && order->queue->policy != TW_RETRY_DROP_OLDEST)
		return submit_reject(order, ret_handle);
	return task_submit(order, placed, ret_handle);
}

int tw_retry_submit(struct tw_retry *retry, int64_t delay_ns, const struct tw_retry_kind *kind,
		    void *arg, struct tw_retry_handle *ret_handle)
{
	const struct order order = {retry, kind, arg, delay_ns, false};

	return submit(&order, ret_handle);
}

int tw_retry_submit_failed(struct tw_retry *retry, const struct tw_retry_kind *kind, void *arg,
			   struct tw_retry_handle *ret_handle)
{
	const struct order order = {retry, kind, arg, 0, true};

	return submit(&order, ret_handle);
}
