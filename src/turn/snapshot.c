/* SPDX-License-Identifier: MIT */
#include "turn/snapshot.h"

#include "ingress/far.h"
#include "thread/futex.h"
#include "turn/fresh.h"
#include "worker/state.h"
#include "worker/ticket.h"

#include <errno.h>

static TWI_WORKER_ONLY void lane_snapshot(const struct twi_lane *lane,
					  struct twi_ingress_snapshot *ingress)
{
	uint64_t pushed = twi_ring_pushed(&lane->ring);
	uint64_t at = twi_ring_taken(&lane->ring_out);
	struct twi_ring_array *array = lane->ring_out.array;

	ingress->ring += pushed - at;
	while (at != pushed) {
		struct twi_ring_part part = twi_ring_part(&lane->arrays, &array, at, pushed);

		at += twi_ring_part_count(part);
		for (; part.at != part.end; part.at++)
			ingress->ring_cancelled += twi_ring_entry(part.at) & TWI_ENTRY_CANCELLED;
	}
	ingress->linked += twi_mpsc_count_sc(&lane->ingress_out);
	ingress->linked_cancelled += twi_mpsc_count_sc(&lane->cancelled_out);
}

static TWI_WORKER_ONLY void block_snapshot(const struct twi_lane_block *block,
					   struct twi_ingress_snapshot *ingress)
{
	uint64_t used = twi_lane_block_used(block);

	for (; used != 0; used &= used - 1, ingress->lanes++)
		lane_snapshot(&block->lane[__builtin_ctzll(used)], ingress);
}

static TWI_WORKER_ONLY void ingress_snapshot_take(struct twi_worker *worker,
						  struct twi_ingress_snapshot *ingress)
{
	for (uint32_t number = 0; (number = twi_lane_block_next(worker, number)) < TWI_BLOCKS;
	     number++)
		block_snapshot(twi_lane_block_at(worker, number), ingress);
}

static void node_snapshot(struct twi_node *node, struct twi_snapshot_node *ret)
{
	ret->node = node;
	/*
	 * RELAXED: the cancelled node stays in the wheel until reclaim, so its state word does not
	 * change.
	 */
	ret->generation = twi_word_generation(twi_load_relaxed(&node->word));
	ret->kind = twi_node_kind(node);
	ret->arg = twi_node_arg(node);
	ret->deadline_ns = twi_node_deadline_ns(node);
}

/*
 * Counts the timeouts outside the wheel. There may be some during a callback, and between two
 * polls.
 */
static TWI_WORKER_ONLY void outside_look(const struct twi_worker *worker, struct twi_snapshot *ret)
{
	for (size_t at = worker->due_at; at < worker->due_count; at++, ret->due++)
		twi_wheel_snapshot_add(&ret->wheel, worker->due[at]);
	for (uint32_t i = 0; i < worker->fresh_count; i++) {
		if (!twi_fresh_is_node(worker->fresh[i]))
			continue;
		twi_wheel_snapshot_add(&ret->wheel, worker->fresh[i]);
		ret->fresh++;
	}
}

void twi_snapshot_here(struct twi_worker *worker, struct twi_snapshot *ret)
{
	const struct twi_wheel *wheel = worker->wheel;

	ret->next_due = twi_wheel_next_due(wheel);
	ret->next_due_ns = twi_wheel_boundary_ns(wheel, ret->next_due);
	if (ret->due_only)
		return;
	twi_wheel_snapshot_take(wheel, twi_clock_now_ns(worker->clock), &ret->wheel);
	outside_look(worker, ret);
	ret->count = wheel->count;
	ret->tick = wheel->now;
	if (ret->wheel.first_cancelled != NULL)
		node_snapshot(ret->wheel.first_cancelled, &ret->cancelled);
	ingress_snapshot_take(worker, &ret->ingress);
}

TWI_COLD void twi_snapshot_serve(struct twi_worker *worker)
{
	/*
	 * E71: acquires the place for the answer. Without it the worker could count into a place
	 * that is not zeroed yet.
	 */
	struct twi_snapshot *snapshot = twi_exchange_acquire(&worker->snapshot, NULL);

	if (snapshot == NULL)
		return;
	TWI_TEST_POINT("snapshot:taken");
	twi_snapshot_here(worker, snapshot);
	/*
	 * E71: releases the answer to the waiting thread, which may then reuse the place. So this
	 * is the worker's last access to the place.
	 */
	twi_store_release(&snapshot->done, true);
	twi_flush_notify(worker);
}

/*
 * Waits until flush_epoch is no longer `epoch`. Returns 0, or -ESHUTDOWN if there will be no
 * worker, or -ETIMEDOUT.
 */
static int worker_await(struct twi_worker *worker, uint32_t epoch, int64_t until_ns)
{
	/*
	 * RELAXED: `epoch` was acquired before. A stop, a failed start, and the end of the worker's
	 * thread change first the state and then the epoch. So either this load sees the new state,
	 * or the wait ends at once.
	 */
	if (!twi_state_accepts(twi_load_relaxed(&worker->state)))
		return -ESHUTDOWN;
	TWI_TEST_POINT("snapshot:waiting");
	return twi_futex_wait(&worker->flush_epoch, epoch, until_ns) == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

/* Waits until no other thread asks, then stores the address of the place for the answer. */
static int snapshot_place(struct twi_worker *worker, struct twi_snapshot *snapshot,
			  int64_t until_ns)
{
	struct twi_snapshot *other;
	int error = 0;

	while (error == 0) {
		uint32_t epoch =
			twi_load_acquire(&worker->flush_epoch); /* E13: read before the state */

		other = NULL;
		/* E71: releases the place for the worker's answer. */
		if (twi_cas_release(&worker->snapshot, &other, snapshot))
			return 0;
		error = worker_await(worker, epoch, until_ns);
	}
	return error;
}

/* Takes the address of the place out again. Returns false if the worker has taken it out before. */
static bool snapshot_withdraw(struct twi_worker *worker, struct twi_snapshot *snapshot)
{
	struct twi_snapshot *own = snapshot;

	/* RELAXED: if the swap succeeds, the worker has not touched the place. */
	if (!twi_cas_relaxed(&worker->snapshot, &own, NULL))
		return false;
	twi_flush_notify(worker);
	return true;
}

static int snapshot_await(struct twi_worker *worker, struct twi_snapshot *snapshot,
			  int64_t until_ns)
{
	bool under_way = false;
	int error = 0;

	for (;;) {
		uint32_t epoch =
			twi_load_acquire(&worker->flush_epoch); /* E13: read before the state */

		if (twi_load_acquire(&snapshot->done)) /* E71: acquires the answer */
			return 0;
		if (under_way)
			(void)twi_futex_wait(&worker->flush_epoch, epoch, INT64_MAX);
		else
			error = worker_await(worker, epoch, until_ns);
		if (error != 0 && snapshot_withdraw(worker, snapshot))
			return error;
		under_way = error != 0;
	}
}

int twi_snapshot_ask(struct twi_worker *worker, struct twi_snapshot *snapshot, int64_t until_ns)
{
	int error = snapshot_place(worker, snapshot, until_ns);

	if (error != 0)
		return error;
	TWI_TEST_POINT("snapshot:placed");
	/* E8: the request must be stored before the wake. */
	(void)twi_fetch_add_seq_cst(&worker->flush_wanted, 1);
	twi_park_wake(&worker->park);
	return snapshot_await(worker, snapshot, until_ns);
}
