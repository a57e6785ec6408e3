/* SPDX-License-Identifier: MIT */
/*
 * Cancelled timeouts leave the wheel at the next turn, however far away they were due.
 */
#include "worker/worker.h"

#include "base/atomic.h"

enum {
	/* Nodes under way at once: as many misses as a core can have open. */
	GROUP = 16,
};

static struct twi_node *cancelled_take(struct twi_lane *lane)
{
	struct twi_mpsc_node *link = twi_mpsc_take_sc(&lane->cancelled, &lane->cancelled_out);

	return link != NULL ? twi_node_of_cancelled(link) : NULL;
}

/* Takes a few, and asks for the lines of their slot entries. */
static size_t group_take(struct twi_lane *lane, struct twi_node **ret_group, size_t most)
{
	size_t count = 0;

	while (count < most && (ret_group[count] = cancelled_take(lane)) != NULL) {
		uintptr_t place = ret_group[count]->place;

		if (place > TWI_PLACE_LIMBO)
			TWI_PREFETCH_WRITE(&twi_place_chunk(place)->entry[twi_place_number(place)]);
		count++;
	}
	return count;
}

static void group_free(struct twi_worker *worker, struct twi_node **group, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		twi_wheel_remove(worker->wheel, group[i]);
		twi_pool_give(&worker->self->stock, group[i]);
	}
}

bool twi_worker_reclaim(struct twi_worker *worker, uint64_t batch)
{
	struct twi_node *group[GROUP];
	/* RELAXED: a lane seen too late is seen in the next turn; after a grace period, all are. */
	uint64_t used = twi_load_relaxed(&worker->lanes_used);

	for (; used != 0; used &= used - 1) {
		struct twi_lane *lane = &worker->lane[__builtin_ctzll(used)];
		size_t count;

		while ((count = group_take(lane, group, batch < GROUP ? batch : GROUP)) > 0) {
			group_free(worker, group, count);
			batch -= count;
		}
		if (batch == 0)
			return true;
	}
	return false;
}
