/* SPDX-License-Identifier: MIT */
/*
 * The callbacks of tickwheel-uv-timer that the loop runs, above all the driver's. uv_loop.h says
 * how they work.
 */
#include "hosts/uv_loop.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <tickwheel/clock.h>
#include <tickwheel/loop.h>

enum { NS_PER_MS = 1000000 };

/*
 * Since libuv 1.48, a pass over the timers runs only those that were due when the pass began, and
 * these are no longer active. Older versions run the driver again in the same pass if it is due
 * again.
 */
#define UV_READY_ONLY 0x013000u

/* Returns when the loop must poll next, in its own time, or UINT64_MAX if no timer is active. */
static uint64_t next_due(const struct tw_uv_timers *timers)
{
	int64_t due_ns = timers->active == 0 ? -1 : tw_engine_next_due(timers->engine);

	if (due_ns < 0)
		return UINT64_MAX;
	if (due_ns == TW_NEVER)
		return TIMER_FAR;
	return ((uint64_t)due_ns + NS_PER_MS - 1) / NS_PER_MS;
}

/* Sets the driver to the time of the next poll, or stops it if no timer is active. */
static void correct(struct tw_uv_timers *timers)
{
	uint64_t due = next_due(timers);

	timers->early = false;
	if (due == timers->armed || twi_uv_gone(timers))
		return;
	if (due != UINT64_MAX) {
		twi_uv_set(timers, due);
		return;
	}
	timers->armed = UINT64_MAX;
	(void)uv_timer_stop(&timers->driver);
}

static struct timer *timer_of(struct twi_host_due_link *link)
{
	return (struct timer *)(void *)((char *)link - offsetof(struct timer, due));
}

/*
 * Runs a due timer. The callback may close the timer, but its memory stays until the loop closes
 * handles.
 */
static void timer_run(struct timer *timer)
{
	twi_uv_stop(timer);
	if (timer->repeat != 0)
		(void)twi_uv_start(timer, timer->repeat);
	timer->callback((struct tw_uv_timer *)(void *)timer);
}

static void run_due(struct tw_uv_timers *timers)
{
	struct twi_host_due_link *link;

	timers->now = uv_now(timers->loop);
	(void)tw_engine_poll_at(timers->engine, (int64_t)(timers->now * NS_PER_MS), 0);
	while ((link = twi_host_due_first(&timers->due)) != NULL)
		timer_run(timer_of(link));
}

static void drive(uv_timer_t *driver)
{
	struct tw_uv_timers *timers = driver->data;
	int entered = twi_uv_enter(timers);

	timers->armed = UINT64_MAX;
	timers->early = true;
	if (entered < 0)
		return;
	timers->running = true;
	run_due(timers);
	timers->running = false;
	correct(timers);
	twi_uv_leave(timers, entered);
}

static void before_poll(uv_prepare_t *prepare)
{
	struct tw_uv_timers *timers = prepare->data;

	timers->polling = true;
	if (timers->early && twi_uv_enter(timers) >= 0)
		correct(timers);
}

static void after_poll(uv_check_t *check)
{
	struct tw_uv_timers *timers = check->data;

	timers->polling = false;
	twi_uv_leave(timers, timers->inside ? 1 : 0);
}

static void engine_free(struct tw_uv_timers *timers)
{
	(void)tw_engine_stop(timers->engine, NULL, NULL, TW_NEVER);
	(void)tw_engine_destroy(timers->engine);
	(void)tw_clock_destroy(timers->clock);
}

static int engine_make(struct tw_uv_timers *timers)
{
	struct tw_options options;
	int result;

	(void)tw_options_init(&options, sizeof options);
	options.flags = TW_ENGINE_LOOP | TW_ENGINE_ALIGNED;
	options.tick_ns = NS_PER_MS;
	result = tw_clock_create_virtual((int64_t)(uv_now(timers->loop) * NS_PER_MS),
					 &timers->clock);
	if (result != 0)
		return result;
	options.clock = timers->clock;
	result = tw_engine_create(&options, &timers->engine);
	if (result != 0)
		(void)tw_clock_destroy(timers->clock);
	return result;
}

/* Initialises our handles in the loop. None of these calls can fail with these arguments. */
static void handles_open(struct tw_uv_timers *timers)
{
	(void)uv_timer_init(timers->loop, &timers->driver);
	(void)uv_prepare_init(timers->loop, &timers->prepare);
	(void)uv_check_init(timers->loop, &timers->check);
	timers->driver.data = timers->prepare.data = timers->check.data = timers;
	(void)uv_prepare_start(&timers->prepare, before_poll);
	(void)uv_check_start(&timers->check, after_poll);
	uv_unref((uv_handle_t *)&timers->driver);
	uv_unref((uv_handle_t *)&timers->prepare);
	uv_unref((uv_handle_t *)&timers->check);
}

int tw_uv_timers_create(struct uv_loop_s *loop, struct tw_uv_timers **ret_timers)
{
	struct tw_uv_timers *timers;
	int result;

	if (loop == NULL || ret_timers == NULL)
		return -EINVAL;
	timers = calloc(1, sizeof *timers);
	if (timers == NULL)
		return -ENOMEM;
	timers->loop = loop;
	timers->drive = drive;
	timers->armed = UINT64_MAX;
	timers->active_until_run = uv_version() < UV_READY_ONLY;
	result = engine_make(timers);
	if (result != 0) {
		free(timers);
		return result;
	}
	handles_open(timers);
	*ret_timers = timers;
	return 0;
}

/* Calls the close callbacks, the latest close first, as libuv does. */
static void run_closed(uv_handle_t *closer)
{
	struct tw_uv_timers *timers = closer->data;
	struct timer *timer = timers->closing;

	timers->closing = NULL;
	while (timer != NULL) {
		struct timer *next = timer->due.next == NULL ? NULL : timer_of(timer->due.next);

		timers->opened--;
		timer->flags &= ~(uint64_t)TIMER_REFERENCED;
		if (timer->closed != NULL)
			timer->closed((struct tw_uv_timer *)(void *)timer);
		timer = next;
	}
}

static void closer_begin(struct tw_uv_timers *timers, uv_close_cb closed)
{
	(void)uv_idle_init(timers->loop, &timers->closer);
	timers->closer.data = timers;
	uv_close((uv_handle_t *)&timers->closer, closed);
}

void twi_uv_close_later(struct timer *timer)
{
	struct tw_uv_timers *timers = timer->timers;

	timer->due.next = timers->closing == NULL ? NULL : &timers->closing->due;
	if (timers->closing == NULL)
		closer_begin(timers, run_closed);
	timers->closing = timer;
}

static void last_closed(uv_handle_t *closer)
{
	free(closer->data);
}

/*
 * Counts a closed handle of ours. If the program has closed some of the handles itself, the loop
 * may visit them later in this round. So the memory must stay for one more round.
 */
static void handle_closed(uv_handle_t *handle)
{
	struct tw_uv_timers *timers = handle->data;

	if (--timers->handles > 0)
		return;
	if (timers->foreign)
		closer_begin(timers, last_closed);
	else
		free(timers);
}

static void handle_close(struct tw_uv_timers *timers, uv_handle_t *handle)
{
	if (uv_is_closing(handle) != 0) {
		timers->foreign = true;
		return;
	}
	timers->handles++;
	uv_close(handle, handle_closed);
}

int tw_uv_timers_close(struct tw_uv_timers *timers)
{
	if (timers == NULL)
		return 0;
	if (timers->opened != 0)
		return -EBUSY;
	engine_free(timers);
	timers->inside = false;
	handle_close(timers, (uv_handle_t *)&timers->driver);
	handle_close(timers, (uv_handle_t *)&timers->prepare);
	handle_close(timers, (uv_handle_t *)&timers->check);
	if (timers->handles == 0)
		free(timers);
	return 0;
}

void twi_uv_drop(struct tw_uv_timers *timers)
{
	engine_free(timers);
	free(timers);
}
