/* SPDX-License-Identifier: MIT */
#include "hosts/preload/loops.h"

#include "hosts/preload/mark.h"
#include "hosts/uv_loop.h"

struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop)
{
	return twi_mark_get((const uv_handle_t *)&loop->wq_async);
}

/*
 * Makes our handles look like those that libuv itself has in each loop: uv_walk leaves them out,
 * and uv_loop_close closes a loop that has them. libuv marks its own handles by a flag. The flag is
 * the bit that the uv_async_t of the thread pool has and our uv_prepare_t does not have, because
 * otherwise the two are alike: active, and without a reference. Returns false if this version of
 * libuv marks its handles in another way.
 */
static bool hide(struct tw_uv_timers *timers)
{
	unsigned flag = timers->loop->wq_async.flags & ~timers->prepare.flags;

	if (flag == 0 || (flag & (flag - 1)) != 0)
		return false;
	timers->driver.flags |= flag;
	timers->prepare.flags |= flag;
	timers->check.flags |= flag;
	return true;
}

struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop)
{
	struct tw_uv_timers *timers = twi_preload_timers_find(loop);

	if (timers != NULL)
		return timers;
	if (tw_uv_timers_create(loop, &timers) != 0)
		return NULL;
	if (!hide(timers)) {
		(void)tw_uv_timers_close(timers);
		return NULL;
	}
	twi_mark_set((uv_handle_t *)&loop->wq_async, timers);
	return timers;
}

void twi_preload_forget(uv_loop_t *loop)
{
	twi_mark_set((uv_handle_t *)&loop->wq_async, NULL);
}
