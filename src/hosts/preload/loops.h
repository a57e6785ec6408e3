/* SPDX-License-Identifier: MIT */
/*
 * Which tw_uv_timers a loop has. They are the mark (mark.h) of the uv_async_t of its thread pool, which
 * uv_loop_init clears. So a loop in the memory of one that was never closed has none; what that one had
 * is lost, as the descriptors that libuv had for it are.
 */
#ifndef TWI_HOSTS_PRELOAD_LOOPS_H
#define TWI_HOSTS_PRELOAD_LOOPS_H

#include <tickwheel/uv_timer.h>
#include <uv.h>

/* Returns the timers of a loop, or NULL. */
struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop);

/* Returns the timers of a loop, and makes them if there are none. NULL: that is not possible. */
struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop);

/* The loop is closed. */
void twi_preload_forget(uv_loop_t *loop);

#endif
