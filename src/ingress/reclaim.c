/* SPDX-License-Identifier: MIT */
/*
 * Reclaims the nodes from the cancel queues. For ring entries that are marked as cancelled,
 * collect.c calls twi_node_reclaim. A cancelled timeout leaves the wheel in the next turn, however
 * far away its deadline is. If a reschedule has made a timeout earlier, reclaim files it again. If
 * the timeout has expired meanwhile, both reclaim and the thread that ends its run handle its node.
 * The later of the two frees the node (timeout/word.h).
 */
#include "ingress/reclaim.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "ingress/lanes.h"

enum {
	/*
	 * This many nodes are handled together: as many cache misses as a core can handle in
	 * parallel.
	 */
	GROUP = 16,
};

static TWI_WORKER_ONLY struct twi_node *cancelled_take(struct twi_lane *lane)
{
	struct twi_mpsc_node *link = twi_mpsc_take_sc(&lane->cancelled, &lane->cancelled_out);

	return link != NULL ? twi_node_of_cancelled(link) : NULL;
}

/* Takes at most `most` nodes, and none behind `last`. Prefetches their slot entries. */
static TWI_WORKER_ONLY size_t group_take(struct twi_lane *lane, struct twi_node **ret_group,
					 uint64_t most, const struct twi_mpsc_node *last)
{
	const struct twi_mpsc_node *link = NULL;
	size_t count = 0;

	while (count < most && link != last && (ret_group[count] = cancelled_take(lane)) != NULL) {
		uintptr_t place = ret_group[count]->place;

		twi_pool_guess_ahead(ret_group[count]);
		if (twi_place_is_slot(place))
			TWI_PREFETCH_WRITE(&twi_place_chunk(place)->entry[twi_place_number(place)]);
		link = &ret_group[count++]->cancelled;
	}
	return count;
}

/*
 * Files a node again whose timeout was still alive when the node came out of the queue. From here
 * on another thread may push the node again.
 */
static TWI_WORKER_ONLY void node_refile(struct twi_worker *worker, struct twi_node *node,
					uint64_t word)
{
	/*
	 * The caller has cleared the queued bit, and the insertion reads the deadline after that. A
	 * reschedule that came before the clearing pushes nothing more, so its deadline must be
	 * found here. A later one sets the bit and pushes the node again.
	 */
	if (twi_word_state(word) != TWI_WORD_WHEELED)
		return;
	twi_wheel_remove(worker->wheel, node);
	twi_wheel_insert(worker->wheel, node);
}

bool twi_node_reclaim(struct twi_worker *worker, struct twi_node *node)
{
	/*
	 * E16: acquires from the thread that has ended the timeout's run, because reclaim then
	 * frees the node.
	 */
	uint64_t word = twi_load_acquire(&node->word);

	TWI_TEST_POINT("reclaim:seen");
	while (twi_word_state(word) != TWI_WORD_CANCELLED &&
	       twi_word_state(word) != TWI_WORD_EXPIRED) {
		/*
		 * E4: acquires the deadline for which the node was queued. E16: releases to the
		 * thread that will end the timeout and free the node. Or, if the timeout has ended,
		 * acquires from that thread.
		 */
		if (twi_cas_acq_rel(&node->word, &word, word & ~TWI_WORD_QUEUED)) {
			node_refile(worker, node, word);
			return false;
		}
	}
	TWI_PROBE3(reclaim, worker, node, twi_word_generation(word));
	twi_wheel_remove(worker->wheel, node);
	twi_worker_give_up(worker, node);
	twi_pool_give(&worker->self->stock, node);
	return twi_word_state(word) == TWI_WORD_CANCELLED;
}

/* Returns how many of the nodes were cancelled and are now free. */
static TWI_WORKER_ONLY uint64_t group_reclaim(struct twi_worker *worker, struct twi_node **group,
					      size_t count)
{
	uint64_t reclaimed = 0;

	for (size_t i = 0; i < count; i++)
		reclaimed += twi_node_reclaim(worker, group[i]);
	return reclaimed;
}

static TWI_WORKER_ONLY uint64_t lane_reclaim(struct twi_worker *worker, struct twi_lane *lane,
					     uint64_t most, unsigned *left)
{
	/* As in transfer, nodes that are pushed after this load wait for the next turn. */
	const struct twi_mpsc_node *last = twi_mpsc_last_sc(&lane->cancelled);
	struct twi_node *group[GROUP];
	uint64_t reclaimed = 0;
	uint64_t taken = 0;
	size_t count;
	bool reached;

	do {
		count = group_take(lane, group, most - taken < GROUP ? most - taken : GROUP, last);
		reached = count > 0 && &group[count - 1]->cancelled == last;
		reclaimed += group_reclaim(worker, group, count);
		taken += count;
	} while (count > 0 && !reached && taken < most);
	twi_count_add(&worker->reclaimed_count, reclaimed);
	if (count == 0)
		*left |= twi_lane_left(lane, last, &lane->cancelled_out);
	return taken;
}

unsigned twi_worker_reclaim(struct twi_worker *worker, uint64_t batch)
{
	unsigned left = TWI_LEFT_NOTHING;

	(void)twi_lanes_take(worker, lane_reclaim, batch, &left);
	return left;
}
