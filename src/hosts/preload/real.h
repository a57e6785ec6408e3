/* SPDX-License-Identifier: MIT */
/* libuv's own functions, for the calls that the preloaded library replaces. */
#ifndef TWI_HOSTS_PRELOAD_REAL_H
#define TWI_HOSTS_PRELOAD_REAL_H

#include <uv.h>

/* All pointers are NULL in a program without libuv, which makes none of these calls. */
struct twi_uv_real {
	int (*timer_init)(uv_loop_t *loop, uv_timer_t *timer);
	int (*timer_start)(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout,
			   uint64_t repeat);
	int (*timer_stop)(uv_timer_t *timer);
	int (*timer_again)(uv_timer_t *timer);
	void (*timer_set_repeat)(uv_timer_t *timer, uint64_t repeat);
	uint64_t (*timer_get_due_in)(const uv_timer_t *timer);
	int (*is_active)(const uv_handle_t *handle);
	int (*has_ref)(const uv_handle_t *handle);
	void (*ref)(uv_handle_t *handle);
	void (*unref)(uv_handle_t *handle);
	void (*close)(uv_handle_t *handle, uv_close_cb closed);
	void (*walk)(uv_loop_t *loop, uv_walk_cb visit, void *context);
	int (*loop_init)(uv_loop_t *loop);
	int (*loop_close)(uv_loop_t *loop);
};

extern struct twi_uv_real twi_uv_real;

#endif
