/* SPDX-License-Identifier: MIT */
/**
 * @file memory.h
 * The library's memory: its allocator, its bound, and its reservation.
 *
 * Timeouts lie in slabs, which all engines of the process share. The library never gives slabs
 * back, so that a handle is safe to use at any later time. tw_engine_destroy gives back the memory
 * of the engine and of its wheel.
 */
#ifndef TICKWHEEL_MEMORY_H
#define TICKWHEEL_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** An allocator; keep it alive for the rest of the process. */
struct tw_allocator {
	/** Returns `bytes` of memory at a multiple of `align` (a power of two), or NULL. The memory
	 * need not be zeroed. */
	void *(*allocate)(void *context, size_t bytes, size_t align);
	/** Takes back memory that `allocate` returned, with the same `bytes` and `align`. Never
	 * called for slabs of timeouts. */
	void (*release)(void *context, void *memory, size_t bytes, size_t align);
	void *context;
};

/**
 * Sets the allocator of the process; NULL sets the built-in one (mmap, with huge pages if the
 * system allows them) again.
 *
 * The allocator serves all later allocations: slabs of timeouts and of slot entries, engines,
 * wheels. An engine keeps the allocator that was set at its creation: it allocates and gives back
 * its wheel and its rings with that one. A thread that schedules or cancels on an engine gets a
 * ring of 8 KiB at its first call. If the thread outruns the worker, the ring grows to 520 KiB, and
 * it shrinks again after a long calm. If there is no memory for a ring, or for a larger one, the
 * engine works without it, a little slower.
 *
 * Units: bytes.
 * Threads: any. `allocate` and `release` run on the workers and in any thread that schedules or
 *   cancels; they must not call the library. The thread cannot be cancelled (pthread_cancel)
 *   inside them.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: `allocator` is not copied.
 * Returns: 0; -EINVAL if `allocate` or `release` is NULL.
 * Since: 0.1.0.
 */
TW_API int tw_memory_allocator_set(const struct tw_allocator *allocator);

/**
 * Bounds the slabs of timeouts of the process; 0 removes the bound (as it is at first).
 *
 * If a schedule would need a slab beyond the bound, it returns -ENOMEM. Free memory in existing
 * slabs can always be used. If the bound is set below the memory that exists, no slab is given
 * back.
 *
 * Units: bytes of slabs, rounded down to whole slabs.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0.
 * Since: 0.1.0.
 */
TW_API int tw_memory_cap_set(uint64_t bytes);

/**
 * Allocates memory for `timeouts` timeouts in advance, and touches it. While no more timeouts than
 * that are pending at once, no schedule needs a system call or takes a page fault for their memory.
 *
 * Slabs that the process already has count towards the number. Slot entries are not included: each
 * engine allocates its own when it needs them.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes, but slow.
 * Progress: lock-free; makes system calls.
 * Lifetime: for the rest of the process.
 * Returns: 0; -ENOMEM: the memory allocated until then stays.
 * Since: 0.1.0.
 */
TW_API int tw_memory_reserve(uint64_t timeouts);

/**
 * Returns the bytes of all slabs of timeouts that the process holds.
 *
 * Units: bytes.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the number.
 * Since: 0.1.0.
 */
TW_API uint64_t tw_memory_slab_bytes(void);

TW_END_DECLS

#endif
