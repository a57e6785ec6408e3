/* SPDX-License-Identifier: MIT */
/*
 * An atomic object, and the positions of its accesses in the order of all sequentially consistent
 * accesses.
 */
#ifndef MODEL_OBJECT_H
#define MODEL_OBJECT_H

#include "runtime/atomic.h"
#include "runtime/order.h"

struct store {
	uint64_t value;
	uint32_t epoch;
	uint32_t fiber;
	bool reads_previous; /* whether it is the store of a read-modify-write */
	/* both halves of a double swap have the same number; 0: no double swap */
	uint64_t pair;
	/* the last double swap among the read-modify-writes up to this store */
	uint64_t pair_heard;
	struct model_clock publishes;
	/* the fiber's epoch from which it has seen the store, or UNSEEN */
	uint32_t seen[MODEL_FIBERS];
	struct order_set writer;  /* the store itself, if it is sequentially consistent */
	struct order_set readers; /* the sequentially consistent loads that have read it */
};

struct atomic_object {
	struct atomic_object *next; /* the next object in the same piece of memory */
	char *address;
	size_t bytes;
	unsigned count;
	/* sequentially consistent accesses read no store before this one */
	unsigned order_floor;
	/* sequentially consistent accesses of stores that the object no longer keeps */
	struct order_set forgotten;
	struct atomic_object *other_half;
	bool plainly_written; /* whether the value of the last store is in memory */
	uint32_t load_epoch[MODEL_FIBERS];
	uint32_t store_epoch[MODEL_FIBERS];
	const void *pc;
	struct store store[ATOMIC_HISTORY];
};

/* The position of a load of the store at `at` among the sequentially consistent accesses. */
struct standing {
	struct order_set before;
	struct order_set after;
};

struct standing object_standing(const struct atomic_object *object, unsigned at);

/* Returns whether a sequentially consistent store may be put at `at`, before the later accesses. */
bool object_store_stands(const struct atomic_object *object, unsigned at);

/* Records a sequentially consistent load, or a failed compare-and-swap. */
void object_load_order(struct atomic_object *object, unsigned at);

/* Records a sequentially consistent store, before the object has it. */
void object_store_order(struct atomic_object *object, unsigned at, struct order_set *ret_writer);

#endif
