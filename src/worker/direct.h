/* SPDX-License-Identifier: MIT */
/*
 * The short way: what the worker's own thread schedules and cancels needs no ingress, since the wheel
 * is its own. In loop mode that is the owner, between polls and in callbacks; with a worker thread,
 * the callbacks that run on it.
 *
 * Fresh ones. Between its polls the owner's latest few timeouts wait outside the wheel, since many are
 * cancelled at once; a full room, the next poll, or a look at what is due next moves them in.
 *
 * A wheel may be changed between two advances, and only there callbacks run. Two things still go the
 * long way. Inside a turn, a timeout for the past, scheduled or rescheduled: the turn would come to it
 * again, and perhaps never end. And the cancel of one that has left the wheel with a batch that is
 * under way: the batch still names its node, which reclaim frees in a later turn.
 */
#ifndef TWI_WORKER_DIRECT_H
#define TWI_WORKER_DIRECT_H

#include "base/atomic.h"
#include "worker/worker.h"

#include <stdbool.h>

/* The word of this timeout, which is only its owner's. */
static inline bool twi_owned_word(uint64_t word, uint64_t birth)
{
	return (word & ~TWI_WORD_RESCHEDULED) == twi_word_to(birth, TWI_WORD_OWNED);
}

/* A timeout that is only its owner's, in the wheel that `thread` knows: nothing can go wrong. */
static inline bool twi_owned_here(struct tw_handle handle, const struct twi_thread *thread)
{
	struct twi_node *node = twi_node_of_handle(handle);
	const struct twi_worker *worker = thread->wheel_of;

	/* RELAXED: this thread has written it, if so; and only it raises `sweeping`. */
	return worker != NULL && twi_owned_word(twi_load_relaxed(&node->word), handle.birth) &&
	       twi_node_worker(node) == worker && !twi_load_relaxed(&worker->sweeping);
}

/* Whether a timeout of the calling thread, the worker's own, goes the short way. */
static inline TWI_WORKER_ONLY bool twi_direct_fits(const struct twi_worker *worker,
						   int64_t deadline_ns)
{
	return deadline_ns >= worker->direct_from_ns;
}

/* After a change of what it hangs on. Inside a turn the wheel is what counts. */
static inline TWI_WORKER_ONLY void twi_fresh_judge(struct twi_worker *worker)
{
	int64_t after_ns = -1;

	/* RELAXED: the worker's own. */
	if (worker->said && twi_load_relaxed(&worker->wake_before_ns) > 0)
		after_ns = twi_load_relaxed(&worker->wake_before_ns) - 1; /* RELAXED: as above. */
	if (worker->direct_from_ns != INT64_MIN || worker->pending_limit != 0)
		after_ns = INT64_MAX;
	worker->fresh_after_ns = after_ns;
}

/* Where there is room. */
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

/* The last one takes its place. */
static inline TWI_WORKER_ONLY void twi_fresh_remove(struct twi_worker *worker,
						    const struct twi_node *node)
{
	uintptr_t place = node->place;
	struct twi_node *last = worker->fresh[--worker->fresh_count];

	worker->fresh[place / TWI_BLOCK_BYTES] = last;
	last->place = place;
}

/* A loop's timer is told of what is earlier than it knows; a worker thread sees it by itself. */
static inline TWI_WORKER_ONLY void twi_direct_nearer(struct twi_worker *worker, int64_t deadline_ns)
{
	/* RELAXED: the worker's own. */
	if (TWI_UNLIKELY(worker->said && deadline_ns < twi_load_relaxed(&worker->wake_before_ns)))
		twi_poll_nearer(worker, deadline_ns);
}

/* A node that was born for that. */
static inline TWI_WORKER_ONLY void twi_direct_insert(struct twi_worker *worker,
						     struct twi_node *node, int64_t deadline_ns)
{
	/* Inside a turn the wheel is what counts. */
	if (worker->direct_from_ns == INT64_MIN)
		twi_fresh_add(worker, node);
	else
		twi_wheel_insert(worker->wheel, node);
	(void)twi_half_count(&worker->direct_scheduled_count, 1);
	twi_direct_nearer(worker, deadline_ns);
}

/*
 * A node whose deadline is an earlier one now. The batch that it may be in looks at the deadline, and
 * so does whoever moves the fresh ones.
 */
static inline TWI_WORKER_ONLY void twi_direct_refile(struct twi_worker *worker,
						     struct twi_node *node, int64_t deadline_ns)
{
	if (node->place != TWI_PLACE_NONE && !twi_place_is_fresh(node->place)) {
		twi_wheel_remove(worker->wheel, node);
		twi_wheel_insert(worker->wheel, node);
	}
	twi_direct_nearer(worker, deadline_ns);
}

/* A node that is its owner's only. Later, the wheel comes to it at the old time and files it anew. */
static inline TWI_WORKER_ONLY void twi_direct_move(struct twi_worker *worker, struct twi_node *node,
						   int64_t deadline_ns)
{
	/* RELAXED: nobody else changes word or deadline, and nobody may learn from them. */
	bool earlier = deadline_ns < twi_load_relaxed(&node->deadline_ns);
	/* RELAXED: as above. */
	uint64_t word = twi_load_relaxed(&node->word);

	/* RELAXED: as above. */
	twi_store_relaxed(&node->deadline_ns, deadline_ns);
	/* RELAXED: as above. */
	twi_store_relaxed(&node->word, word | TWI_WORD_RESCHEDULED);
	if (earlier)
		twi_direct_refile(worker, node, deadline_ns);
}

/* The sweep frees what it finds cancelled, and counts it like all that. */
static inline TWI_WORKER_ONLY void twi_direct_sweep(struct twi_worker *worker,
						    const struct twi_thread *thread)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	(void)twi_lane_end_count_as(thread, lane, &lane->cancelled_count, 1);
	if (TWI_UNLIKELY(worker->pending_limit != 0))
		twi_limit_give(worker);
}

/* What the batch under way names comes back by the queue, likewise. */
static inline TWI_WORKER_ONLY void
twi_direct_queue(struct twi_worker *worker, const struct twi_thread *thread, struct twi_node *node)
{
	twi_direct_sweep(worker, thread);
	twi_lane_push_cancelled(worker, thread, node);
}

/* A node that was cancelled in the wheel by its own worker. */
static inline TWI_WORKER_ONLY void
twi_direct_remove(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node)
{
	if (TWI_UNLIKELY(node->place == TWI_PLACE_NONE)) {
		twi_direct_queue(worker, thread, node);
		return;
	}
	(void)twi_half_count(&worker->direct_cancelled_count, 1);
	if (TWI_UNLIKELY(worker->pending_limit != 0))
		twi_limit_give(worker);
	if (twi_place_is_fresh(node->place))
		twi_fresh_remove(worker, node);
	else
		twi_wheel_remove(worker->wheel, node);
	twi_pool_give_warm(&thread->stock, node);
}

#endif
