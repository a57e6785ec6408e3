/* SPDX-License-Identifier: MIT */
/*
 * A thread stops while it holds a task of a queue of retries, or is about to take one. Meanwhile
 * the engine is stopped, the task is cancelled, or its timer expires. No other thread may wait for
 * the stopped thread. When it continues, it must find the changes, and the task must end once, as
 * the calls reported.
 *
 * Seen to fail with these defects, each at its point:
 * - a hand-back ends a task that another thread owns;
 * - a task is freed although its timer can still expire or be handed back;
 * - submit, or a completion, does not check `gone`;
 * - `gone` is cleared after the new timer was created, or is not set by a timer that expires;
 * - `stop` is not checked, or is not checked if there is no timer;
 * - the timer gets its deadline before its task is in the state WAITING;
 * - a submit looks for a place only once.
 */
#include "layer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { HOARD = 100000 };

static struct tw_retry *queue;

struct task {
	struct tw_retry_handle handle, self;
	int result;
	unsigned attempts;
	_Atomic unsigned ended;
	_Atomic int end;
};

static struct task first, second;

static void on_nothing(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind nothing_kind = TW_KIND(on_nothing, NULL);

static struct tw_handle *hoarded;
static size_t hoarded_count;
static bool gives_back;

static void hoard_back(void)
{
	while (hoarded_count > 0)
		RACE_CHECK(tw_cancel(hoarded[--hoarded_count]) == TW_CANCEL_DONE);
	RACE_CHECK(tw_memory_cap_set(0) == 0);
}

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct task *task = arg;

	task->self = self;
	RACE_CHECK(attempt == ++task->attempts && task->ended == 0);
	if (gives_back)
		hoard_back();
	return task->result;
}

static void on_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct task *task = arg;

	RACE_CHECK(attempts == task->attempts);
	atomic_store(&task->end, (int)end);
	RACE_CHECK(atomic_fetch_add(&task->ended, 1) == 0);
}

static const int64_t delays[] = {1000 * (int64_t)TICK_NS, 1000 * (int64_t)TICK_NS};
static const struct tw_retry_schedule schedule = TW_RETRY_TABLE(delays);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 0);

static void scene_open(bool dispatching)
{
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	gives_back = false;
	layer_open(dispatching);
	RACE_CHECK(tw_retry_create(engine, NULL, &queue) == 0);
}

/* Opens a queue of one place, which drops the oldest task when it is full. */
static void narrow_open(bool dispatching)
{
	struct tw_retry_options options;

	scene_open(dispatching);
	RACE_CHECK(tw_retry_destroy(queue) == 0);
	RACE_CHECK(tw_retry_options_init(&options, sizeof options) == 0);
	options.pending_limit = 1;
	options.policy = TW_RETRY_DROP_OLDEST;
	RACE_CHECK(tw_retry_create(engine, &options, &queue) == 0);
}

/* Checks that all tasks are free: each was given back once. */
static void scene_close(void)
{
	stop();
	RACE_CHECK(tw_retry_pending(queue) == 0);
	RACE_CHECK(tw_retry_destroy(queue) == 0);
	layer_close();
}

static void submit(struct task *task, int result, int64_t delay_ns)
{
	task->result = result;
	RACE_CHECK(tw_retry_submit(queue, delay_ns, &kind, task, &task->handle) == 0);
}

static void ended_as(struct task *task, enum tw_retry_end end)
{
	RACE_CHECK(task->ended == 1 && task->end == (int)end);
}

static int call_submit(void)
{
	return tw_retry_submit(queue, 1, &kind, &first, NULL);
}

static int call_submit_second(void)
{
	return tw_retry_submit(queue, 1, &kind, &second, &second.handle);
}

static int call_done(void)
{
	return tw_retry_complete(first.self, TW_RETRY_DONE);
}

static int call_again(void)
{
	return tw_retry_complete(first.self, TW_RETRY_AGAIN);
}

static int call_cancel(void)
{
	return tw_retry_cancel(first.handle);
}

static int call_run(void)
{
	return tw_due_run(&due);
}

/*
 * Stops a submit while the timer is handed back, before the task waits. The submit must be
 * rejected.
 */
static void submit_against_stop(void)
{
	struct victim victim;

	scene_open(false);
	RACE_CHECK(tw_engine_start(engine) == 0);
	victim_stop(&victim, "retry:begin", call_submit);
	stop();
	victim_go_on(&victim, -ESHUTDOWN);
	RACE_CHECK(first.ended == 0 && first.attempts == 0);
	scene_close();
}

static void open_pending(struct victim *victim, const char *point)
{
	scene_open(false);
	submit(&first, TW_RETRY_PENDING, 1);
	advance(1);
	RACE_CHECK(first.attempts == 1);
	victim_stop(victim, point, call_again);
}

/*
 * Stops a completion during a stop of the engine. The stop does not wait for the completion, and
 * finds no task to end. So the completion must end its task.
 */
static void completion_against_stop(const char *point)
{
	struct victim victim;

	open_pending(&victim, point);
	stop();
	RACE_CHECK(first.ended == 0 && tw_retry_destroy(queue) == -EBUSY);
	victim_go_on(&victim, 0);
	ended_as(&first, TW_RETRY_END_STOPPED);
	scene_close();
}

static void completion_against_cancel(const char *point)
{
	struct victim victim;

	open_pending(&victim, point);
	RACE_CHECK(tw_retry_cancel(first.handle) == TW_RETRY_CANCEL_RUNNING);
	RACE_CHECK(tw_retry_complete(first.self, TW_RETRY_DONE) == -ESTALE);
	victim_go_on(&victim, 0);
	ended_as(&first, TW_RETRY_END_CANCELLED);
	scene_close();
}

/*
 * Stops the thread that sets a task's deadline. Meanwhile the task ends, and its memory becomes
 * another task. The thread must not touch that task's timer.
 */
static void arming_against_reuse(void)
{
	struct victim victim;

	open_pending(&victim, "retry:arming");
	advance(2000);
	RACE_CHECK(first.attempts == 1);
	RACE_CHECK(tw_retry_cancel(first.handle) == TW_RETRY_CANCEL_DONE);
	ended_as(&first, TW_RETRY_END_CANCELLED);
	submit(&second, TW_RETRY_DONE, 5000 * (int64_t)TICK_NS);
	RACE_CHECK(second.handle.task == first.handle.task);
	victim_go_on(&victim, 0);
	advance(4000);
	RACE_CHECK(second.attempts == 0);
	advance(1001);
	ended_as(&second, TW_RETRY_END_DONE);
	scene_close();
}

/*
 * Stops a cancel that has read that the task waits. Meanwhile an attempt runs and is pending. When
 * the cancel continues, it must end the task.
 */
static void cancel_against_attempt(void)
{
	struct victim victim;

	scene_open(false);
	submit(&first, TW_RETRY_PENDING, 1);
	victim_stop(&victim, "retry:seen", call_cancel);
	advance(1);
	RACE_CHECK(first.attempts == 1);
	victim_go_on(&victim, TW_RETRY_CANCEL_DONE);
	ended_as(&first, TW_RETRY_END_CANCELLED);
	RACE_CHECK(tw_retry_complete(first.self, TW_RETRY_DONE) == -ESTALE);
	scene_close();
}

/* Stops a cancel while the timer expires and finds the task owned. So the owner must free it. */
static void cancel_against_timer(void)
{
	struct victim victim;

	scene_open(false);
	submit(&first, TW_RETRY_DONE, 1);
	victim_stop(&victim, "retry:ending", call_cancel);
	advance(1);
	RACE_CHECK(first.attempts == 0 && first.ended == 0);
	victim_go_on(&victim, TW_RETRY_CANCEL_DONE);
	ended_as(&first, TW_RETRY_END_CANCELLED);
	RACE_CHECK(tw_retry_destroy(queue) == 0);
	RACE_CHECK(tw_retry_create(engine, NULL, &queue) == 0);
	scene_close();
}

/* Opens with the timer of the first task at an executor. */
static void open_dispatched(int result)
{
	scene_open(true);
	submit(&first, result, 1);
	advance(1);
	RACE_CHECK(dues == 1);
}

/*
 * Stops the owner of an ended task. An executor has the task's timer, and runs it before, or after,
 * the owner leaves the task.
 */
static void leaving_against_timer(bool before)
{
	struct victim victim;

	open_dispatched(TW_RETRY_DONE);
	victim_stop(&victim, "retry:leaving", call_cancel);
	ended_as(&first, TW_RETRY_END_CANCELLED);
	if (before)
		RACE_CHECK(tw_due_run(&due) == 0);
	victim_go_on(&victim, TW_RETRY_CANCEL_DONE);
	RACE_CHECK(tw_retry_destroy(queue) == (before ? 0 : -EBUSY));
	if (!before) {
		RACE_CHECK(tw_due_run(&due) == 0);
		RACE_CHECK(tw_retry_destroy(queue) == 0);
	}
	RACE_CHECK(first.attempts == 0);
	RACE_CHECK(tw_retry_create(engine, NULL, &queue) == 0);
	scene_close();
}

static void hoard_all(void)
{
	RACE_CHECK(tw_memory_cap_set(1) == 0);
	while (hoarded_count < HOARD &&
	       tw_schedule(engine, TW_NEVER, &nothing_kind, NULL, &hoarded[hoarded_count]) == 0)
		hoarded_count++;
	RACE_CHECK(hoarded_count < HOARD);
}

/*
 * Runs an attempt of a task that has no timer for its next attempt, because the memory is used up.
 * Stop begins, and memory is given back. Then the attempt's thread creates the timer, and stop
 * hands it back at once.
 */
static void renewal_against_stop(int result)
{
	struct victim victim;

	open_dispatched(result);
	hoard_all();
	gives_back = true;
	victim_stop(&victim, "retry:renewed", call_run);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, 0) == -ETIMEDOUT);
	while (tw_engine_pending(engine) > 0)
		nap();
	victim_go_on(&victim, 0);
	ended_as(&first, TW_RETRY_END_STOPPED);
	scene_close();
}

/*
 * Does the same with a cancel instead of a stop. The cancel reports that no further attempt comes,
 * so it must end the task.
 */
static void renewal_against_cancel(int result)
{
	struct victim victim;

	open_dispatched(result);
	hoard_all();
	victim_stop(&victim, "retry:renewed", call_run);
	RACE_CHECK(tw_retry_cancel(first.handle) == TW_RETRY_CANCEL_RUNNING);
	victim_go_on(&victim, 0);
	ended_as(&first, TW_RETRY_END_CANCELLED);
	hoard_back();
	scene_close();
}

static void narrow_pending(void)
{
	narrow_open(false);
	submit(&first, TW_RETRY_PENDING, 1);
	advance(1);
	RACE_CHECK(first.attempts == 1);
}

/*
 * Stops a completion. A task that a completion owns must not be dropped. If there is no other task,
 * the submit is rejected.
 */
static void completion_against_drop(void)
{
	struct victim victim;

	narrow_pending();
	victim_stop(&victim, "retry:completed", call_done);
	RACE_CHECK(call_submit_second() == -EAGAIN);
	RACE_CHECK(first.ended == 0 && second.ended == 0);
	victim_go_on(&victim, 0);
	ended_as(&first, TW_RETRY_END_DONE);
	RACE_CHECK(call_submit_second() == 0);
	advance(1);
	RACE_CHECK(second.attempts == 1);
	scene_close();
}

/* Does the reverse: a task that is being dropped must not be completed any more. */
static void drop_against_completion(void)
{
	struct victim victim;

	narrow_pending();
	victim_stop(&victim, "retry:sought", call_submit_second);
	RACE_CHECK(tw_retry_complete(first.self, TW_RETRY_DONE) == -ESTALE);
	RACE_CHECK(tw_retry_cancel(first.handle) == TW_RETRY_CANCEL_RUNNING);
	RACE_CHECK(tw_retry_pending(queue) == 1 && first.ended == 0);
	victim_go_on(&victim, 0);
	ended_as(&first, TW_RETRY_END_DROPPED);
	advance(1);
	ended_as(&second, TW_RETRY_END_DONE);
	scene_close();
}

/*
 * Stops a drop during a stop of the engine. The stop must end neither the task that is being
 * dropped nor the new task, which does not exist yet.
 */
static void drop_against_stop(void)
{
	struct victim victim;

	narrow_pending();
	victim_stop(&victim, "retry:sought", call_submit_second);
	stop();
	RACE_CHECK(first.ended == 0 && tw_retry_destroy(queue) == -EBUSY);
	victim_go_on(&victim, -ESHUTDOWN);
	ended_as(&first, TW_RETRY_END_DROPPED);
	RACE_CHECK(second.ended == 0 && second.attempts == 0);
	scene_close();
}

/*
 * Stops a submit that found no task to drop, because the only task was about to end. When the
 * submit continues, that task's place is free.
 */
static void submit_against_end(void)
{
	struct victim owner, victim;

	narrow_pending();
	victim_stop(&owner, "retry:completed", call_done);
	victim_stop(&victim, "retry:sought", call_submit_second);
	victim_go_on(&owner, 0);
	ended_as(&first, TW_RETRY_END_DONE);
	victim_go_on(&victim, 0);
	advance(1);
	ended_as(&second, TW_RETRY_END_DONE);
	scene_close();
}

int main(void)
{
	race_watchdog(60);
	hoarded = calloc(HOARD, sizeof *hoarded);
	RACE_CHECK(hoarded != NULL);
	submit_against_stop();
	completion_against_stop("retry:completed");
	completion_against_stop("retry:again");
	completion_against_cancel("retry:completed");
	completion_against_cancel("retry:again");
	arming_against_reuse();
	cancel_against_attempt();
	cancel_against_timer();
	leaving_against_timer(true);
	leaving_against_timer(false);
	renewal_against_stop(TW_RETRY_AGAIN);
	renewal_against_stop(TW_RETRY_PENDING);
	renewal_against_cancel(TW_RETRY_AGAIN);
	renewal_against_cancel(TW_RETRY_PENDING);
	completion_against_drop();
	drop_against_completion();
	drop_against_stop();
	submit_against_end();
	free(hoarded);
	return 0;
}
