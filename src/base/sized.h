/* SPDX-License-Identifier: MIT */
/*
 * Public structs carry their size, so that the program and the library may be of different
 * versions.
 */
#ifndef TWI_BASE_SIZED_H
#define TWI_BASE_SIZED_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/*
 * The most bytes that a public struct may have, now and later. A greater size from a caller is an
 * error. So a wrong size never makes the library read more bytes than this.
 */
#define TWI_STRUCT_BYTES_MAX 4096

/*
 * Returns whether the bytes of the caller's struct beyond `known` are all zero. The caller's struct
 * may be longer than this version's.
 */
static inline bool twi_tail_zero(const void *object, size_t known, size_t size)
{
	const unsigned char *bytes = object;

	for (size_t at = known; at < size; at++) {
		if (bytes[at] != 0)
			return false;
	}
	return true;
}

/* Fills a struct of the caller's size from a struct of this version. Sets the rest to zero. */
static inline void twi_copy_out(void *ret, size_t size, const void *object, size_t known)
{
	memset(ret, 0, size);
	memcpy(ret, object, size < known ? size : known);
}

/*
 * Checks a struct of the caller's size. This version needs its first `least` bytes and knows
 * `known` bytes. Returns 0; -EINVAL if the struct is too short; -E2BIG if it has more than
 * TWI_STRUCT_BYTES_MAX bytes, or an unknown byte that is not zero.
 */
static inline int twi_size_check(const void *object, size_t size, size_t least, size_t known)
{
	if (size < least)
		return -EINVAL;
	if (size > TWI_STRUCT_BYTES_MAX || !twi_tail_zero(object, known, size))
		return -E2BIG;
	return 0;
}

/*
 * Fills options of the caller's size with the defaults. The first field of each options struct is
 * its size.
 */
static inline int twi_options_fill(void *ret, size_t size, size_t least, const void *defaults,
				   size_t known)
{
	if (ret == NULL || size < least)
		return -EINVAL;
	if (size > TWI_STRUCT_BYTES_MAX)
		return -E2BIG;
	twi_copy_out(ret, size, defaults, known);
	*(size_t *)ret = size;
	return 0;
}

#endif
