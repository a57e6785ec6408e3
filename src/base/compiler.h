/* SPDX-License-Identifier: MIT */
/*
 * The one place for what goes beyond ISO C: attributes, hints, the storage class of thread data.
 */
#ifndef TWI_BASE_COMPILER_H
#define TWI_BASE_COMPILER_H

#define TWI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TWI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/* Asks for a line that will be written soon. */
#define TWI_PREFETCH_WRITE(address) __builtin_prefetch((address), 1)

/* Out of the hot path: not inlined, placed with the other cold code. */
#define TWI_COLD __attribute__((noinline, cold))

/* Runs before main, or inside dlopen. */
#define TWI_CONSTRUCTOR __attribute__((constructor))

/* What two threads must not share by accident. */
#define TWI_CACHE_LINE 64
#define TWI_CACHE_ALIGNED _Alignas(TWI_CACHE_LINE)

#define TWI_CONTAINER_OF(pointer, type, member)                                                    \
	((type *)(void *)((char *)(pointer)-offsetof(type, member)))

#if defined(__SANITIZE_THREAD__)
#define TWI_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TWI_TSAN 1
#endif
#endif
#ifndef TWI_TSAN
#define TWI_TSAN 0
#endif

#endif
