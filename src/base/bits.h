/* SPDX-License-Identifier: MIT */
/*
 * Powers of two, and bitmaps of 64-bit words.
 */
#ifndef TWI_BASE_BITS_H
#define TWI_BASE_BITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TWI_BITS_NONE SIZE_MAX

/* Returns the smallest power of two that is not below `value`, for 1 <= value <= 2^31. */
static inline uint32_t twi_round_up_pow2(uint32_t value)
{
	return value <= 1 ? 1 : UINT32_C(1) << (32 - __builtin_clz(value - 1));
}

static inline size_t twi_bitmap_words(size_t bits)
{
	return (bits + 63) / 64;
}

static inline void twi_bitmap_set(uint64_t *words, size_t bit)
{
	words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline void twi_bitmap_clear(uint64_t *words, size_t bit)
{
	words[bit / 64] &= ~(UINT64_C(1) << (bit % 64));
}

static inline bool twi_bitmap_test(const uint64_t *words, size_t bit)
{
	return (words[bit / 64] >> (bit % 64)) & 1;
}

/*
 * Returns the first set bit in [from, bits), or TWI_BITS_NONE. No bit at or beyond `bits` may be
 * set.
 */
static inline size_t twi_bitmap_next(const uint64_t *words, size_t bits, size_t from)
{
	size_t word = from / 64;
	uint64_t rest;

	if (from >= bits)
		return TWI_BITS_NONE;
	rest = words[word] & (~UINT64_C(0) << (from % 64));
	while (rest == 0) {
		if (++word == twi_bitmap_words(bits))
			return TWI_BITS_NONE;
		rest = words[word];
	}
	return word * 64 + (size_t)__builtin_ctzll(rest);
}

#endif
