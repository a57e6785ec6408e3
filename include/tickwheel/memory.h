/* SPDX-License-Identifier: MIT */
/**
 * @file memory.h
 * The source of the library's memory.
 *
 * Timeouts lie in slabs that belong to the process and are shared by all engines. Slabs are never
 * given back, so that a handle is safe to use at any later time. Engines and their wheels are given
 * back by tw_engine_destroy.
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
 * It serves all later allocations: slabs of timeouts and of slot entries, engines, wheels. An
 * engine uses the allocator that it was created with to allocate and give back its wheel and its
 * rings. A thread that schedules or cancels on an engine gets a ring of 8 KiB at its first call. If
 * the thread outruns the worker, the ring grows to 520 KiB, and it shrinks again after a long calm.
 * If there is no memory for a ring, or for a larger one, the engine works without it, a little
 * slower.
 *
 * Units: bytes.
 * Threads: any; `allocate` and `release` run in any thread that schedules or cancels and on the
 *   workers, and must not call the library.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: `allocator` is not copied.
 * Returns: 0; -EINVAL if a function is missing.
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
 * Allocates and touches memory in advance for `timeouts` timeouts that are pending at once. Up to
 * this number, no later schedule needs a system call or takes a page fault.
 *
 * Memory that the process already has counts. Slot entries belong to each engine and are allocated
 * only with use.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes, but slow.
 * Progress: lock-free, system calls.
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
