/* SPDX-License-Identifier: MIT */
/*
 * In the preloaded library, each source of the adapter (src/hosts) is compiled with this header in
 * front. The adapter's calls of these functions must reach libuv. By name they would reach the
 * functions of preload.c.
 */
#ifndef TWI_HOSTS_PRELOAD_INSTEAD_H
#define TWI_HOSTS_PRELOAD_INSTEAD_H

#include "hosts/preload/real.h"

#define uv_timer_init twi_uv_real.timer_init
#define uv_timer_start twi_uv_real.timer_start
#define uv_timer_stop twi_uv_real.timer_stop
#define uv_ref twi_uv_real.ref
#define uv_unref twi_uv_real.unref
#define uv_close twi_uv_real.close

#endif
