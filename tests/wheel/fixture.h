/* SPDX-License-Identifier: MIT */
/*
 * A wheel without an engine: nodes with deadlines, an allocator that can fail, and the wheel's own
 * check, which the tests call the judge.
 */
#ifndef WHEEL_FIXTURE_H
#define WHEEL_FIXTURE_H

#include "memory/pool.h"
#include "timeout/node.h"
#include "wheel/wheel.h"

#include <stdbool.h>
#include <stdint.h>

enum { TICK_NS = 1000 };

struct wheel_fixture {
	struct twi_wheel *wheel;
	struct twi_stock stock;
	struct tw_allocator allocator;
	bool memory_fails;
	struct twi_node *due[TWI_CHUNK_ENTRIES];
	struct twi_due_batch batch;
};

/*
 * Opens a wheel. Only a hashed wheel uses `slots`. The build chooses the wheel, and both wheels
 * must pass the same tests.
 */
TWI_WORKER_BEGINS void wheel_open(struct wheel_fixture *fixture, uint32_t slots);
TWI_WORKER_ONLY void wheel_close(struct wheel_fixture *fixture);

/* Makes a node that is due at the boundary of tick `due_tick`. */
struct twi_node *wheel_node(struct wheel_fixture *fixture, uint64_t due_tick);

/* Makes such a node and inserts it into the wheel. */
TWI_WORKER_ONLY struct twi_node *wheel_insert(struct wheel_fixture *fixture, uint64_t due_tick);

void wheel_free(struct wheel_fixture *fixture, struct twi_node *node);

/* Advances by batches until the wheel gives no more nodes to `take`. Returns how many nodes it
 * gave. */
TWI_WORKER_ONLY uint64_t wheel_advance(struct wheel_fixture *fixture, uint64_t limit,
				       void (*take)(void *context, struct twi_node *node),
				       void *context);

/* Fails the test if the wheel's check finds an error. */
TWI_WORKER_ONLY void wheel_judge(const struct wheel_fixture *fixture);

#endif
