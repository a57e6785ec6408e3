/* SPDX-License-Identifier: MIT */
/*
 * A library for LD_PRELOAD. It serves the timers (uv_timer_t) of a program that was not built for
 * tickwheel.
 *
 * The library defines the functions of libuv that concern timers. So the dynamic linker passes the
 * calls of the program, and those of libuv itself, to this library. From uv_timer_init to uv_close,
 * a timer is usually one of ours. libuv initialises and closes the timer's handle, so that
 * everything else that a program does with a handle works. But libuv never starts the handle. The
 * handle's mark (mark.h) points to our timer.
 *
 * A timer's handle without a mark is one of libuv's own timers: the driver; a timer that libuv uses
 * itself (uv_fs_poll); one that was initialised without this library (the program found
 * uv_timer_init by dlsym in libuv); and one that the adapter could not serve, for example because
 * there was no memory.
 *
 * This file, not the adapter, repeats timers: like libuv, it starts a repeating timer again before
 * the callback.
 */
#include "hosts/preload/loops.h"
#include "hosts/preload/mark.h"
#include "hosts/preload/real.h"
#include "hosts/uv_loop.h"

#include <stddef.h>
#include <stdlib.h>
#include <tickwheel/export.h>

static struct tw_uv_timer *ours(const uv_handle_t *handle)
{
	return handle->type == UV_TIMER ? twi_mark_get(handle) : NULL;
}

static struct tw_uv_timer *ours_of(const uv_timer_t *timer)
{
	return ours((const uv_handle_t *)timer);
}

static struct timer *inner(struct tw_uv_timer *timer)
{
	return (struct timer *)(void *)timer;
}

/* Makes the timer one of libuv's own, and stops it. Also allowed in the timer's own callback. */
static void give_back(struct timer *timer)
{
	uv_timer_t *handle = timer->data;

	twi_uv_stop(timer);
	timer->timers->opened--;
	/* While the handle is closing, libuv still reports this time. */
	handle->timeout = timer->due.when;
	twi_mark_set((uv_handle_t *)handle, NULL);
	free(timer);
}

/* Does the same as give_back, and starts libuv's timer, so that libuv runs it at its time. */
static int give_back_running(struct timer *timer)
{
	uv_timer_t *handle = timer->data;
	uint64_t when = timer->due.when, now = uv_now(handle->loop);

	give_back(timer);
	return twi_uv()->timer_start(handle, handle->timer_cb, when > now ? when - now : 0,
				     handle->repeat);
}

static tw_uv_timer_callback run;

static int start(struct tw_uv_timer *timer, uint64_t timeout)
{
	uv_timer_t *handle = timer->data;

	if (tw_uv_timer_start(timer, run, timeout, 0) == 0)
		return 0;
	/* There is no memory, or this is a forked child. libuv can still run the timer. */
	give_back(inner(timer));
	return twi_uv()->timer_start(handle, handle->timer_cb, timeout, handle->repeat);
}

static void run(struct tw_uv_timer *timer)
{
	uv_timer_t *handle = timer->data;

	/*
	 * If there was no memory to file the timer again for a later time, the adapter runs it
	 * early.
	 */
	if (inner(timer)->due.when > uv_now(handle->loop)) {
		(void)give_back_running(inner(timer));
		return;
	}
	if (handle->repeat != 0)
		(void)start(timer, handle->repeat);
	handle->timer_cb(handle);
}

TW_API int uv_timer_init(uv_loop_t *loop, uv_timer_t *handle)
{
	int result = twi_uv()->timer_init(loop, handle);
	struct tw_uv_timers *timers = result == 0 ? twi_preload_timers_of(loop) : NULL;
	struct tw_uv_timer *timer = timers == NULL ? NULL : calloc(1, sizeof *timer);

	twi_mark_set((uv_handle_t *)handle, NULL);
	if (timer == NULL)
		return result;
	timer->data = handle;
	if (tw_uv_timer_init(timers, timer) == 0)
		twi_mark_set((uv_handle_t *)handle, timer);
	else
		free(timer);
	return result;
}

/*
 * Returns whether the timer is one of those that libuv uses for a uv_fs_poll_t. libuv changes the
 * reference of such a timer's handle without a call of uv_unref. Such a timer must be given back to
 * libuv, because libuv may also change it in other ways, and uv_walk does not visit it.
 */
static bool is_internal(const uv_timer_t *handle, const struct tw_uv_timer *timer)
{
	return (uv_has_ref((const uv_handle_t *)handle) != 0) != (tw_uv_timer_has_ref(timer) != 0);
}

TW_API int uv_timer_start(uv_timer_t *handle, uv_timer_cb callback, uint64_t timeout,
			  uint64_t repeat)
{
	struct tw_uv_timer *timer = ours_of(handle);

	if (timer == NULL || callback == NULL)
		return twi_uv()->timer_start(handle, callback, timeout, repeat);
	if (is_internal(handle, timer)) {
		give_back(inner(timer));
		return twi_uv()->timer_start(handle, callback, timeout, repeat);
	}
	handle->timer_cb = callback;
	handle->repeat = repeat;
	return start(timer, timeout);
}

TW_API int uv_timer_stop(uv_timer_t *handle)
{
	struct tw_uv_timer *timer = ours_of(handle);

	return timer == NULL ? twi_uv()->timer_stop(handle) : tw_uv_timer_stop(timer);
}

TW_API int uv_timer_again(uv_timer_t *handle)
{
	struct tw_uv_timer *timer = ours_of(handle);

	if (timer == NULL || handle->timer_cb == NULL)
		return twi_uv()->timer_again(handle);
	return handle->repeat == 0 ? 0 : start(timer, handle->repeat);
}

TW_API uint64_t uv_timer_get_due_in(const uv_timer_t *handle)
{
	const struct tw_uv_timer *timer = ours_of(handle);

	return timer == NULL ? twi_uv()->timer_get_due_in(handle) : tw_uv_timer_get_due_in(timer);
}

TW_API int uv_is_active(const uv_handle_t *handle)
{
	const struct tw_uv_timer *timer = ours(handle);

	return timer == NULL ? twi_uv()->is_active(handle) : tw_uv_timer_is_active(timer);
}

/*
 * Changes the handle's own reference too. So libuv can answer uv_has_ref, and the reference is
 * right if the timer is given back.
 */
TW_API void uv_ref(uv_handle_t *handle)
{
	struct tw_uv_timer *timer = ours(handle);

	twi_uv()->ref(handle);
	if (timer != NULL)
		(void)tw_uv_timer_ref(timer);
}

TW_API void uv_unref(uv_handle_t *handle)
{
	struct tw_uv_timer *timer = ours(handle);

	twi_uv()->unref(handle);
	if (timer != NULL)
		(void)tw_uv_timer_unref(timer);
}

TW_API void uv_close(uv_handle_t *handle, uv_close_cb closed)
{
	struct tw_uv_timer *timer = ours(handle);

	if (timer != NULL)
		give_back(inner(timer));
	twi_uv()->close(handle, closed);
}

/*
 * Stops a timer of ours, and adds it to the list `to`. The stop does not change due.when and
 * due.order, so the list can still sort the timers.
 */
static void collect(uv_handle_t *handle, void *to)
{
	struct tw_uv_timer *timer = ours(handle);

	if (timer == NULL || (inner(timer)->flags & (TIMER_ACTIVE | TIMER_DUE)) == 0)
		return;
	twi_uv_stop(inner(timer));
	twi_host_due_append(to, &inner(timer)->due);
}

/*
 * In a forked child the engine is the parent's. So all timers become libuv's own, and are started
 * in their order.
 */
TW_API int uv_loop_fork(uv_loop_t *loop)
{
	struct twi_host_due_list list = {0};
	struct twi_host_due_link *link;

	if (twi_preload_timers_find(loop) != NULL)
		uv_walk(loop, collect, &list);
	while ((link = twi_host_due_first(&list)) != NULL) {
		struct timer *timer =
			(struct timer *)(void *)((char *)link - offsetof(struct timer, due));

		twi_host_due_remove(&list, link);
		(void)give_back_running(timer);
	}
	return twi_uv()->loop_fork(loop);
}

/*
 * libuv closes a loop that has our handles (loops.c). If libuv refuses to close the loop, the
 * timers stay. The program's timers are not touched here, because a program that ends may already
 * have freed their memory.
 */
TW_API int uv_loop_close(uv_loop_t *loop)
{
	struct tw_uv_timers *timers = twi_preload_timers_find(loop);
	int result = twi_uv()->loop_close(loop);

	if (timers != NULL && result == 0) {
		twi_preload_forget(loop);
		twi_uv_drop(timers);
	}
	return result;
}
