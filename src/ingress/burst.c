/* SPDX-License-Identifier: MIT */
/*
 * The rare code paths of a burst (burst.h): finding free entries in the ring, and the chain for
 * nodes that get none.
 */
#include "ingress/burst.h"

#include "base/atomic.h"
#include "ingress/push.h"

TWI_NOINLINE void twi_burst_find_room(struct twi_burst *burst)
{
	struct twi_lane *lane = burst->lane;

	twi_lane_ready(burst->worker, burst->thread);
	/* RELAXED: only the producer writes it. */
	burst->entry = twi_load_relaxed(&lane->ring.entry);
	if (burst->entry != NULL)
		burst->room = twi_ring_all_room(&lane->ring, &lane->ring_out);
}

TWI_NOINLINE void twi_burst_chain(struct twi_burst *burst, struct twi_node *node, uint64_t birth)
{
	twi_node_offer(node, birth, TWI_WORD_LINKED);
	if (burst->first == NULL)
		burst->first = node;
	else
		twi_mpsc_chain(&burst->last->ingress, &node->ingress);
	burst->last = node;
	TWI_TEST_POINT("burst:chained");
}

TWI_NOINLINE void twi_burst_push_chain(struct twi_burst *burst)
{
	twi_mpsc_push_chain_mp(&burst->lane->ingress, &burst->first->ingress,
			       &burst->last->ingress);
}
