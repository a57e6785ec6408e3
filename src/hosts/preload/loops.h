/* SPDX-License-Identifier: MIT */
/*
 * Which tw_uv_timers a loop has. The list of loops only grows: the entry of a loop that was closed
 * serves the next one.
 *
 * Only the thread that uses a loop looks for it or changes its entry, so `timers` has no other reader.
 * Other threads walk over the entry: all accesses to `loop`, `next` and the list are sequentially
 * consistent, because they are rare.
 */
#ifndef TWI_HOSTS_PRELOAD_LOOPS_H
#define TWI_HOSTS_PRELOAD_LOOPS_H

#include <stdbool.h>
#include <tickwheel/uv_timer.h>
#include <uv.h>

/* Returns the timers of a loop, or NULL. */
struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop);

/* The same; makes them if there are none. NULL: it cannot. */
struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop);

/* The loop has no timers any more. */
void twi_preload_forget(const uv_loop_t *loop);

#endif
