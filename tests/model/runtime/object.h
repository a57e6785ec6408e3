/* SPDX-License-Identifier: MIT */
/* An atomic object, and the places of its accesses in the order of all seq_cst accesses. */
#ifndef MODEL_OBJECT_H
#define MODEL_OBJECT_H

#include "runtime/atomic.h"
#include "runtime/order.h"

struct store {
	uint64_t value;
	uint32_t epoch;
	uint32_t fiber;
	bool reads_previous; /* of a read-modify-write */
	uint64_t pair;       /* of a double swap: both halves have this number; else 0 */
	uint64_t pair_heard; /* the last double swap in the read-modify-writes up to here */
	struct model_clock publishes;
	uint32_t seen[MODEL_FIBERS]; /* since which epoch of that fiber, or UNSEEN */
	struct order_set writer;     /* where sequentially consistent: the store itself, */
	struct order_set readers;    /* and the fibers that have read it so */
};

struct atomic_object {
	struct atomic_object *next; /* in its piece of memory */
	char *address;
	size_t bytes;
	unsigned count;
	unsigned order_floor;       /* for sequentially consistent accesses: none before this one */
	struct order_set forgotten; /* sequentially consistent, of stores that are */
	struct atomic_object *other_half;
	bool plainly_written; /* the value of the last store is what memory has */
	uint32_t load_epoch[MODEL_FIBERS];
	uint32_t store_epoch[MODEL_FIBERS];
	const void *pc;
	struct store store[ATOMIC_HISTORY];
};

/* Where a load of the store at `at` stands among the sequentially consistent accesses. */
struct standing {
	struct order_set before;
	struct order_set after;
};

struct standing object_standing(const struct atomic_object *object, unsigned at);

/* A load, or a failed compare-and-swap, that is sequentially consistent. */
void object_load_order(struct atomic_object *object, unsigned at);

/* A store, before it is there. */
void object_store_order(struct atomic_object *object, unsigned at, struct order_set *ret_writer);

#endif
