/* SPDX-License-Identifier: MIT */
/*
 * The memory of the model: the globals of library and harness, and the memory that the library
 * maps.
 *
 * Each piece of 8 bytes has a shadow. For the race detector it records which fibers read and wrote
 * the piece, when, and whether the piece is contended. It also has the value at the beginning of
 * the run, which is restored at the end, and the atomic objects in the piece.
 */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include "runtime/fiber.h"

/*
 * Describes the last accesses to one byte, or to all bytes of a piece if they are always accessed
 * together.
 */
struct plain_cell {
	uint32_t write_epoch; /* 0: no write in this run */
	uint32_t write_fiber;
	uint32_t read_epoch[MODEL_FIBERS];
	const void *write_pc;
	const void *read_pc;
};

struct atomic_object;

struct granule {
	uint64_t run; /* the fields below are valid for this run */
	/* These fields are valid for all runs. */
	uint8_t readers;
	uint8_t writers;
	bool contended;

	bool saved;
	bool split; /* each byte has a cell of its own */
	struct plain_cell cell;
	struct plain_cell *part; /* the cells of bytes 1 to 7 */
	struct atomic_object *objects;
};

/*
 * Returns whether the address is in the model's memory. Stacks, the runtime and libc are not part
 * of it.
 */
bool memory_tracked(const void *address);

/*
 * Returns whether an atomic access is part of the run. It is not part of it during setup, or if it
 * is on the fiber's own stack. Any other access outside the model's memory ends the search, because
 * the model would not see it.
 */
bool memory_seen(const void *address);

/* Returns the shadow of the piece that contains `address`, reset for this run. */
struct granule *memory_granule(const void *address);

/* Returns the same for memory that may be released already. Reads nothing at that address. */
struct granule *memory_granule_any(const void *address);

/* Record ordinary accesses. Called before the access. */
void memory_read(const void *address, size_t bytes, const void *pc);
void memory_write(const void *address, size_t bytes, const void *pc);

/* Records the fiber that touches the memory. Returns true if the memory is contended. */
bool memory_touch(struct granule *granule, bool writes);

/* Called before a write: saves the old value, which is restored at the end of the run. */
void memory_save(struct granule *granule, const void *address);

/* Checks an atomic access for races with ordinary ones. */
void memory_atomic_check(const void *address, size_t bytes, bool writes, const void *pc);

void memory_begin(void);
void memory_end(void);

/* Implement mmap and munmap of the model. Released memory is never mapped again in the same run. */
void *memory_map(size_t bytes);
void memory_unmap(void *address, size_t bytes, const void *pc);

/* Returns zeroed memory that is not the model's. */
void *memory_of_runtime(size_t bytes);

void memory_init(void);

#endif
