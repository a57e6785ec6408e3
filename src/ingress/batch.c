/* SPDX-License-Identifier: MIT */
/*
 * The rare code paths of a batch (batch.h): the search for free ring entries, and the chain for
 * nodes that get no ring entry.
 */
#include "ingress/batch.h"

#include "base/atomic.h"
#include "ingress/push.h"

TWI_NOINLINE void twi_batch_find_room(struct twi_batch *batch, uint32_t wanted)
{
	struct twi_lane *lane = batch->lane;

	twi_lane_ready(batch->worker, lane);
	(void)twi_lane_ring_room(batch->worker, lane, wanted);
	batch->entry = lane->ring.entry;
	batch->mask = lane->ring.mask;
	batch->room = batch->tail + twi_ring_known_room(&lane->ring);
}

TWI_NOINLINE void twi_batch_chain(struct twi_batch *batch, struct twi_node *node,
				  uint64_t generation)
{
	twi_node_offer(node, generation, TWI_WORD_LINKED);
	if (batch->first == NULL)
		batch->first = node;
	else
		twi_mpsc_chain(&batch->last->ingress, &node->ingress);
	batch->last = node;
	TWI_TEST_POINT("batch:chained");
}

TWI_NOINLINE void twi_batch_push_chain(struct twi_batch *batch)
{
	twi_mpsc_push_chain_mp(&batch->lane->ingress, &batch->first->ingress,
			       &batch->last->ingress);
}
