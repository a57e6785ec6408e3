/* SPDX-License-Identifier: MIT */
/*
 * Races an attempt of a retry task against its completion, a cancel, a drop and a stop. Other
 * harnesses use a task's memory again, let a queue grow, and destroy a queue (E40, E41, E42, E43).
 *
 * Seen to fail with these defects:
 * - twi_task_swap() is relaxed, without acquire, without release, or a load and a store;
 * - twi_task_look() loads the state word relaxed;
 * - task_renew() stores `generation` or the state word relaxed, or task_lives() loads `generation`
 *   relaxed;
 * - twi_task_give() stores the state word relaxed;
 * - twi_stack_push() or twi_stack_pop() is relaxed, or does not change the counter;
 * - chunk_add() stores the list of chunks relaxed, or a reader loads it relaxed;
 * - twi_task_give() counts `out` down relaxed, which is its last access to the queue;
 * - a thread does not check the flag `gone`, so it relies on a timer that was handed back;
 * - task_leave() frees a task whose timer can still expire or be handed back.
 */
#include "retry/task.h"
#include "world.h"

#include <errno.h>

struct
try {
	struct tw_retry_handle handle;
	int result; /* the result of its first attempt; later attempts return done */
	unsigned attempts;
	unsigned ended[5];
};

static struct tw_retry *queue;
static struct try first, second, third;
static int told[MODEL_FIBERS];
static bool destroyed;

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct try *try = arg;

	(void)self;
	MODEL_CHECK(try->ended[0] + try->ended[1] + try->ended[2] + try->ended[3] + try->ended[4] ==
		    0);
	MODEL_CHECK(attempt == ++try->attempts);
	return attempt == 1 ? try->result : TW_RETRY_DONE;
}

static void on_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct try *try = arg;

	MODEL_CHECK(attempts == try->attempts);
	try->ended[end]++;
}

static const int64_t delays[] = {1};
static const struct tw_retry_schedule schedule = TW_RETRY_TABLE(delays);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 0);

static void open_queue(uint32_t limit)
{
	struct tw_retry_options options;

	world_open_layer();
	MODEL_CHECK(tw_retry_options_init(&options, sizeof options) == 0);
	options.pending_limit = limit;
	options.policy = TW_RETRY_DROP_OLDEST;
	options.seed = 1;
	options.allocator = &world_pages;
	MODEL_CHECK(tw_retry_create(world.engine, &options, &queue) == 0);
}

static void submit_to(struct try *try, int result, int64_t delay_ns)
{
	try->result = result;
	MODEL_CHECK(tw_retry_submit(queue, delay_ns, &kind, try, &try->handle) == 0);
}

static void open_due(int result)
{
	open_queue(1);
	submit_to(&first, result, 0);
	world_turn();
	world_time_goes_on();
}

static void open_pending(void)
{
	open_due(TW_RETRY_PENDING);
}

static void open_again(void)
{
	open_due(TW_RETRY_AGAIN);
}

static void open_done(void)
{
	open_due(TW_RETRY_DONE);
}

/* Opens with a task whose first attempt has run and waits for its completion. */
static void open_attempted(void)
{
	open_pending();
	world_turn();
	MODEL_CHECK(first.attempts == 1);
}

/* Returns the handle that the first attempt gets. */
static struct tw_retry_handle attempt_handle(void)
{
	struct tw_retry_handle self = first.handle;

	self.attempt = self.generation + TWI_TASK_STEP;
	return self;
}

static void complete(int result)
{
	int code = tw_retry_complete(attempt_handle(), (enum tw_retry_result)result);

	told[model_self()] = code;
	MODEL_CHECK(code == 0 || code == -ESTALE);
}

static void complete_again(void)
{
	complete(TW_RETRY_AGAIN);
}

static void complete_done(void)
{
	complete(TW_RETRY_DONE);
}

static void cancel(void)
{
	int outcome = tw_retry_cancel(first.handle);

	told[model_self()] = outcome;
	if (outcome == TW_RETRY_CANCEL_DONE)
		MODEL_CHECK(first.ended[TW_RETRY_END_CANCELLED] == 1);
	/*
	 * Whichever thread has ended the task, its hook has run, and this thread sees what the hook
	 * wrote.
	 */
	if (outcome == TW_RETRY_CANCEL_ENDED)
		MODEL_CHECK(first.ended[TW_RETRY_END_DONE] + first.ended[TW_RETRY_END_DROPPED] ==
			    1);
}

static void turn(void)
{
	world_turn();
}

static void submit_second(void)
{
	second.result = TW_RETRY_DONE;
	told[model_self()] = tw_retry_submit(queue, 1, &kind, &second, &second.handle);
}

static void turn_and_submit(void)
{
	turn();
	submit_second();
}

static void submit_third(void)
{
	third.result = TW_RETRY_DONE;
	told[model_self()] = tw_retry_submit(queue, 1, &kind, &third, &third.handle);
}

/* Returns the only end of a task. */
static enum tw_retry_end try_end(const struct try *try)
{
	int how = -1;

	for (int end = TW_RETRY_END_DONE; end <= TW_RETRY_END_STOPPED; end++) {
		MODEL_CHECK(try->ended[end] <= 1);
		if (try->ended[end] == 0)
			continue;
		MODEL_CHECK(how < 0);
		how = end;
	}
	MODEL_CHECK(how >= 0);
	return (enum tw_retry_end)how;
}

static void nothing_left(void)
{
	world_close();
	MODEL_CHECK(tw_retry_pending(queue) == 0);
	MODEL_CHECK(tw_retry_destroy(queue) == 0);
}

/* Checks that no attempt gave up. If the cancel reported success, the task was cancelled. */
static void one_end(void)
{
	nothing_left();
	if (told[2] == TW_RETRY_CANCEL_DONE)
		MODEL_CHECK(try_end(&first) == TW_RETRY_END_CANCELLED);
	MODEL_CHECK(try_end(&first) != TW_RETRY_END_GIVEN_UP);
}

static void told_the_end(void)
{
	nothing_left();
	MODEL_CHECK((told[2] == TW_RETRY_CANCEL_DONE) ==
		    (try_end(&first) == TW_RETRY_END_CANCELLED));
}

/* The next harnesses test the stack of links alone, without a queue around it. */
static struct twi_stack stack;
static struct twi_link one, two;
static struct twi_link *popped;

static void open_stack(void)
{
	twi_stack_push(&stack, &one);
	MODEL_CHECK(twi_stack_pop(&stack) == &one);
	twi_stack_push(&stack, &two);
}

static void push_one(void)
{
	twi_stack_push(&stack, &one);
}

static void pop(void)
{
	popped = twi_stack_pop(&stack);
}

/* Checks that no link is lost, and that none comes twice. */
static void both_links(void)
{
	struct twi_link *other = twi_stack_pop(&stack);

	MODEL_CHECK(popped != NULL && other != NULL && popped != other);
	MODEL_CHECK(twi_stack_pop(&stack) == NULL);
}

/*
 * Checks the end of the task. If the completion came too late, the task was stopped after one
 * attempt. If the completion came in time, there was another attempt, and the task ended as done.
 */
static void completed_as_told(void)
{
	for (int64_t ticks = 10; ticks <= 20; ticks += 10) {
		MODEL_CHECK(tw_clock_set(world.clock, WORLD_NOW_NS + ticks * WORLD_TICK_NS) == 0);
		world_turn();
	}
	MODEL_CHECK(first.attempts == (told[2] == 0 ? 2u : 1u));
	nothing_left();
	MODEL_CHECK(try_end(&first) == (told[2] == 0 ? TW_RETRY_END_DONE : TW_RETRY_END_STOPPED));
}

/*
 * Checks a completion against a cancel: if the completion reported success, the task ended as done.
 */
static void completed_or_cancelled(void)
{
	nothing_left();
	MODEL_CHECK((told[1] == 0) == (try_end(&first) == TW_RETRY_END_DONE));
	MODEL_CHECK((told[2] == TW_RETRY_CANCEL_DONE) ==
		    (try_end(&first) == TW_RETRY_END_CANCELLED));
}

/*
 * Checks the second task. It needs the first task's place, so the queue drops the first task. While
 * an attempt of the first task runs, the second task is rejected.
 */
static void second_as_told(void)
{
	nothing_left();
	MODEL_CHECK(told[2] == 0 || told[2] == -EAGAIN);
	if (told[2] != 0)
		MODEL_CHECK(second.ended[TW_RETRY_END_STOPPED] == 0 && second.attempts == 0);
	else
		MODEL_CHECK(try_end(&second) == TW_RETRY_END_STOPPED ||
			    try_end(&second) == TW_RETRY_END_DONE);
}

/*
 * Checks the first task. It ended as done if its attempt ran, or if the second task was rejected.
 * Otherwise it was dropped.
 */
static void done_or_dropped(void)
{
	second_as_told();
	if (told[2] != 0 || first.attempts != 0)
		MODEL_CHECK(try_end(&first) == TW_RETRY_END_DONE);
	else
		MODEL_CHECK(try_end(&first) == TW_RETRY_END_DROPPED);
}

/*
 * Checks a first task that waits for ever. It was dropped if the second task was accepted, and was
 * stopped otherwise.
 */
static void dropped_or_kept(void)
{
	second_as_told();
	MODEL_CHECK(try_end(&first) ==
		    (told[2] == 0 ? TW_RETRY_END_DROPPED : TW_RETRY_END_STOPPED));
}

static void both_submits_once(void)
{
	nothing_left();
	(void)try_end(&first);
	MODEL_CHECK(told[1] == 0 && told[2] == 0);
	(void)try_end(&second);
	(void)try_end(&third);
}

/*
 * Checks a first task that is completed or dropped. If it was completed, the second task took the
 * free place, or was rejected because the place was not free yet.
 */
static void completed_or_dropped(void)
{
	nothing_left();
	MODEL_CHECK((told[1] == 0) == (try_end(&first) == TW_RETRY_END_DONE));
	MODEL_CHECK((told[1] == -ESTALE) == (try_end(&first) == TW_RETRY_END_DROPPED));
	MODEL_CHECK(told[2] == 0 || (told[2] == -EAGAIN && told[1] == 0));
	if (told[2] == 0)
		MODEL_CHECK(try_end(&second) == TW_RETRY_END_STOPPED);
}

static void destroy_if_free(void)
{
	int code = tw_retry_destroy(queue);

	MODEL_CHECK(code == 0 || code == -EBUSY);
	destroyed = code == 0;
	if (destroyed)
		MODEL_CHECK(try_end(&first) == TW_RETRY_END_DONE);
}

static void destroyed_once(void)
{
	world_close();
	if (!destroyed)
		MODEL_CHECK(tw_retry_destroy(queue) == 0);
	(void)try_end(&first);
}

/* Opens for a stop, with another thread of the harness as the worker. */
static void open_working(void)
{
	open_attempted();
	world_life(TW_ENGINE_STARTING);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, NULL, NULL, TW_NEVER) == 0);
}

static void stopped_once(void)
{
	nothing_left();
	if (told[1] != 0)
		MODEL_CHECK(try_end(&first) == TW_RETRY_END_STOPPED);
	(void)try_end(&first);
}

/*
 * Checks a submit during a stop: it is accepted and the task is stopped, or it is rejected without
 * any effect.
 */
static void submitted_or_not(void)
{
	nothing_left();
	MODEL_CHECK(told[1] == 0 || told[1] == -ESHUTDOWN);
	MODEL_CHECK(second.ended[TW_RETRY_END_STOPPED] + second.ended[TW_RETRY_END_DONE] ==
		    (told[1] == 0 ? 1u : 0u));
}

static void open_working_idle(void)
{
	open_queue(4);
	submit_to(&first, TW_RETRY_PENDING, TW_NEVER);
	world_turn();
	world_life(TW_ENGINE_STARTING);
}

static void open_full(void)
{
	open_queue(2);
	submit_to(&first, TW_RETRY_PENDING, TW_NEVER);
	world_turn();
}

MODEL_HARNESS(retry_cancel,
	      .proves = "an attempt and a cancel: one end, which sees the attempt's writes",
	      .setup = open_pending, .thread = {turn, cancel}, .finish = one_end, .preemptions = 1,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_cancel_done,
	      .proves = "an attempt that succeeds and a cancel: a late cancel sees the end",
	      .setup = open_done, .thread = {turn, cancel}, .finish = told_the_end,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_reborn,
	      .proves = "a cancel that sees the task's next life sees the end of this one",
	      .setup = open_done, .thread = {turn, cancel, submit_second}, .finish = told_the_end,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_abandon, .proves = "a timer and a cancel: the last of them frees the task",
	      .setup = open_done, .thread = {turn_and_submit, cancel}, .finish = told_the_end,
	      .preemptions = 2, .weak = 0, .random_runs = 500);
MODEL_HARNESS(retry_stack, .proves = "a link that is pushed again is popped with its new successor",
	      .setup = open_stack, .thread = {push_one, pop}, .finish = both_links,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(retry_cancel_again,
	      .proves = "an attempt that asks for another one, and a cancel: one end",
	      .setup = open_again, .thread = {turn, cancel}, .finish = one_end, .preemptions = 1,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_complete,
	      .proves = "a completion counts, before and after the return of its callback",
	      .setup = open_pending, .thread = {turn, complete_again}, .finish = completed_as_told,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_complete_cancel, .proves = "of a completion and a cancel, one succeeds",
	      .setup = open_attempted, .thread = {complete_done, cancel},
	      .finish = completed_or_cancelled, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_reuse, .proves = "a submit may take the memory of a task that ends",
	      .setup = open_done, .thread = {turn, submit_second}, .finish = done_or_dropped,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_drop,
	      .proves = "an attempt and a submit that drops the oldest task: each task ends once",
	      .setup = open_pending, .thread = {turn, submit_second}, .finish = dropped_or_kept,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_complete_drop,
	      .proves = "of a completion and the drop of the oldest task, one succeeds",
	      .setup = open_attempted, .thread = {complete_done, submit_second},
	      .finish = completed_or_dropped, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_grow, .proves = "a queue may grow while a thread looks for the oldest task",
	      .setup = open_full, .thread = {submit_second, submit_third},
	      .finish = both_submits_once, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_destroy, .proves = "no thread touches a queue that was destroyed",
	      .setup = open_done, .thread = {turn, destroy_if_free}, .finish = destroyed_once,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(retry_stop_complete,
	      .proves = "stop and a completion that asks for another attempt: one end",
	      .setup = open_working, .thread = {complete_again, stop}, .worker = world_work,
	      .finish = stopped_once, .preemptions = 1, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(retry_stop_submit,
	      .proves = "stop and a submit: the task is stopped, or the call is rejected",
	      .setup = open_working_idle, .thread = {submit_second, stop}, .worker = world_work,
	      .finish = submitted_or_not, .preemptions = 1, .weak = 0, .random_runs = 1000);
