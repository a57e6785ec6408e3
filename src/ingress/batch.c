/* SPDX-License-Identifier: MIT */
/*
 * The rare code paths of a batch (batch.h): finding free entries in the ring, and the chain for
 * nodes that get no entry.
 */
#include "ingress/batch.h"

#include "base/atomic.h"
#include "ingress/push.h"

TWI_NOINLINE void twi_batch_find_room(struct twi_batch *batch)
{
	struct twi_lane *lane = batch->lane;

	twi_lane_ready(batch->worker, lane);
	/* RELAXED: only the producer writes it. */
	batch->entry = twi_load_relaxed(&lane->ring.entry);
	if (batch->entry != NULL)
		batch->room = twi_ring_all_room(&lane->ring, &lane->ring_out);
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
