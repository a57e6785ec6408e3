/* SPDX-License-Identifier: MIT */
/*
 * Fresh timeouts. Between its polls the owner's latest few timeouts wait outside the wheel, because
 * many are cancelled so soon that filing them would be wasted. They move into the wheel at the next
 * poll, or earlier: for example when `fresh` is full, or when a caller reads the next due time.
 *
 * They are kept in the order in which they were scheduled, and get their sequence numbers when they
 * move into the wheel. The number follows from the position, so a removed timeout must leave a
 * hole. If a timeout in the wheel is rescheduled meanwhile, it takes the number of the next
 * position.
 */
#ifndef TWI_TURN_FRESH_H
#define TWI_TURN_FRESH_H

#include "base/atomic.h"
#include "worker/worker.h"

/*
 * What a position holds instead of a node: TWI_FRESH_REMOVED if its timeout was removed,
 * TWI_FRESH_NUMBERED if a timeout in the wheel has taken its number.
 */
#define TWI_FRESH_REMOVED ((struct twi_node *)0)
#define TWI_FRESH_NUMBERED ((struct twi_node *)1)

static inline bool twi_fresh_is_node(const struct twi_node *node)
{
	return (uintptr_t)node > (uintptr_t)TWI_FRESH_NUMBERED;
}

/* Moves the fresh timeouts into the wheel. Must be called before any look at the wheel. */
TWI_WORKER_ONLY void twi_fresh_flush(struct twi_worker *worker);

/*
 * Frees positions when `fresh` is full: closes the holes that removed timeouts left. If there are
 * no such holes, or a position is TWI_FRESH_NUMBERED, moves all timeouts into the wheel.
 */
TWI_WORKER_ONLY void twi_fresh_make_room(struct twi_worker *worker);

/* Returns the sequence number for a timeout in the wheel that the owner reschedules now. */
TWI_WORKER_ONLY uint64_t twi_fresh_sequence(struct twi_worker *worker);

/*
 * Computes fresh_after_ns, which the short path of schedule compares with deadlines. INT64_MAX
 * closes that path: inside a turn, because no timeout may become fresh there, and in an engine with
 * a pending limit, because the path does not check it. Must be called when sleep_published,
 * wake_before_ns or direct_from_ns changes.
 */
static inline TWI_WORKER_ONLY void twi_fresh_update(struct twi_worker *worker)
{
	int64_t after_ns = -1;

	/* RELAXED: only the worker writes wake_before_ns. */
	if (worker->sleep_published && twi_load_relaxed(&worker->wake_before_ns) > 0)
		after_ns = twi_load_relaxed(&worker->wake_before_ns) - 1; /* RELAXED: as above. */
	if (worker->direct_from_ns != INT64_MIN || worker->pending_limit != 0)
		after_ns = INT64_MAX;
	worker->fresh_after_ns = after_ns;
}

/* Adds a node to the fresh timeouts. There must be a free position. */
static inline TWI_WORKER_ONLY void twi_fresh_put(struct twi_worker *worker, struct twi_node *node)
{
	node->place = worker->fresh_count * (uintptr_t)TWI_BLOCK_BYTES | TWI_PLACE_FRESH;
	worker->fresh[worker->fresh_count++] = node;
}

static inline TWI_WORKER_ONLY void twi_fresh_add(struct twi_worker *worker, struct twi_node *node)
{
	if (TWI_UNLIKELY(worker->fresh_count == TWI_FRESH_MAX))
		twi_fresh_make_room(worker);
	twi_fresh_put(worker, node);
}

/* Removes a fresh timeout. */
static inline TWI_WORKER_ONLY void twi_fresh_remove(struct twi_worker *worker,
						    const struct twi_node *node)
{
	uint32_t index = (uint32_t)(node->place / TWI_BLOCK_BYTES);

	worker->fresh[index] = TWI_FRESH_REMOVED;
	if (index + 1 != worker->fresh_count)
		return;
	while (index > 0 && worker->fresh[index - 1] == TWI_FRESH_REMOVED)
		index--;
	worker->fresh_count = index;
}

/* Moves a fresh timeout behind all others, because it was rescheduled and gets a new number. */
static inline TWI_WORKER_ONLY void twi_fresh_renew(struct twi_worker *worker, struct twi_node *node)
{
	twi_fresh_remove(worker, node);
	twi_fresh_add(worker, node);
}

#endif
