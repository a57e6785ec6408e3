/* SPDX-License-Identifier: MIT */
/*
 * A table that holds the tw_uv_timers of each loop.
 *
 * Only the thread that uses a loop looks for it, fills its entry and frees it. A program that makes
 * a loop on one thread and uses it on another must order these two steps, because libuv needs that
 * as well. So the accesses to an entry need no order of their own: other threads only compare its
 * loop with theirs. Only the thread that freed an entry uses it again, because no other thread's
 * steps are ordered after the freeing. If a process has used up the table, further loops keep
 * libuv's own timers.
 */
#ifndef TWI_HOSTS_PRELOAD_LOOPS_H
#define TWI_HOSTS_PRELOAD_LOOPS_H

#include <tickwheel/uv_timer.h>
#include <uv.h>

/* The number of entries in the table. */
enum { TWI_PRELOAD_LOOPS = 1024 };

/* Returns the timers of a loop, or NULL. */
struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop);

/*
 * Returns the timers of a loop. Makes them if there are none. Returns NULL if they cannot be made.
 */
struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop);

/* Frees the entry of a loop whose timers are closed, or whose memory has become another loop. */
void twi_preload_forget(const uv_loop_t *loop);

#endif
