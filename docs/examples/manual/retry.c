/* SPDX-License-Identifier: MIT */
/* Delivers messages: tries each one until it works, or until its
 * attempts are used up. */
#include "check.h"

struct message {
	struct tw_retry_handle delivery;
	int works_at; /* the first attempt that succeeds */
	int attempts;
	int end;
};

static bool message_send(struct message *message)
{
	return ++message->attempts >= message->works_at;
}

static int deliver(struct tw_retry_handle self, void *arg,
		   uint64_t attempt)
{
	struct message *message = arg;

	(void)self, (void)attempt;
	return message_send(message) ? TW_RETRY_DONE
				     : TW_RETRY_AGAIN;
}

/* example: tw_retry_end_name */
/* The hook of a kind: runs once, however the delivery ended. */
static void on_ended(void *arg, enum tw_retry_end end,
		     uint64_t attempts)
{
	struct message *message = arg;

	message->end = (int)end;
	printf("%s after %" PRIu64 " attempts\n",
	       tw_retry_end_name(message->end), attempts);
}
/* end */

static const struct tw_retry_schedule delays =
	TW_RETRY_EXPONENTIAL(TW_S(1), TW_S(30), 200, 0);
static const struct tw_retry_kind delivery =
	TW_RETRY_KIND(deliver, on_ended, &delays, 5);

/* example: tw_retry_options_init tw_retry_create */
static int deliveries_open(struct tw_engine *engine,
			   struct tw_retry **ret_queue)
{
	struct tw_retry_options options;
	int code = tw_retry_options_init(&options, sizeof(options));

	if (code < 0)
		return code;
	options.pending_limit = 10000;
	options.policy = TW_RETRY_DROP_OLDEST;
	return tw_retry_create(engine, &options, ret_queue);
}
/* end */

/* example: tw_retry_submit tw_retry_submit_outcome_name */
/* The first attempt runs at once, on the engine's worker. */
static int message_deliver(struct tw_retry *queue,
			   struct message *message)
{
	int outcome = tw_retry_submit(queue, 0, &delivery, message,
				      &message->delivery);

	if (outcome != TW_RETRY_SUBMIT_ACCEPTED)
		printf("delivery: %s\n",
		       tw_retry_submit_outcome_name(outcome));
	return outcome;
}
/* end */

/* example: tw_retry_submit_failed */
/* Tries it here; only if that fails, the message goes to the
 * queue. */
static int message_try(struct tw_retry *queue,
		       struct message *message)
{
	if (message_send(message))
		return 0;
	return tw_retry_submit_failed(queue, &delivery, message,
				      &message->delivery);
}
/* end */

static struct tw_retry_handle asked;

static int ask(struct tw_retry_handle self, void *arg,
	       uint64_t attempt)
{
	(void)arg, (void)attempt;
	asked = self;
	return TW_RETRY_PENDING;
}

/* example: tw_retry_complete */
/* Receives the answer to an attempt that has returned
 * TW_RETRY_PENDING. */
static void on_answer(struct tw_retry_handle attempt, bool accepted)
{
	int code = tw_retry_complete(
		attempt, accepted ? TW_RETRY_DONE : TW_RETRY_AGAIN);

	if (code == -ESTALE)
		puts("the delivery has ended before its answer");
}
/* end */

/* example: tw_retry_cancel tw_retry_cancel_outcome_name */
/* The message is no longer wanted. */
static void message_withdraw(struct message *message)
{
	int outcome = tw_retry_cancel(message->delivery);

	printf("withdrawn: %s\n",
	       tw_retry_cancel_outcome_name(outcome));
}
/* end */

/* example: tw_retry_pending */
static void deliveries_report(struct tw_retry *queue)
{
	int64_t pending = tw_retry_pending(queue);

	if (pending >= 0)
		printf("%" PRId64 " deliveries under way\n",
		       pending);
}
/* end */

/* example: tw_retry_delay */
/* Prints the first delays of a schedule, in seconds. */
static void schedule_print(const struct tw_retry_schedule *schedule)
{
	for (uint64_t number = 0; number < 5; number++) {
		int64_t delay_ns = tw_retry_delay(schedule, number);

		if (delay_ns < 0)
			break; /* -ERANGE: the schedule has ended */
		printf("%" PRId64 " s\n", delay_ns / TW_S(1));
	}
}
/* end */

static int freed;

static void request_free(void *request)
{
	free(request);
	freed++;
}

/* example: tw_retry_owns tw_keyed_owns */
/* The hand-back hook: releases arguments that belong to the
 * program. */
static void on_unexpired(void *context, struct tw_handle handle,
			 const struct tw_kind *kind, void *arg,
			 int64_t remaining_ns)
{
	(void)context, (void)handle, (void)remaining_ns;
	if (tw_retry_owns(kind) || tw_keyed_owns(kind))
		return; /* the task's own hook releases it */
	request_free(arg);
}
/* end */

/* example: tw_retry_destroy */
/* The stop of the engine ends all deliveries. */
static int deliveries_close(struct tw_engine *engine,
			    struct tw_retry *queue)
{
	int code = tw_engine_stop(engine, on_unexpired, NULL,
				  TW_NEVER);

	if (code == 0)
		code = tw_retry_destroy(queue);
	return code < 0 ? code : tw_engine_destroy(engine);
}
/* end */

static void on_late(struct tw_handle self, void *arg)
{
	(void)self;
	request_free(arg);
}

static const struct tw_kind late = TW_KIND(on_late, NULL);

static void deliveries_show(struct bench *bench,
			    struct tw_retry *queue)
{
	struct message second = {.works_at = 2},
		       third = {.works_at = 3},
		       never = {.works_at = 100};

	CHECK(message_deliver(queue, &second) == 0 &&
	      message_try(queue, &third) == 0);
	CHECK(message_deliver(queue, &never) == 0);
	deliveries_report(queue);
	for (int i = 0; i < 5; i++)
		bench_pass(bench, TW_S(1));
	CHECK(second.attempts == 2 &&
	      second.end == TW_RETRY_END_DONE);
	CHECK(third.attempts == 3 &&
	      third.end == TW_RETRY_END_DONE);
	CHECK(tw_retry_pending(queue) == 1);
	message_withdraw(&never);
	CHECK(never.end == TW_RETRY_END_CANCELLED &&
	      tw_retry_pending(queue) == 0);
}

static void answer_show(struct bench *bench, struct tw_retry *queue)
{
	static const struct tw_retry_kind question =
		TW_RETRY_KIND(ask, on_ended, &delays, 5);
	struct message message = {.end = -1};

	CHECK(tw_retry_submit(queue, 0, &question, &message,
			      NULL) == TW_RETRY_SUBMIT_ACCEPTED);
	bench_pass(bench, TW_MS(2));
	on_answer(asked, false);
	CHECK(message.end == -1);
	bench_pass(bench, TW_S(2));
	on_answer(asked, true);
	CHECK(message.end == TW_RETRY_END_DONE);
	on_answer(asked, true);
}

int main(void)
{
	struct bench bench = bench_open(bench_options());
	struct message waiting = {.works_at = 1};
	struct tw_retry *queue;

	CHECK(deliveries_open(bench.engine, &queue) == 0);
	schedule_print(&delays);
	deliveries_show(&bench, queue);
	answer_show(&bench, queue);
	CHECK(tw_retry_submit(queue, TW_HOURS(1), &delivery,
			      &waiting,
			      NULL) == TW_RETRY_SUBMIT_ACCEPTED);
	CHECK(tw_schedule(bench.engine, TW_HOURS(1), &late,
			  malloc(1), NULL) == 0);
	CHECK(deliveries_close(bench.engine, queue) == 0);
	CHECK(waiting.end == TW_RETRY_END_STOPPED && freed == 1);
	CHECK(tw_clock_destroy(bench.clock) == 0);
	return 0;
}
