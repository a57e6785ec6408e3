/* SPDX-License-Identifier: MIT */
/* Timeouts of requests, connections and leases: how to schedule,
 * inspect, move and cancel them. */
#include "check.h"

struct request {
	struct tw_handle timeout;
	bool answered, late;
};

static void on_late(struct tw_handle self, void *arg)
{
	struct request *request = arg;

	(void)self;
	request->late = true;
}

/* example: tw_schedule */
static const struct tw_kind late = TW_KIND(on_late, NULL);

/* The answer must come within two seconds, or on_late runs. */
static int request_send(struct tw_engine *engine,
			struct request *request)
{
	int code = tw_schedule(engine, TW_S(2), &late, request,
			       &request->timeout);

	if (code < 0)
		fprintf(stderr, "not sent: %s\n",
			tw_strerror(code));
	return code;
}
/* end */

/* example: tw_schedule_at tw_engine_now */
/* A request has half a second for both steps together. */
static int steps_send(struct tw_engine *engine,
		      struct request steps[2])
{
	int64_t end_ns = tw_engine_now(engine) + TW_MS(500);
	int code = 0;

	for (int i = 0; i < 2 && code == 0; i++)
		code = tw_schedule_at(engine, end_ns, &late,
				      &steps[i], &steps[i].timeout);
	return code;
}
/* end */

/* example: tw_timeout_state */
static bool request_waits(const struct request *request)
{
	return tw_timeout_state(request->timeout) == TW_STATE_INIT;
}
/* end */

/* example: tw_timeout_get */
/* Returns how long the answer may still take; 0: it is too late. */
static int64_t request_left_ns(const struct request *request)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};

	if (tw_timeout_get(request->timeout, &timeout) < 0)
		return 0;
	if (timeout.state != TW_STATE_INIT)
		return 0;
	return timeout.deadline_ns - tw_engine_now(timeout.engine);
}
/* end */

/* example: tw_handle_is_set tw_handle_equal */
/* Returns whether the timeout belongs to this request. */
static bool request_has(const struct request *request,
			struct tw_handle timeout)
{
	return tw_handle_is_set(request->timeout) &&
	       tw_handle_equal(request->timeout, timeout);
}
/* end */

/* example: tw_timeout_text */
static void request_print(const struct request *request)
{
	char text[200];

	(void)tw_timeout_text(request->timeout, text, sizeof(text));
	printf("the answer: %s\n", text);
}
/* end */

/* example: tw_cancel */
static void request_answered(struct request *request)
{
	int outcome = tw_cancel(request->timeout);

	if (outcome == TW_CANCEL_DONE)
		request->answered = true; /* on_late will not run */
	else
		printf("the answer is ignored: %s\n",
		       tw_cancel_outcome_name(outcome));
}
/* end */

/* example: tw_cancel_wait */
/* Frees a request, even if on_late runs now. Not for callbacks: on
 * the worker the call does not wait. */
static int request_free(struct request *request)
{
	int outcome = tw_cancel_wait(request->timeout, TW_S(1));

	if (outcome < 0)
		return outcome; /* -ETIMEDOUT: on_late runs */
	free(request);
	return 0;
}
/* end */

/* example: tw_reschedule */
/* A packet has come: the 30 s until the next one begin anew. */
static bool connection_packet(struct tw_handle idle)
{
	int outcome = tw_reschedule(idle, TW_S(30));

	if (outcome < 0)
		fprintf(stderr, "idle timeout: %s\n",
			tw_strerror(outcome));
	/* Otherwise on_late closes it, or has closed it. */
	return outcome == TW_RESCHEDULE_DONE;
}
/* end */

/* example: tw_reschedule_at */
/* Returns false if the lease has ended before. */
static bool lease_extend(struct tw_handle lease, int64_t until_ns)
{
	return tw_reschedule_at(lease, until_ns) ==
	       TW_RESCHEDULE_DONE;
}
/* end */

static void requests_show(struct bench *bench)
{
	struct request first = {0}, second = {0};
	struct request *third = calloc(1, sizeof(*third));

	CHECK(third != NULL);
	CHECK(request_send(bench->engine, &first) == 0 &&
	      request_send(bench->engine, &second) == 0);
	CHECK(request_send(bench->engine, third) == 0);
	CHECK(request_has(&first, first.timeout) &&
	      !request_has(&first, second.timeout) &&
	      !request_has(&(struct request){0}, TW_HANDLE_NONE));
	request_print(&first);
	bench_pass(bench, TW_S(1));
	CHECK(request_waits(&first) &&
	      request_left_ns(&first) == TW_S(1));
	request_answered(&first);
	CHECK(request_free(third) == 0);
	bench_pass(bench, TW_S(2));
	request_answered(&second);
	CHECK(first.answered && !first.late && !second.answered &&
	      second.late);
	CHECK(!request_waits(&second) &&
	      request_left_ns(&second) == 0);
}

static void steps_show(struct bench *bench)
{
	struct request steps[2] = {0};

	CHECK(steps_send(bench->engine, steps) == 0);
	bench_pass(bench, TW_MS(400));
	CHECK(!steps[0].late && !steps[1].late);
	bench_pass(bench, TW_MS(200));
	CHECK(steps[0].late && steps[1].late);
}

static void moves_show(struct bench *bench)
{
	struct request idle = {0}, lease = {0};

	CHECK(request_send(bench->engine, &idle) == 0 &&
	      request_send(bench->engine, &lease) == 0);
	CHECK(connection_packet(idle.timeout));
	CHECK(lease_extend(lease.timeout,
			   tw_engine_now(bench->engine) +
				   TW_S(10)));
	bench_pass(bench, TW_S(9));
	CHECK(!idle.late && !lease.late);
	bench_pass(bench, TW_S(2));
	CHECK(!idle.late && lease.late);
	bench_pass(bench, TW_S(20));
	CHECK(idle.late);
	CHECK(!connection_packet(idle.timeout) &&
	      !lease_extend(lease.timeout, TW_HOURS(1)));
}

int main(void)
{
	struct bench bench = bench_open(bench_options());

	requests_show(&bench);
	steps_show(&bench);
	moves_show(&bench);
	bench_stop(&bench);
	bench_close(&bench);
	return 0;
}
