/* SPDX-License-Identifier: MIT */
/*
 * The memory of the model: the globals of library and harness, and the memory that the library
 * maps.
 *
 * Each piece of 8 bytes has a shadow. It records which fibers read and wrote the piece and when
 * (for the race detector), and whether it is contended. It also has the value at the begin of the
 * run, which is restored at the end, and the atomic objects in the piece.
 */
#ifndef MODEL_MEMORY_H
#define MODEL_MEMORY_H

#include "runtime/fiber.h"

/* Accesses to one byte, or to all bytes alike. */
struct plain_cell {
	uint32_t write_epoch; /* 0: none in this run */
	uint32_t write_fiber;
	uint32_t read_epoch[MODEL_FIBERS];
	const void *write_pc;
	const void *read_pc;
};

struct atomic_object;

struct granule {
	uint64_t run; /* the rest is of this run */
	/* Of all runs. */
	uint8_t readers;
	uint8_t writers;
	bool contended;

	bool saved;
	bool split; /* each byte has its own cell */
	struct plain_cell cell;
	struct plain_cell *part; /* of bytes 1 to 7 */
	struct atomic_object *objects;
};

/* Whether it is the model's memory: not a stack, not the runtime, not libc's. */
bool memory_tracked(const void *address);

/*
 * Whether an atomic access belongs to the run: not in setup, nor on the fiber's own stack. Anything
 * else that is not the model's memory ends the search: it would go unseen.
 */
bool memory_seen(const void *address);

/* The shadow of the piece that `address` lies in; fresh for this run. */
struct granule *memory_granule(const void *address);

/* The same where the memory may be released already: only its address counts. */
struct granule *memory_granule_any(const void *address);

/* Ordinary accesses; they come before the access itself. */
void memory_read(const void *address, size_t bytes, const void *pc);
void memory_write(const void *address, size_t bytes, const void *pc);

/* Records the fiber that touches the memory. Returns true if the memory is contended. */
bool memory_touch(struct granule *granule, bool writes);

/* Called before a write: the old value comes back at the end of the run. */
void memory_save(struct granule *granule, const void *address);

/* Races of an atomic access with ordinary ones. */
void memory_atomic_check(const void *address, size_t bytes, bool writes, const void *pc);

void memory_begin(void);
void memory_end(void);

/* mmap and munmap of the model. Released memory is never mapped again in the same run. */
void *memory_map(size_t bytes);
void memory_unmap(void *address, size_t bytes, const void *pc);

/* Zeroed memory that is not the model's. */
void *memory_of_runtime(size_t bytes);

void memory_init(void);

#endif
