/* SPDX-License-Identifier: MIT */
/*
 * The functions of libuv that the preloaded library replaces for the program.
 */
#ifndef TWI_HOSTS_PRELOAD_REAL_H
#define TWI_HOSTS_PRELOAD_REAL_H

#include "base/compiler.h"

#include <uv.h>

struct twi_uv_real {
	int (*timer_init)(uv_loop_t *loop, uv_timer_t *timer);
	int (*timer_start)(uv_timer_t *timer, uv_timer_cb callback, uint64_t timeout,
			   uint64_t repeat);
	int (*timer_stop)(uv_timer_t *timer);
	int (*timer_again)(uv_timer_t *timer);
	uint64_t (*timer_get_due_in)(const uv_timer_t *timer);
	int (*is_active)(const uv_handle_t *handle);
	void (*ref)(uv_handle_t *handle);
	void (*unref)(uv_handle_t *handle);
	void (*close)(uv_handle_t *handle, uv_close_cb closed);
	int (*loop_fork)(uv_loop_t *loop);
	int (*loop_close)(uv_loop_t *loop);
};

/*
 * A constructor fills in this struct. If another library's constructor calls libuv before that, the
 * first such call fills it in.
 */
extern struct twi_uv_real twi_uv_real;

void twi_uv_find(void);

static inline const struct twi_uv_real *twi_uv(void)
{
	if (TWI_UNLIKELY(twi_uv_real.timer_init == NULL))
		twi_uv_find();
	return &twi_uv_real;
}

#endif
