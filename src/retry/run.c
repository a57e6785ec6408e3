/* SPDX-License-Identifier: MIT */
/*
 * The life of a task from its first wait to its end (protocol: word.h): the steps when its timer
 * expires or is handed back, after an attempt, and at its end. The hook of the end runs once,
 * because one thread owns the end.
 */
#include "base/test_point.h"
#include "retry/task.h"

#include <errno.h>
#include <pthread.h>

int twi_timer_make(struct twi_task *task)
{
	struct tw_handle timer;
	int error = tw_schedule(task->queue->engine, TW_NEVER, &twi_timer_kind, task, &timer);

	if (error != 0)
		return error;
	/* RELAXED, both stores: the change of the state word publishes them. */
	twi_store_relaxed(&task->timer_node, timer.node);
	twi_store_relaxed(&task->timer_generation, timer.generation); /* RELAXED: as above */
	return 0;
}

/* Clears and sets flags of a task's state word. The caller must have the task. */
static void flag_change(struct twi_task *task, uint64_t clear, uint64_t set)
{
	uint64_t word = twi_task_look(task);

	while (!twi_task_swap(task, &word, (word & ~clear) | set))
		;
}

/*
 * Makes another timer. The caller must have the task, and the old timer must be gone. Clears the
 * flag gone first, because the new timer may be handed back at once and set the flag again.
 */
static int timer_renew(struct twi_task *task)
{
	int error;

	flag_change(task, TWI_TASK_GONE, 0);
	error = twi_timer_make(task);
	TWI_TEST_POINT("retry:renewed");
	if (error != 0)
		flag_change(task, 0, TWI_TASK_GONE);
	return error;
}

/*
 * Returns how a task ends if there is no timer for it. If stop is set, a cancel has already
 * reported that no attempt will follow, so the task must end as cancelled.
 */
static enum tw_retry_end end_without_timer(uint64_t word, int error)
{
	if ((word & TWI_TASK_STOP) != 0)
		return TW_RETRY_END_CANCELLED;
	return error == -ENOMEM || error == -EAGAIN ? TW_RETRY_END_DROPPED : TW_RETRY_END_STOPPED;
}

/*
 * How an ended task is released. If its timer will still expire or be handed back, the timer's end
 * frees the task.
 */
struct leave {
	struct twi_task *task;
	bool timer_to_come;
};

static void task_leave(void *argument)
{
	struct leave *leave = argument;
	uint64_t word = twi_task_look(leave->task);

	TWI_TEST_POINT("retry:leaving");
	while (leave->timer_to_come && (word & TWI_TASK_GONE) == 0)
		if (twi_task_swap(leave->task, &word, twi_task_to(word, TWI_TASK_ABANDONED)))
			return;
	twi_task_give(leave->task);
}

static void task_finish(struct twi_task *task, enum tw_retry_end end)
{
	struct leave leave = {.task = task};

	TWI_TEST_POINT("retry:ending");
	/*
	 * The cancel must come before the hook. If it succeeds, the timer can no longer expire or
	 * be handed back.
	 */
	if ((twi_task_look(task) & TWI_TASK_GONE) == 0)
		leave.timer_to_come = tw_cancel(twi_task_timer(task)) != TW_CANCEL_DONE;
	pthread_cleanup_push(task_leave, &leave);
	if (task->kind->ended != NULL)
		task->kind->ended(task->arg, end, task->attempts);
	pthread_cleanup_pop(1);
}

void twi_task_end(struct twi_task *task, enum tw_retry_end end)
{
	twi_pending_give(task->queue);
	task_finish(task, end);
}

void twi_task_end_evicted(struct twi_task *task)
{
	task_finish(task, TW_RETRY_END_DROPPED);
}

/*
 * Steps from OWNED to WAITING, and sets the timer's deadline. If stop is set meanwhile, or there is
 * no timer, ends the task.
 */
static void task_wait(struct twi_task *task, int64_t wait_ns)
{
	uint64_t word = twi_task_look(task);
	struct tw_handle timer;

	do {
		int error = 0;

		if ((word & TWI_TASK_STOP) != 0) {
			twi_task_end(task, TW_RETRY_END_CANCELLED);
			return;
		}
		if ((word & TWI_TASK_GONE) != 0) {
			error = timer_renew(task);
			word = twi_task_look(task);
		}
		if (error != 0) {
			twi_task_end(task, end_without_timer(word, error));
			return;
		}
		timer = twi_task_timer(task);
		TWI_TEST_POINT("retry:again");
	} while ((word & (TWI_TASK_STOP | TWI_TASK_GONE)) != 0 ||
		 !twi_task_swap(task, &word, twi_task_to(word, TWI_TASK_WAITING)));
	TWI_TEST_POINT("retry:arming");
	/*
	 * If another thread has ended the task since, that thread has also cancelled this timer.
	 * Then the reschedule has no effect.
	 */
	(void)tw_reschedule(timer, wait_ns);
}

/* Tries again, unless the task was cancelled meanwhile or there is no further attempt. */
static void task_again(struct twi_task *task)
{
	bool cancelled = (twi_task_look(task) & TWI_TASK_STOP) != 0;
	int64_t wait_ns = cancelled ? -1 : twi_task_wait_ns(task);

	if (cancelled)
		twi_task_end(task, TW_RETRY_END_CANCELLED);
	else if (wait_ns < 0)
		twi_task_end(task, TW_RETRY_END_GIVEN_UP);
	else
		task_wait(task, wait_ns);
}

void twi_task_conclude(struct twi_task *task, int result)
{
	if (result == TW_RETRY_AGAIN)
		task_again(task);
	else if (result == TW_RETRY_DONE)
		twi_task_end(task, TW_RETRY_END_DONE);
	else
		twi_task_end(task, TW_RETRY_END_GIVEN_UP);
}

/*
 * Steps from RUNNING to PENDING, unless the task was completed or cancelled, or gets no timer.
 * Returns 1 if the step was made: no thread has the task now. Otherwise returns 0, or the error if
 * no timer could be made.
 */
static int task_pend(struct twi_task *task)
{
	uint64_t word = twi_task_look(task);

	while ((word & (TWI_TASK_STOP | TWI_TASK_RESULT_MASK)) == 0) {
		if ((word & TWI_TASK_GONE) == 0) {
			if (twi_task_swap(task, &word, twi_task_to(word, TWI_TASK_PENDING)))
				return 1;
		} else {
			int error = timer_renew(task);

			if (error != 0)
				return error;
			word = twi_task_look(task);
		}
	}
	return 0;
}

/*
 * Ends an attempt, for its runner. In a child that was forked during the attempt, does nothing,
 * because the task belongs to the parent.
 */
static void task_attempted(struct twi_task *task, int result)
{
	int pends;
	uint64_t word;

	if (twi_task_of_parent(task))
		return;
	pends = result == TW_RETRY_PENDING ? task_pend(task) : 0;
	if (pends > 0)
		return;
	word = twi_task_look(task);
	while (!twi_task_swap(task, &word, twi_task_to(word, TWI_TASK_OWNED)))
		;
	if (twi_task_result(word) >= 0)
		result = twi_task_result(word);
	if (result == TW_RETRY_PENDING)
		twi_task_end(task, end_without_timer(word, pends));
	else
		twi_task_conclude(task, result);
}

static void attempt_aborted(void *task)
{
	task_attempted(task, TW_RETRY_GIVE_UP);
}

/* Runs an attempt. The task is RUNNING and has no timer. */
static void task_run(struct twi_task *task, uint64_t step)
{
	/* RELAXED: this thread has acquired the generation with the task. */
	struct tw_retry_handle self = {task, twi_load_relaxed(&task->generation), step};
	int result;

	TWI_TEST_POINT("retry:running");
	if (twi_timer_make(task) != 0)
		flag_change(task, 0, TWI_TASK_GONE);
	task->attempts++;
	pthread_cleanup_push(attempt_aborted, task);
	result = task->kind->attempt(self, task->arg, task->attempts);
	pthread_cleanup_pop(0);
	task_attempted(task, result);
}

/*
 * Acts on a timer that has expired: begins the attempt if the task waits, or frees the task if it
 * is ABANDONED.
 */
static void timer_expired(struct twi_task *task)
{
	uint64_t word = twi_task_look(task);

	for (;;) {
		uint64_t next = twi_task_next_step(word, TWI_TASK_RUNNING);

		switch (twi_task_state(word)) {
		case TWI_TASK_WAITING:
			if (!twi_task_swap(task, &word, next))
				continue;
			task_run(task, twi_task_step(next));
			return;
		case TWI_TASK_OWNED:
			if (!twi_task_swap(task, &word, word | TWI_TASK_GONE))
				continue;
			return;
		default: /* ABANDONED */
			twi_task_give(task);
			return;
		}
	}
}

/*
 * Acts on a timer that has ended without an attempt: stop has handed it back, or an executor
 * rejected it and it was dropped.
 */
static void timer_lost(struct twi_task *task, enum tw_retry_end end)
{
	uint64_t word = twi_task_look(task);
	uint64_t next;

	do {
		if (twi_task_state(word) == TWI_TASK_ABANDONED) {
			twi_task_give(task);
			return;
		}
		next = (twi_task_rests(word) ? twi_task_to(word, TWI_TASK_OWNED) : word) |
		       TWI_TASK_GONE;
	} while (!twi_task_swap(task, &word, next));
	if (twi_task_rests(word))
		twi_task_end(task, end);
}

_Thread_local void *twi_timer_seen;

static void timer_done(void *task)
{
	twi_timer_seen = task;
}

static void on_timer(struct tw_handle self, void *task)
{
	(void)self;
	pthread_cleanup_push(timer_done, task);
	/*
	 * In a forked child the timer may belong to a task of the parent, which the child must not
	 * touch.
	 */
	if (!twi_task_of_parent(task))
		timer_expired(task);
	pthread_cleanup_pop(1);
}

static void on_timer_end(void *task, enum tw_end end)
{
	bool done = twi_timer_seen == task;

	twi_timer_seen = NULL;
	if (twi_task_of_parent(task))
		return;
	if (end == TW_END_UNEXPIRED)
		timer_lost(task, TW_RETRY_END_STOPPED);
	else if (end == TW_END_DROPPED)
		timer_lost(task, TW_RETRY_END_DROPPED);
	else if (end == TW_END_EXPIRED && !done)
		timer_expired(task);
}

const struct tw_kind twi_timer_kind = TW_KIND(on_timer, on_timer_end);

int tw_retry_owns(const struct tw_kind *kind)
{
	return kind == &twi_timer_kind;
}
