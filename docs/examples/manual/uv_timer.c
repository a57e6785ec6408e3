/* SPDX-License-Identifier: MIT */
/* Timers in a loop of libuv. */
#include "check.h"

#include <tickwheel/uv_timer.h>
#include <uv.h>

struct request {
	struct tw_uv_timer timer;
	bool timed_out;
	bool closed;
};

/* example: tw_uv_timers_create */
static int loop_open(uv_loop_t *loop, struct tw_uv_timers **ret)
{
	int code = uv_loop_init(loop);

	return code < 0 ? code : tw_uv_timers_create(loop, ret);
}
/* end */

/* example: tw_uv_timers_close */
/* Call it when all timers are closed. */
static int loop_end(uv_loop_t *loop, struct tw_uv_timers *timers)
{
	int code = tw_uv_timers_close(timers);

	if (code < 0)
		return code;
	uv_run(loop, UV_RUN_DEFAULT); /* closes its handles */
	return uv_loop_close(loop);
}
/* end */

static void on_timeout(struct tw_uv_timer *timer)
{
	struct request *request = timer->data;

	request->timed_out = true;
}

/* example: tw_uv_timer_init tw_uv_timer_start */
static int request_begin(struct tw_uv_timers *timers,
			 struct request *request)
{
	tw_uv_timer_init(timers, &request->timer);
	request->timer.data = request;
	return tw_uv_timer_start(&request->timer, on_timeout, 5000,
				 0);
}
/* end */

/* example: tw_uv_timer_close */
static void on_close(struct tw_uv_timer *timer)
{
	struct request *request = timer->data;

	request->closed = true; /* its memory is free now */
}

static int request_end(struct request *request)
{
	return tw_uv_timer_close(&request->timer, on_close);
}
/* end */

/* example: tw_uv_timer_stop tw_uv_timer_is_active */
static void answered(struct tw_uv_timer *timer)
{
	tw_uv_timer_stop(timer);
	CHECK(!tw_uv_timer_is_active(timer));
}
/* end */

/* example: tw_uv_timer_again tw_uv_timer_set_repeat */
/* Lets the timer run when `ms` pass without another call. */
static int idle_after(struct tw_uv_timer *timer, uint64_t ms)
{
	tw_uv_timer_set_repeat(timer, ms);
	return tw_uv_timer_again(timer);
}
/* end */

/* example: tw_uv_timer_get_repeat tw_uv_timer_get_due_in */
static void show(const struct tw_uv_timer *timer)
{
	printf("in %" PRIu64 " ms, then each %" PRIu64 " ms\n",
	       tw_uv_timer_get_due_in(timer),
	       tw_uv_timer_get_repeat(timer));
}
/* end */

/* example: tw_uv_timer_ref tw_uv_timer_unref tw_uv_timer_has_ref */
/* If `yes`, the loop may end while this timer waits. */
static int in_background(struct tw_uv_timer *timer, bool yes)
{
	if (tw_uv_timer_has_ref(timer) == !yes)
		return 0;
	return yes ? tw_uv_timer_unref(timer)
		   : tw_uv_timer_ref(timer);
}
/* end */

/* example: tw_uv_timer_is_closing */
static void touch(struct tw_uv_timer *timer)
{
	if (!tw_uv_timer_is_closing(timer))
		tw_uv_timer_again(timer);
}
/* end */

int main(void)
{
	struct tw_uv_timers *timers;
	struct request request = {.timed_out = false};
	uv_loop_t loop;

	CHECK(loop_open(&loop, &timers) == 0);
	CHECK(request_begin(timers, &request) == 0);
	answered(&request.timer);
	CHECK(idle_after(&request.timer, 20) == 0);
	show(&request.timer);
	CHECK(in_background(&request.timer, true) == 0);
	CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0);
	CHECK(!request.timed_out);
	CHECK(in_background(&request.timer, false) == 0);
	touch(&request.timer);
	while (!request.timed_out)
		uv_run(&loop, UV_RUN_ONCE);
	CHECK(request_end(&request) == 0);
	CHECK(uv_run(&loop, UV_RUN_DEFAULT) == 0 && request.closed);
	CHECK(loop_end(&loop, timers) == 0);
	return 0;
}
