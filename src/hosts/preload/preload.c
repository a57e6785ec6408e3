/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD: our timers behind the uv_timer_t of a program that was not built for them.
 *
 * It defines the calls of libuv that concern timers, and so the dynamic linker gives them to the
 * program, and to libuv itself. A timer is one of ours from uv_timer_init to uv_close: its handle is
 * initialised and closed by libuv, so that all else that a program does with a handle works, and never
 * started there. `u.reserved[3]` of the handle, which libuv does not use for timers, names ours; NULL
 * stands for a timer of libuv's own: the driver's, and those for which there was no memory.
 */
#include "hosts/preload/loops.h"
#include "hosts/preload/real.h"
#include "hosts/uv_loop.h"

#include <stdlib.h>
#include <tickwheel/export.h>

static struct tw_uv_timer *ours(const uv_handle_t *handle)
{
	return handle->type == UV_TIMER ? handle->u.reserved[3] : NULL;
}

static struct tw_uv_timer *ours_of(const uv_timer_t *timer)
{
	return ours((const uv_handle_t *)timer);
}

static void run(struct tw_uv_timer *timer)
{
	uv_timer_t *handle = timer->data;

	handle->timer_cb(handle);
}

/* From now on the timer is one of libuv's own, and stopped. Also in its own callback. */
static void give_back(uv_handle_t *handle)
{
	struct timer *timer = (struct timer *)(void *)ours(handle);

	twi_uv_stop(timer);
	timer->timers->opened--;
	handle->u.reserved[3] = NULL;
	free(timer);
}

TW_API int uv_timer_init(uv_loop_t *loop, uv_timer_t *handle)
{
	int result = twi_uv_real.timer_init(loop, handle);
	struct tw_uv_timers *timers = result == 0 ? twi_preload_timers_of(loop) : NULL;
	struct tw_uv_timer *timer = timers == NULL ? NULL : calloc(1, sizeof *timer);

	handle->u.reserved[3] = NULL;
	if (timer == NULL)
		return result;
	timer->data = handle;
	if (tw_uv_timer_init(timers, timer) == 0)
		handle->u.reserved[3] = timer;
	else
		free(timer);
	return result;
}

TW_API int uv_timer_start(uv_timer_t *handle, uv_timer_cb callback, uint64_t timeout,
			  uint64_t repeat)
{
	struct tw_uv_timer *timer = ours_of(handle);

	if (timer == NULL || callback == NULL)
		return twi_uv_real.timer_start(handle, callback, timeout, repeat);
	handle->timer_cb = callback;
	handle->repeat = repeat;
	if (tw_uv_timer_start(timer, run, timeout, repeat) == 0)
		return 0;
	/* No memory, or a forked child: better libuv's than none. */
	give_back((uv_handle_t *)handle);
	return twi_uv_real.timer_start(handle, callback, timeout, repeat);
}

TW_API int uv_timer_stop(uv_timer_t *handle)
{
	struct tw_uv_timer *timer = ours_of(handle);

	return timer == NULL ? twi_uv_real.timer_stop(handle) : tw_uv_timer_stop(timer);
}

TW_API int uv_timer_again(uv_timer_t *handle)
{
	if (ours_of(handle) == NULL || handle->timer_cb == NULL)
		return twi_uv_real.timer_again(handle);
	return handle->repeat == 0
		       ? 0
		       : uv_timer_start(handle, handle->timer_cb, handle->repeat, handle->repeat);
}

TW_API void uv_timer_set_repeat(uv_timer_t *handle, uint64_t repeat)
{
	struct tw_uv_timer *timer = ours_of(handle);

	twi_uv_real.timer_set_repeat(handle, repeat);
	if (timer != NULL)
		(void)tw_uv_timer_set_repeat(timer, repeat);
}

TW_API uint64_t uv_timer_get_due_in(const uv_timer_t *handle)
{
	const struct tw_uv_timer *timer = ours_of(handle);

	return timer == NULL ? twi_uv_real.timer_get_due_in(handle) : tw_uv_timer_get_due_in(timer);
}

TW_API int uv_is_active(const uv_handle_t *handle)
{
	const struct tw_uv_timer *timer = ours(handle);

	return timer == NULL ? twi_uv_real.is_active(handle) : tw_uv_timer_is_active(timer);
}

TW_API int uv_has_ref(const uv_handle_t *handle)
{
	const struct tw_uv_timer *timer = ours(handle);

	return timer == NULL ? twi_uv_real.has_ref(handle) : tw_uv_timer_has_ref(timer);
}

/* The handle's own mark stays right, for a timer that is given back. */
TW_API void uv_ref(uv_handle_t *handle)
{
	struct tw_uv_timer *timer = ours(handle);

	twi_uv_real.ref(handle);
	if (timer != NULL)
		(void)tw_uv_timer_ref(timer);
}

TW_API void uv_unref(uv_handle_t *handle)
{
	struct tw_uv_timer *timer = ours(handle);

	twi_uv_real.unref(handle);
	if (timer != NULL)
		(void)tw_uv_timer_unref(timer);
}

TW_API void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
	if (ours(handle) != NULL)
		give_back(handle);
	twi_uv_real.close(handle, closed);
}

struct walk {
	const struct tw_uv_timers *timers; /* whose handles are left out, or NULL */
	uv_walk_cb visit;
	void *context;
};

static void visit_others(uv_handle_t *handle, void *to)
{
	const struct walk *walk = to;
	const struct tw_uv_timers *timers = walk->timers;

	if (timers == NULL || (handle != (const uv_handle_t *)&timers->driver &&
			       handle != (const uv_handle_t *)&timers->prepare &&
			       handle != (const uv_handle_t *)&timers->check &&
			       handle != (const uv_handle_t *)&timers->closer))
		walk->visit(handle, walk->context);
}

/* A program that closes all handles must not close ours. */
TW_API void uv_walk(uv_loop_t *loop, uv_walk_cb visit, void *context)
{
	struct walk walk = {twi_preload_timers_find(loop), visit, context};

	twi_uv_real.walk(loop, visit_others, &walk);
}

/* What an earlier loop at this address has left is lost: it was never closed. */
TW_API int uv_loop_init(uv_loop_t *loop)
{
	twi_preload_forget(loop);
	return twi_uv_real.loop_init(loop);
}

static void count(uv_handle_t *handle, void *to)
{
	(void)handle;
	(*(size_t *)to)++;
}

/* If nothing but our own handles is left, they are closed, and the loop visits them once. */
TW_API int uv_loop_close(uv_loop_t *loop)
{
	struct tw_uv_timers *timers = twi_preload_timers_find(loop);
	size_t others = 0;

	if (timers == NULL)
		return twi_uv_real.loop_close(loop);
	uv_walk(loop, count, &others);
	if (others != 0 || uv_loop_alive(loop) != 0 || tw_uv_timers_close(timers) != 0)
		return UV_EBUSY;
	twi_preload_forget(loop);
	(void)uv_run(loop, UV_RUN_NOWAIT);
	return twi_uv_real.loop_close(loop);
}
