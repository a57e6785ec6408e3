/* SPDX-License-Identifier: MIT */
/*
 * Fresh timeouts. Between its polls the owner's latest few timeouts wait outside the wheel, because
 * many are cancelled at once. They move in when `fresh` is full, at the next poll, or when a caller
 * reads the next due time.
 */
#ifndef TWI_TURN_FRESH_H
#define TWI_TURN_FRESH_H

#include "base/atomic.h"
#include "worker/worker.h"

/* Moves the fresh timeouts into the wheel. Must come before any look at the wheel. */
TWI_WORKER_ONLY void twi_fresh_flush(struct twi_worker *worker);

/*
 * Computes fresh_after_ns. Must be called when a value changes on which it depends. Inside a turn
 * no timeout becomes fresh: each goes straight into the wheel.
 */
static inline TWI_WORKER_ONLY void twi_fresh_update(struct twi_worker *worker)
{
	int64_t after_ns = -1;

	/* RELAXED: only the worker writes it. */
	if (worker->sleep_published && twi_load_relaxed(&worker->wake_before_ns) > 0)
		after_ns = twi_load_relaxed(&worker->wake_before_ns) - 1; /* RELAXED: as above. */
	if (worker->direct_from_ns != INT64_MIN || worker->pending_limit != 0)
		after_ns = INT64_MAX;
	worker->fresh_after_ns = after_ns;
}

/* Must be called only if `fresh` is not full. */
static inline TWI_WORKER_ONLY void twi_fresh_put(struct twi_worker *worker, struct twi_node *node)
{
	node->place = worker->fresh_count * (uintptr_t)TWI_BLOCK_BYTES | TWI_PLACE_FRESH;
	worker->fresh[worker->fresh_count++] = node;
}

static inline TWI_WORKER_ONLY void twi_fresh_add(struct twi_worker *worker, struct twi_node *node)
{
	if (TWI_UNLIKELY(worker->fresh_count == TWI_FRESH_MAX))
		twi_fresh_flush(worker);
	twi_fresh_put(worker, node);
}

/* Removes a fresh timeout. The last one takes its place. */
static inline TWI_WORKER_ONLY void twi_fresh_remove(struct twi_worker *worker,
						    const struct twi_node *node)
{
	uintptr_t place = node->place;
	struct twi_node *last = worker->fresh[--worker->fresh_count];

	worker->fresh[place / TWI_BLOCK_BYTES] = last;
	last->place = place;
}

#endif
