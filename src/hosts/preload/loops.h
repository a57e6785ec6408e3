/* SPDX-License-Identifier: MIT */
/*
 * Finds the tw_uv_timers of a loop by the mark (mark.h) in the uv_async_t that the loop has for its
 * thread pool. uv_loop_init clears this mark. So if a program never closed a loop, and uses the
 * loop's memory for a new one, the new loop has no timers yet. The timers of the old loop are lost,
 * like the descriptors that libuv had for it.
 */
#ifndef TWI_HOSTS_PRELOAD_LOOPS_H
#define TWI_HOSTS_PRELOAD_LOOPS_H

#include <tickwheel/uv_timer.h>
#include <uv.h>

/* Returns the timers of a loop, or NULL. */
struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop);

/*
 * Returns the timers of a loop, and makes them if there are none. Returns NULL if it cannot make
 * them.
 */
struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop);

/* Forgets the timers of a loop that was closed. */
void twi_preload_forget(uv_loop_t *loop);

#endif
