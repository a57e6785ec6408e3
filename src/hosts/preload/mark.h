/* SPDX-License-Identifier: MIT */
/*
 * A pointer of ours in a handle of libuv. There are two fields that libuv leaves alone in the handles
 * concerned: timers, and the uv_async_t that each loop has for its thread pool. The second one holds a
 * check, because a handle that was initialised past this library has any bytes there.
 */
#ifndef TWI_HOSTS_PRELOAD_MARK_H
#define TWI_HOSTS_PRELOAD_MARK_H

#include "hosts/preload/real.h"

#include <stddef.h>
#include <stdint.h>

/* Their places in `u.reserved`. `u.fd`, which libuv may use, is in the first one. */
enum { TWI_MARK_CHECK = 2, TWI_MARK = 3 };

static inline void *twi_mark_check(const uv_handle_t *handle, const void *pointer)
{
	return (void *)((uintptr_t)handle ^ (uintptr_t)pointer ^ (uintptr_t)&twi_uv_real);
}

/* Sets the pointer, or NULL for none. */
static inline void twi_mark_set(uv_handle_t *handle, void *pointer)
{
	handle->u.reserved[TWI_MARK] = pointer;
	handle->u.reserved[TWI_MARK_CHECK] =
		pointer == NULL ? NULL : twi_mark_check(handle, pointer);
}

/* Returns the pointer, or NULL. */
static inline void *twi_mark_get(const uv_handle_t *handle)
{
	void *pointer = handle->u.reserved[TWI_MARK];

	return pointer != NULL &&
			       handle->u.reserved[TWI_MARK_CHECK] == twi_mark_check(handle, pointer)
		       ? pointer
		       : NULL;
}

#endif
