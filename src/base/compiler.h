/* SPDX-License-Identifier: MIT */
/*
 * The one place for what goes beyond ISO C: attributes, hints, the storage class of thread data.
 */
#ifndef TWI_BASE_COMPILER_H
#define TWI_BASE_COMPILER_H

#define TWI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TWI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * The compiler forgets what an address was computed from, and keeps it in a register in place of its
 * parts.
 */
#define TWI_KEEP_ADDRESS(pointer) __asm__("" : "+r"(pointer))

/* Asks for a line that will be read soon. */
#define TWI_PREFETCH(address) __builtin_prefetch(address)
/* Asks for a line that will be written soon. */
#define TWI_PREFETCH_WRITE(address) __builtin_prefetch((address), 1)

/* In a loop that waits for another thread: leaves the processor's other half alone. */
#if defined(__x86_64__) || defined(__i386__)
#define TWI_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define TWI_PAUSE() __asm__ volatile("yield")
#else
#define TWI_PAUSE() ((void)0)
#endif

/* Out of the hot path: not inlined, placed with the other cold code. */
#define TWI_COLD __attribute__((noinline, cold))

/* Not inlined: its registers are saved where it is needed, not by its callers. */
#define TWI_APART __attribute__((noinline))
/* In each caller: the hot path is one function. */
#define TWI_TOGETHER inline __attribute__((always_inline))

/* The arguments from number `from` on are as the format, number `at`, says. */
#define TWI_PRINTF(at, from) __attribute__((format(printf, at, from)))

/* Runs before main, or inside dlopen. */
#define TWI_CONSTRUCTOR __attribute__((constructor))
/* The same, before the program's own constructors, which may use the library. */
#define TWI_CONSTRUCTOR_FIRST __attribute__((constructor(101)))

/* A function whose address is NULL where nobody defines it. */
#define TWI_WEAK __attribute__((weak))

/*
 * The role of the worker, which one thread of an engine has at a time, for clang's -Wthread-safety.
 * It is no lock, and no code comes of it. _ONLY: the caller has the role. _FIELD: touched by who has
 * it. _BEGINS: the caller has it from here to its own end. _UNCHECKED: not judged, for the step
 * into the role and for what no other thread knows, not yet or no longer.
 */
#if defined(__clang__)
struct __attribute__((capability("role"))) twi_role {
	char none;
};
extern struct twi_role twi_worker_role; /* a name; never defined */
#define TWI_WORKER_ONLY __attribute__((requires_capability(twi_worker_role)))
#define TWI_WORKER_FIELD __attribute__((guarded_by(twi_worker_role)))
#define TWI_WORKER_BEGINS __attribute__((assert_capability(twi_worker_role)))
#define TWI_WORKER_UNCHECKED __attribute__((no_thread_safety_analysis))
#else
#define TWI_WORKER_ONLY
#define TWI_WORKER_FIELD
#define TWI_WORKER_BEGINS
#define TWI_WORKER_UNCHECKED
#endif

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
