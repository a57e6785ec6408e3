/* SPDX-License-Identifier: MIT */
/*
 * Which tw_uv_timers a loop has, in a table.
 *
 * Only the thread that uses a loop looks for it, fills its entry and frees it. A program that makes a
 * loop on one thread and uses it on another orders the two, because libuv needs that as well. So the
 * accesses to an entry need no order of their own: other threads only compare its loop with theirs.
 * An entry that is free again serves the thread that freed it, because no other thread is ordered
 * after that. A process that has used up the table keeps libuv's own timers in further loops.
 */
#ifndef TWI_HOSTS_PRELOAD_LOOPS_H
#define TWI_HOSTS_PRELOAD_LOOPS_H

#include <tickwheel/uv_timer.h>
#include <uv.h>

/* Entries of the table. */
enum { TWI_PRELOAD_LOOPS = 1024 };

/* Returns the timers of a loop, or NULL. */
struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop);

/* Returns the timers of a loop, and makes them if there are none. NULL: that is not possible. */
struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop);

/* Frees the entry of a loop whose timers are closed, or whose memory has become another loop. */
void twi_preload_forget(const uv_loop_t *loop);

#endif
