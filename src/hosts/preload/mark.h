/* SPDX-License-Identifier: MIT */
/*
 * A mark: a pointer of ours in a handle of libuv. It lies in two fields that libuv does not use in
 * the handles that have marks: in timers, and in the uv_async_t that each loop has for its thread
 * pool. The second field has a check of the pointer, because a handle that was initialised without
 * this library may have any bytes in these fields.
 */
#ifndef TWI_HOSTS_PRELOAD_MARK_H
#define TWI_HOSTS_PRELOAD_MARK_H

#include "hosts/preload/real.h"

#include <stddef.h>
#include <stdint.h>

/*
 * The two fields are elements of `u.reserved`. The first element overlaps `u.fd`, which libuv may
 * use.
 */
enum { TWI_MARK_CHECK = 2, TWI_MARK = 3 };

static inline void *twi_mark_check(const uv_handle_t *handle, const void *pointer)
{
	return (void *)((uintptr_t)handle ^ (uintptr_t)pointer ^ (uintptr_t)&twi_uv_real);
}

/* Sets the mark. NULL removes it. */
static inline void twi_mark_set(uv_handle_t *handle, void *pointer)
{
	handle->u.reserved[TWI_MARK] = pointer;
	handle->u.reserved[TWI_MARK_CHECK] =
		pointer == NULL ? NULL : twi_mark_check(handle, pointer);
}

/* Returns the pointer, or NULL if the handle has no mark. */
static inline void *twi_mark_get(const uv_handle_t *handle)
{
	void *pointer = handle->u.reserved[TWI_MARK];

	return pointer != NULL &&
			       handle->u.reserved[TWI_MARK_CHECK] == twi_mark_check(handle, pointer)
		       ? pointer
		       : NULL;
}

#endif
