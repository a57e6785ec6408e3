/* SPDX-License-Identifier: MIT */
/* Starts and stops a timer: puts it into the engine or the due list, and takes it out. */
#include "hosts/uv_loop.h"

#include <tickwheel/timeout.h>

enum { NS_PER_MS = 1000000 };

/*
 * Converts a time of the loop to a deadline of the engine. The deadline is the last nanosecond
 * before the millisecond `when`, so that its tick is over when that millisecond begins.
 */
static int64_t deadline_ns(uint64_t when)
{
	if (when > INT64_MAX / NS_PER_MS)
		return TW_NEVER;
	return when == 0 ? 0 : (int64_t)when * NS_PER_MS - 1;
}

static tw_callback timer_found;

static const struct tw_kind timer_kind = TW_KIND_OWNER_ONLY(timer_found, NULL);

/*
 * Files a timer in the engine. Must be called in a bracket (uv_loop.h). Returns 0 or an error code.
 */
static int file_inside(struct timer *timer)
{
	int64_t at_ns = deadline_ns(timer->due.when);
	int result = (timer->flags & TIMER_FILED) != 0
			     ? tw_reschedule_at(timer->handle, at_ns)
			     : tw_schedule_at(timer->timers->engine, at_ns, &timer_kind, timer,
					      &timer->handle);

	if (result != 0)
		return result;
	timer->flags |= TIMER_FILED;
	timer->filed = timer->due.when;
	return 0;
}

static void make_due(struct timer *timer)
{
	timer->flags |= TIMER_DUE;
	if (!timer->timers->active_until_run)
		twi_uv_deactivate(timer);
	twi_host_due_append(&timer->timers->due, &timer->due);
}

/*
 * Makes a filed timer due, so that its callback runs when the poll is over. The engine calls this
 * function in a poll, at the time for which the timer was filed. If the timer was started again for
 * a later time meanwhile, files it again. If there is no memory for that, the callback runs early,
 * which is better than never.
 */
static void timer_found(struct tw_handle self, void *argument)
{
	struct timer *timer = argument;

	(void)self;
	timer->flags &= ~(uint64_t)TIMER_FILED;
	if (timer->due.when <= timer->timers->now || file_inside(timer) != 0)
		make_due(timer);
}

/*
 * Gives the timer to the engine. If the engine already has it for an earlier time, nothing changes:
 * timer_found files it again at that time. Returns 0 or an error code.
 */
static int file(struct timer *timer)
{
	struct tw_uv_timers *timers = timer->timers;
	int entered;
	int result;

	if ((timer->flags & TIMER_FILED) != 0 && timer->filed <= timer->due.when)
		return 0;
	entered = twi_uv_enter(timers);
	if (entered < 0)
		return entered;
	result = file_inside(timer);
	twi_uv_leave(timers, entered);
	return result;
}

static void unfile(struct timer *timer)
{
	struct tw_uv_timers *timers = timer->timers;
	int entered = twi_uv_enter(timers);

	/*
	 * In a forked child twi_uv_enter fails, because the engine is the parent's. Then there is
	 * no timeout to cancel.
	 */
	if (entered >= 0) {
		(void)tw_cancel(timer->handle);
		twi_uv_leave(timers, entered);
	}
	timer->flags &= ~(uint64_t)TIMER_FILED;
}

static void undue(struct timer *timer)
{
	if ((timer->flags & TIMER_DUE) == 0)
		return;
	twi_host_due_remove(&timer->timers->due, &timer->due);
	timer->flags &= ~(uint64_t)TIMER_DUE;
}

void twi_uv_stop(struct timer *timer)
{
	if ((timer->flags & TIMER_FILED) != 0)
		unfile(timer);
	undue(timer);
	if ((timer->flags & TIMER_ACTIVE) != 0)
		twi_uv_deactivate(timer);
}

/*
 * Files a timer whose time is set, and counts it as active. Returns 0. If it cannot be filed, stops
 * the timer and returns the error code.
 */
static int place(struct timer *timer)
{
	struct tw_uv_timers *timers = timer->timers;
	int result = file(timer);

	if (result != 0) {
		twi_uv_stop(timer);
		return result;
	}
	if ((timer->flags & TIMER_ACTIVE) == 0)
		twi_uv_activate(timer);
	if (!timers->running)
		twi_uv_arm(timers, timer->due.when);
	return 0;
}

int twi_uv_start(struct timer *timer, uint64_t timeout)
{
	struct tw_uv_timers *timers = timer->timers;
	uint64_t when = uv_now(timers->loop) + timeout;

	undue(timer);
	timer->due.when = when < timeout ? UINT64_MAX : when;
	timer->due.order = timers->starts++;
	return place(timer);
}
