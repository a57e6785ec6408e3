/* SPDX-License-Identifier: MIT */
#include "ingress/rest.h"

#include "base/atomic.h"
#include "ingress/far.h"
#include "ingress/lanes.h"

/* Adds the idle lanes of a block to the lanes that may rest. */
static TWI_WORKER_ONLY void block_collect(const struct twi_lane_block *block,
					  struct twi_resting *resting)
{
	uint64_t used = twi_lane_block_used(block);

	for (; used != 0 && resting->count < TWI_REST_MOST; used &= used - 1) {
		const struct twi_lane *lane = &block->lane[__builtin_ctzll(used)];

		if (twi_lane_idle(lane))
			resting->number[resting->count++] = lane->number;
	}
}

static struct twi_lane *lane_at(struct twi_worker *worker, uint32_t number)
{
	return &twi_lane_block_at(worker, number / TWI_LANES)->lane[number % TWI_LANES];
}

static TWI_WORKER_ONLY void lane_rest(struct twi_worker *worker, uint32_t number)
{
	struct twi_lane_block *block = twi_lane_block_at(worker, number / TWI_LANES);

	/* E8: the bit must be cleared before the second look at the lane. */
	(void)twi_fetch_and_seq_cst(&block->used, ~(UINT64_C(1) << number % TWI_LANES));
	TWI_TEST_POINT("rest:cleared");
}

static TWI_WORKER_ONLY void lane_wake(struct twi_worker *worker, uint32_t number)
{
	struct twi_lane_block *block = twi_lane_block_at(worker, number / TWI_LANES);

	/* E8: the worker's last look at all lanes follows. It must find this bit. */
	(void)twi_fetch_or_seq_cst(&block->used, UINT64_C(1) << number % TWI_LANES);
}

void twi_lanes_rest(struct twi_worker *worker, struct twi_resting *ret)
{
	ret->count = 0;
	for (uint32_t number = 1; (number = twi_lane_block_next(worker, number)) < TWI_BLOCKS;
	     number++)
		block_collect(twi_lane_block_at(worker, number), ret);
	if (ret->count < TWI_REST_LEAST)
		ret->count = 0;
	for (uint32_t i = 0; i < ret->count; i++)
		lane_rest(worker, ret->number[i]);
}

void twi_lanes_rested(struct twi_worker *worker, const struct twi_resting *resting, bool all)
{
	for (uint32_t i = 0; i < resting->count; i++) {
		TWI_TEST_POINT("rest:again");
		if (all || !twi_lane_idle(lane_at(worker, resting->number[i])))
			lane_wake(worker, resting->number[i]);
	}
}
