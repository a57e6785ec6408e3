/* SPDX-License-Identifier: MIT */
/*
 * The short path: the worker's own thread schedules and cancels without ingress, because it may
 * touch the wheel. In loop mode that thread is the owner, between polls and in callbacks. With a
 * worker thread, the path is for callbacks that run on it.
 *
 * The wheel may be changed only between two advances. Callbacks run only between advances, so they
 * may change it. If a timeout is scheduled for the past, or rescheduled to the past, inside a turn,
 * it is put aside until the turn ends. Otherwise the same turn would run it, and might never end.
 * One case still needs a queue: the cancel of a timeout that has left the wheel with the current
 * batch. The batch still names its node, so reclaim must free the node in a later turn.
 */
#ifndef TWI_TURN_DIRECT_H
#define TWI_TURN_DIRECT_H

#include "base/atomic.h"
#include "expiry/expire.h"
#include "expiry/limit.h"
#include "ingress/push.h"
#include "turn/fresh.h"
#include "turn/timer.h"
#include "worker/role.h"

#include <stdbool.h>

/* Returns whether the state word belongs to this timeout, and the timeout is owner-only. */
static inline bool twi_owned_word(uint64_t word, uint64_t generation)
{
	return (word & ~TWI_WORD_RESCHEDULED) == twi_word_to(generation, TWI_WORD_OWNED);
}

/*
 * Returns whether the timeout is owner-only and in the wheel that `thread` owns. Then no other
 * thread changes it.
 */
static inline bool twi_owned_here(struct tw_handle handle, const struct twi_thread *thread)
{
	struct twi_node *node = twi_node_of_handle(handle);
	const struct twi_worker *worker = thread->wheel_of;

	/*
	 * RELAXED: only the wheel's owner, which is this thread, writes `sweeping` and the state
	 * words of the wheel's owner-only timeouts.
	 */
	return worker != NULL && twi_owned_word(twi_load_relaxed(&node->word), handle.generation) &&
	       twi_node_worker(node) == worker && !twi_load_relaxed(&worker->sweeping);
}

/* Returns whether the deadline lies so late that the present turn will not run the timeout. */
static inline TWI_WORKER_ONLY bool twi_direct_future(const struct twi_worker *worker,
						     int64_t deadline_ns)
{
	return deadline_ns >= worker->direct_from_ns;
}

/*
 * Moves a loop's timer if this deadline is earlier. A worker thread needs no timer: it looks at the
 * wheel before it sleeps.
 */
static inline TWI_WORKER_ONLY void twi_direct_nearer(struct twi_worker *worker, int64_t deadline_ns)
{
	/* RELAXED: only the worker writes wake_before_ns. */
	if (TWI_UNLIKELY(worker->sleep_published &&
			 deadline_ns < twi_load_relaxed(&worker->wake_before_ns)))
		twi_timer_nearer(worker, deadline_ns);
}

/*
 * Inserts a node into the wheel. If the present turn would run it, puts it aside until the turn
 * ends.
 */
static inline TWI_WORKER_ONLY void twi_direct_put(struct twi_worker *worker, struct twi_node *node,
						  int64_t deadline_ns)
{
	if (TWI_LIKELY(twi_direct_future(worker, deadline_ns)))
		twi_wheel_insert(worker->wheel, node);
	else
		twi_wheel_insert_later(worker->wheel, node);
}

/* Inserts a new node that was made for the short path. */
static inline TWI_WORKER_ONLY void twi_direct_insert(struct twi_worker *worker,
						     struct twi_node *node, int64_t deadline_ns)
{
	/*
	 * Inside a turn the timeout must not become fresh, because the rest of the turn looks only
	 * into the wheel.
	 */
	if (worker->direct_from_ns == INT64_MIN)
		twi_fresh_add(worker, node);
	else
		twi_direct_put(worker, node, deadline_ns);
	(void)twi_half_count(&worker->direct_scheduled_count, 1);
	twi_direct_nearer(worker, deadline_ns);
}

/*
 * Files a node again after its deadline became earlier. In a wheel without an order, a node of the
 * current batch stays in the batch, because the worker reads the node's deadline again when it runs
 * the batch. Fresh timeouts must be moved into the wheel first: among equal deadlines, the one that
 * is filed first runs first.
 */
static inline TWI_WORKER_ONLY void twi_direct_refile(struct twi_worker *worker,
						     struct twi_node *node, int64_t deadline_ns)
{
	if (twi_place_is_fresh(node->place)) {
		twi_fresh_renew(worker, node);
	} else if (node->place != TWI_PLACE_NONE) {
		twi_fresh_flush(worker);
		twi_wheel_remove(worker->wheel, node);
		twi_direct_put(worker, node, deadline_ns);
	} else if (worker->ordered && twi_due_remove(worker, node)) {
		twi_direct_put(worker, node, deadline_ns);
	}
	twi_direct_nearer(worker, deadline_ns);
}

/*
 * Called when the new deadline of a node is not earlier. In an engine with an order, puts the node
 * behind the other nodes of that deadline. A node in a slot stays there, and the wheel files it
 * again at the old time. But if the present turn would still run the timeout by the new deadline,
 * the node is put aside.
 */
static inline TWI_WORKER_ONLY void twi_direct_postponed(struct twi_worker *worker,
							struct twi_node *node, int64_t deadline_ns)
{
	if (!worker->ordered)
		return;
	if (twi_place_is_slot(node->place) && twi_direct_future(worker, deadline_ns))
		twi_node_set_sequence(node, twi_fresh_sequence(worker));
	else
		twi_direct_refile(worker, node, deadline_ns);
}

/*
 * Changes the deadline of an owner-only timeout. If the deadline becomes later, the wheel finds the
 * node at the old time and files it again.
 */
static inline TWI_WORKER_ONLY void twi_direct_move(struct twi_worker *worker, struct twi_node *node,
						   int64_t deadline_ns)
{
	/* RELAXED: no other thread changes the state word or the deadline, or relies on them. */
	bool earlier = deadline_ns < twi_load_relaxed(&node->deadline_ns);
	/* RELAXED: as above. */
	uint64_t word = twi_load_relaxed(&node->word);

	/* RELAXED: as above. */
	twi_store_relaxed(&node->deadline_ns, deadline_ns);
	/* RELAXED: as above. */
	twi_store_relaxed(&node->word, word | TWI_WORD_RESCHEDULED);
	if (earlier)
		twi_direct_refile(worker, node, deadline_ns);
	else
		twi_direct_postponed(worker, node, deadline_ns);
}

/*
 * Counts a cancel during the sweep of twi_worker_finish. The sweep frees the cancelled node, and
 * counts it as reclaimed.
 */
static inline TWI_WORKER_ONLY void twi_direct_sweep(struct twi_worker *worker,
						    const struct twi_thread *thread)
{
	struct twi_lane *lane = twi_lane_of(worker, thread);

	(void)twi_lane_end_count_as(lane, &lane->cancelled_count, 1);
	if (TWI_UNLIKELY(worker->pending_limit != 0))
		twi_limit_give(worker);
}

/*
 * Queues a cancelled node that the current batch still names, so that reclaim frees it later.
 * Counts the cancel as twi_direct_sweep does.
 */
static inline TWI_WORKER_ONLY void
twi_direct_queue(struct twi_worker *worker, const struct twi_thread *thread, struct twi_node *node)
{
	twi_direct_sweep(worker, thread);
	twi_lane_push_cancelled(worker, twi_lane_of(worker, thread), node);
}

/* Removes a node after the worker itself has cancelled its timeout in the wheel. */
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
