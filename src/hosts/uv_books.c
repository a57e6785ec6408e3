/* SPDX-License-Identifier: MIT */
/*
 * Counts which timers of a loop are active, enters and leaves the engine's loop, and sets the
 * driver's time.
 */
#include "hosts/uv_loop.h"

#include <tickwheel/loop.h>

bool twi_uv_gone(const struct tw_uv_timers *timers)
{
	return uv_is_closing((const uv_handle_t *)&timers->driver) != 0;
}

int twi_uv_enter(struct tw_uv_timers *timers)
{
	int result = timers->inside ? 0 : tw_loop_enter(timers->engine);

	if (timers->inside || result < 0)
		return result;
	timers->inside = true;
	return 1;
}

static void leave(struct tw_uv_timers *timers)
{
	timers->inside = false;
	(void)tw_loop_exit(timers->engine);
}

void twi_uv_leave(struct tw_uv_timers *timers, int entered)
{
	if (entered == 1 && !timers->polling)
		leave(timers);
}

void twi_uv_hold(struct tw_uv_timers *timers, bool hold)
{
	timers->holding += hold ? 1 : UINT64_MAX;
	if (timers->holding > 1 || twi_uv_gone(timers))
		return;
	if (timers->holding == 1)
		uv_ref((uv_handle_t *)&timers->driver);
	else
		uv_unref((uv_handle_t *)&timers->driver);
}

void twi_uv_activate(struct timer *timer)
{
	timer->flags |= TIMER_ACTIVE;
	timer->timers->active++;
	if ((timer->flags & TIMER_REFERENCED) != 0)
		twi_uv_hold(timer->timers, true);
}

void twi_uv_deactivate(struct timer *timer)
{
	struct tw_uv_timers *timers = timer->timers;

	timer->flags &= ~(uint64_t)TIMER_ACTIVE;
	timers->active--;
	if (timers->active == 0 || timer->filed == timers->armed)
		timers->early = true;
	if ((timer->flags & TIMER_REFERENCED) != 0)
		twi_uv_hold(timers, false);
}

void twi_uv_set(struct tw_uv_timers *timers, uint64_t when)
{
	uint64_t now = uv_now(timers->loop);

	timers->armed = when < TIMER_FAR ? when : TIMER_FAR;
	(void)uv_timer_start(&timers->driver, timers->drive, when > now ? timers->armed - now : 0,
			     0);
}

void twi_uv_arm(struct tw_uv_timers *timers, uint64_t when)
{
	if (when < timers->armed || timers->armed == UINT64_MAX)
		twi_uv_set(timers, when);
}
