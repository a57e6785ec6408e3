/* SPDX-License-Identifier: MIT */
/*
 * The library tickwheel-uv-timer: the calls of uv_timer_t, served by an engine in loop mode.
 *
 * It uses only public headers: ours, and libuv's. uv_loop.h says how the parts work together.
 */
#include "hosts/uv_loop.h"

#include <errno.h>

_Static_assert(sizeof(struct timer) == sizeof(struct tw_uv_timer), "the public size");

static struct timer *inner(struct tw_uv_timer *timer)
{
	return (struct timer *)(void *)timer;
}

static const struct timer *inner_const(const struct tw_uv_timer *timer)
{
	return (const struct timer *)(const void *)timer;
}

/*
 * Returns whether the timer is initialised and not closed. Its `timers` must not be used after its
 * close, because they may be freed.
 */
static bool usable(const struct timer *timer)
{
	return timer != NULL && timer->timers != NULL && (timer->flags & TIMER_CLOSING) == 0;
}

int tw_uv_timer_init(struct tw_uv_timers *timers, struct tw_uv_timer *timer)
{
	if (timers == NULL || timer == NULL)
		return -EINVAL;
	if (twi_uv_gone(timers))
		return -ESHUTDOWN;
	*inner(timer) = (struct timer){
		.data = timer->data,
		.timers = timers,
		.flags = TIMER_REFERENCED,
	};
	timers->opened++;
	return 0;
}

int tw_uv_timer_start(struct tw_uv_timer *public, tw_uv_timer_callback *callback, uint64_t timeout,
		      uint64_t repeat)
{
	struct timer *timer = inner(public);

	if (callback == NULL || !usable(timer))
		return -EINVAL;
	if (twi_uv_gone(timer->timers))
		return -ESHUTDOWN;
	timer->callback = callback;
	timer->repeat = repeat;
	return twi_uv_start(timer, timeout);
}

int tw_uv_timer_stop(struct tw_uv_timer *public)
{
	struct timer *timer = inner(public);

	if (timer == NULL)
		return -EINVAL;
	if (usable(timer))
		twi_uv_stop(timer);
	return 0;
}

int tw_uv_timer_again(struct tw_uv_timer *public)
{
	struct timer *timer = inner(public);

	if (timer == NULL || timer->callback == NULL)
		return -EINVAL;
	if (timer->repeat == 0 || !usable(timer))
		return 0;
	return twi_uv_gone(timer->timers) ? -ESHUTDOWN : twi_uv_start(timer, timer->repeat);
}

int tw_uv_timer_set_repeat(struct tw_uv_timer *timer, uint64_t repeat)
{
	if (timer == NULL)
		return -EINVAL;
	inner(timer)->repeat = repeat;
	return 0;
}

uint64_t tw_uv_timer_get_repeat(const struct tw_uv_timer *timer)
{
	return timer == NULL ? 0 : inner_const(timer)->repeat;
}

uint64_t tw_uv_timer_get_due_in(const struct tw_uv_timer *public)
{
	const struct timer *timer = inner_const(public);
	uint64_t now;

	if (!usable(timer) || twi_uv_gone(timer->timers))
		return 0;
	now = uv_now(timer->timers->loop);
	return timer->due.when > now ? timer->due.when - now : 0;
}

int tw_uv_timer_is_active(const struct tw_uv_timer *timer)
{
	return timer != NULL && (inner_const(timer)->flags & TIMER_ACTIVE) != 0;
}

int tw_uv_timer_is_closing(const struct tw_uv_timer *timer)
{
	return timer != NULL && (inner_const(timer)->flags & TIMER_CLOSING) != 0;
}

int tw_uv_timer_has_ref(const struct tw_uv_timer *timer)
{
	return timer != NULL && (inner_const(timer)->flags & TIMER_REFERENCED) != 0;
}

static int reference(struct timer *timer, uint64_t flag)
{
	if (timer == NULL)
		return -EINVAL;
	if ((timer->flags & TIMER_REFERENCED) == flag)
		return 0;
	timer->flags ^= TIMER_REFERENCED;
	if ((timer->flags & TIMER_ACTIVE) != 0)
		twi_uv_hold(timer->timers, flag != 0);
	return 0;
}

int tw_uv_timer_ref(struct tw_uv_timer *timer)
{
	return reference(inner(timer), TIMER_REFERENCED);
}

int tw_uv_timer_unref(struct tw_uv_timer *timer)
{
	return reference(inner(timer), 0);
}

int tw_uv_timer_close(struct tw_uv_timer *public, tw_uv_timer_callback *closed)
{
	struct timer *timer = inner(public);

	if (!usable(timer))
		return -EINVAL;
	twi_uv_stop(timer);
	timer->flags |= TIMER_CLOSING;
	timer->closed = closed;
	if (twi_uv_gone(timer->timers)) {
		timer->timers->opened--;
		return -ESHUTDOWN;
	}
	twi_uv_close_later(timer);
	return 0;
}
