/* SPDX-License-Identifier: MIT */
/**
 * @file memory.h
 * Where the library's memory comes from.
 *
 * Timeouts live in slabs that belong to the process, are shared by all engines and are never given
 * back: this is what makes a handle safe to use at any later time. Engines and their wheels are
 * given back by tw_engine_destroy.
 */
#ifndef TICKWHEEL_MEMORY_H
#define TICKWHEEL_MEMORY_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** An allocator; keep it alive for the rest of the process. */
struct tw_allocator {
	/** Returns `bytes` of memory at a multiple of `align` (a power of two), or NULL. Need not
	 * be zeroed. */
	void *(*allocate)(void *context, size_t bytes, size_t align);
	/** Takes back what `allocate` gave, with the same numbers. Never called for slabs of
	 * timeouts. */
	void (*release)(void *context, void *memory, size_t bytes, size_t align);
	void *context;
};

/**
 * Sets the allocator of the process; NULL sets the built-in one (mmap, with huge pages where the
 * system allows them) again.
 *
 * It serves what is allocated from then on: slabs of timeouts and of slot entries, engines, wheels.
 * An engine allocates and gives back through the allocator that it was created with: its wheel, and
 * for each thread that schedules or cancels on it a ring of 512 KiB, at that thread's first call.
 * Where there is no memory for a ring the engine does without, a little slower.
 *
 * Units: bytes.
 * Threads: any; `allocate` runs in any thread that schedules or cancels and on the workers, and must
 *   not call the library.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: `allocator` is not copied.
 * Returns: 0; -EINVAL when a function is missing.
 * Since: 0.1.0.
 */
TW_API int tw_memory_allocator_set(const struct tw_allocator *allocator);

/**
 * Bounds the slabs of timeouts of the process; 0 takes the bound away (as it begins).
 *
 * A schedule that would need a slab beyond the bound returns -ENOMEM; what is free in slabs that
 * exist can always be used. Slabs are not given back when the bound is set below what exists.
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
 * Allocates and touches memory ahead, so that `timeouts` of them can be pending at once without a
 * system call or page fault in any later schedule.
 *
 * Counts what the process has already. Slot entries are the engine's: they warm up with use.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes, but slow.
 * Progress: lock-free, system calls.
 * Lifetime: for the rest of the process.
 * Returns: 0; -ENOMEM, what was allocated until then stays.
 * Since: 0.1.0.
 */
TW_API int tw_memory_reserve(uint64_t timeouts);

/**
 * Bytes of all slabs of timeouts that the process holds.
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
