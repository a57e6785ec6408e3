/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD. It puts our timers behind the uv_timer_t of a program that was not
 * built for them.
 *
 * It defines the calls of libuv that concern timers. So the dynamic linker gives these functions to
 * the program, and to libuv itself. From uv_timer_init to uv_close a timer is one of ours. libuv
 * initialises and closes the timer's handle, so all other calls with the handle work. But libuv
 * never starts the handle. `u.reserved[3]` of the handle, which libuv does not use for timers,
 * holds the address of our timer. If it is NULL, the timer is one of libuv's own: it is the driver,
 * or there was no memory for one of ours.
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

/*
 * Stops our timer behind the handle and frees it. From now on the handle is a timer of libuv's own,
 * which is not started. May also be called in the timer's callback.
 */
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
	/*
	 * There is no memory, or this is a forked child. A timer of libuv's own is better than
	 * none.
	 */
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

/*
 * References our timer, and the handle itself. So the handle's own mark is right if the timer is
 * given back later (give_back). uv_unref does the same.
 */
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
	/* the handles of these timers are left out; may be NULL */
	const struct tw_uv_timers *timers;
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

/*
 * Leaves out the handles of our timers. Otherwise a program that closes all handles would close
 * these, too.
 */
TW_API void uv_walk(uv_loop_t *loop, uv_walk_cb visit, void *context)
{
	struct walk walk = {twi_preload_timers_find(loop), visit, context};

	twi_uv_real.walk(loop, visit_others, &walk);
}

/*
 * Forgets the timers of an earlier loop at this address. That loop was never closed, so the memory
 * of its timers is lost.
 */
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

/*
 * Closes a loop. If the program has no handle left in it, closes our own handles, and runs the loop
 * once, so that libuv completes their close.
 */
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
