/* SPDX-License-Identifier: MIT */
/*
 * Included before the first line of the adapter (src/hosts), in its copy for the preloaded library: it
 * calls libuv by these names, and must not come to the functions that stand before libuv's.
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
