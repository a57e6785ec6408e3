/* SPDX-License-Identifier: MIT */
/*
 * Public structs carry their size, so that callers and library may be of different versions.
 */
#ifndef TWI_BASE_SIZED_H
#define TWI_BASE_SIZED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* No version of a struct will have more bytes, so no memory beyond is touched. */
#define TWI_STRUCT_BYTES_MAX 4096

/* Whether the bytes that the caller knows and this version does not are all zero. */
static inline bool twi_tail_zero(const void *object, size_t known, size_t size)
{
	const unsigned char *bytes = object;

	for (size_t at = known; at < size; at++) {
		if (bytes[at] != 0)
			return false;
	}
	return true;
}

/* Fills a struct of the caller's size from a struct of this version. The rest is zero. */
static inline void twi_copy_out(void *ret, size_t size, const void *object, size_t known)
{
	memset(ret, 0, size);
	memcpy(ret, object, size < known ? size : known);
}

#endif
