/* SPDX-License-Identifier: MIT */
/*
 * The one place for code that goes beyond ISO C, such as attributes and hints.
 */
#ifndef TWI_BASE_COMPILER_H
#define TWI_BASE_COMPILER_H

#define TWI_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TWI_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

/*
 * Makes the compiler keep the address in a register. Otherwise it may keep the parts that the
 * address is computed from, and compute it again.
 */
#define TWI_KEEP_ADDRESS(pointer) __asm__("" : "+r"(pointer))

/* Prefetches a line that will be read soon. */
#define TWI_PREFETCH(address) __builtin_prefetch(address)
/* Prefetches a line that will be written soon. */
#define TWI_PREFETCH_WRITE(address) __builtin_prefetch((address), 1)

/* Lets the other hardware thread of the core run. For a loop that waits for another thread. */
#if defined(__x86_64__) || defined(__i386__)
#define TWI_PAUSE() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define TWI_PAUSE() __asm__ volatile("yield")
#else
#define TWI_PAUSE() ((void)0)
#endif

/* For functions off the hot path: not inlined, and placed with the other cold code. */
#define TWI_COLD __attribute__((noinline, cold))

/*
 * Not inlined. Then the function itself saves the registers that it needs, and its callers need not
 * save them.
 */
#define TWI_NOINLINE __attribute__((noinline))
/* Inlined in each caller, so that the hot path is one function. */
#define TWI_ALWAYS_INLINE inline __attribute__((always_inline))

/* The format is argument number `at`. The arguments from number `from` on must match it. */
#define TWI_PRINTF(at, from) __attribute__((format(printf, at, from)))

/*
 * Run before main, or inside dlopen: FIRST before the other. In a program that is linked statically,
 * both run before the program's own constructors, because these may use the library.
 */
#define TWI_CONSTRUCTOR_FIRST __attribute__((constructor(101)))
#define TWI_CONSTRUCTOR __attribute__((constructor(102)))

/* A function that may be missing: if it is not defined, its address is NULL. */
#define TWI_WEAK __attribute__((weak))

/*
 * The role of the worker, for clang's -Wthread-safety. At any time one thread of an engine has the
 * role. The role is no lock, and generates no code. _ONLY: the caller must have the role. _FIELD:
 * only the thread with the role touches it. _BEGINS: the caller has the role from this call to the
 * end of its own function. _UNCHECKED: clang does not check the function. Either the function takes
 * the role, or no other thread knows the objects that it uses.
 */
#if defined(__clang__)
struct __attribute__((capability("role"))) twi_role {
	char none;
};
extern struct twi_role twi_worker_role; /* only a name for clang; it is never defined */
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

/* The size of a cache line. Data that two threads use must not share a line by accident. */
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
