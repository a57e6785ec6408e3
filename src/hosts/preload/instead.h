/* SPDX-License-Identifier: MIT */
/*
 * Redirects the adapter's calls of libuv to libuv's own functions. The preloaded library has its
 * own copy of the adapter (src/hosts), and this header is included before the first line of each of
 * its files. Otherwise the adapter's calls would reach the functions of preload.c, which have the
 * same names.
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
