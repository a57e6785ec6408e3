/* SPDX-License-Identifier: MIT */
/*
 * Takes batches from many lanes. Each lane in use gets its share of a batch first, and the rest
 * goes to lanes that have more. So a flood in one lane does not hold up another thread's timeouts.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "mech/memory.h"

#include <pthread.h>

/* Makes the ring of an exclusive lane, if there is memory. There is only one try. */
static void ring_make(struct twi_worker *worker, struct twi_ring_in *ring)
{
	int cancel_state;
	void *entry;

	/* If the thread were cancelled inside an allocator, it would never leave its section. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	entry = twi_allocate(worker->allocator, TWI_RING_BYTES, TWI_CACHE_LINE);
	(void)pthread_setcancelstate(cancel_state, NULL);
	if (entry == NULL)
		return;
	twi_tsan_release(entry);
	/*
	 * RELAXED: the first push publishes it (E19), and a later owner of the lane gets it by E7.
	 */
	twi_store_relaxed(&ring->entry, entry);
	ring->room = TWI_RING_ENTRIES;
}

void twi_lanes_free(struct twi_worker *worker)
{
	for (uint32_t number = 0; number < TWI_LANES; number++) {
		/* RELAXED: no other thread uses the engine any more. */
		void *entry = twi_load_relaxed(&worker->lane[number].ring.entry);

		twi_tsan_acquire(entry);
		if (entry != NULL)
			worker->allocator->release(worker->allocator->context, entry,
						   TWI_RING_BYTES, TWI_CACHE_LINE);
	}
}

TWI_COLD void twi_lane_join(struct twi_worker *worker, uint32_t number)
{
	if (number != TWI_LANE_SHARED)
		ring_make(worker, &worker->lane[number].ring);
	/* E8: the lane's bit must be set before the push that may need a wake. */
	(void)twi_fetch_or_seq_cst(&worker->lanes_used, UINT64_C(1) << number);
	/*
	 * E15: releases the bit. It must be visible before any thread pushes to a lane that it sees
	 * as known.
	 */
	twi_store_release(&worker->lane[number].known, true);
}

static bool lane_known(const struct twi_worker *worker, uint32_t number)
{
	/*
	 * E15: pairs with the store in join. A thread that pushes here pushes after the lane's bit
	 * was set.
	 */
	return twi_load_acquire(&worker->lane[number].known);
}

void twi_lane_ready(struct twi_worker *worker, const struct twi_thread *thread)
{
	if (!lane_known(worker, thread->lane))
		twi_lane_join(worker, thread->lane);
}

TWI_APART void twi_lane_push_far(struct twi_worker *worker, const struct twi_thread *thread,
				 struct twi_node *node, uint64_t birth)
{
	if (lane_known(worker, thread->lane)) {
		twi_node_offer(node, birth, TWI_WORD_LINKED);
		twi_mpsc_push_mp(&worker->lane[thread->lane].ingress, &node->ingress);
		return;
	}
	twi_lane_join(worker, thread->lane);
	twi_lane_push(worker, thread, node, birth);
}

TWI_APART void twi_lane_cancelled_far(struct twi_worker *worker, const struct twi_thread *thread,
				      struct twi_node *node)
{
	if (lane_known(worker, thread->lane)) {
		twi_mpsc_push_mp(&worker->lane[thread->lane].cancelled, &node->cancelled);
		return;
	}
	twi_lane_join(worker, thread->lane);
	twi_lane_push_cancelled(worker, thread, node);
}

int64_t twi_lane_push_queued(struct twi_worker *worker, const struct twi_thread *thread,
			     struct twi_node *node)
{
	TWI_TEST_POINT("reschedule:queued");
	twi_lane_push_cancelled(worker, thread, node);
	TWI_TEST_POINT("reschedule:pushed");
	/*
	 * E8: a step between our push and our load of wake_before_ns, in the order of all steps
	 * that change the deadline. It changes nothing itself. By now the node may serve another
	 * timeout. Then the wake is at worst one too many.
	 */
	return twi_fetch_add_release(&node->deadline_ns, 0);
}

TWI_COLD void twi_unseen_note(struct twi_worker *worker, uint32_t units)
{
	/* E8: the reason must be published before the wake. */
	if (twi_fetch_add_seq_cst(&worker->unseen, units) + units >= TWI_UNSEEN_MAX)
		twi_park_wake(&worker->park);
}

static TWI_WORKER_ONLY bool queue_idle(const struct twi_mpsc_in *in, const struct twi_mpsc_out *out)
{
	return twi_mpsc_last_sc(in) == &out->stub && out->tail == &out->stub;
}

bool twi_lanes_idle(const struct twi_worker *worker)
{
	/* E8: the sleeper's last look, lane by lane. */
	uint64_t used = twi_load_seq_cst(&worker->lanes_used);

	for (; used != 0; used &= used - 1) {
		const struct twi_lane *lane = &worker->lane[__builtin_ctzll(used)];

		/* A node in a cancel queue may have an earlier deadline. */
		if (twi_ring_pushed(&lane->ring) != twi_ring_taken(&lane->ring_out) ||
		    !queue_idle(&lane->ingress, &lane->ingress_out) ||
		    !queue_idle(&lane->cancelled, &lane->cancelled_out))
			return false;
	}
	return true;
}

/* One round over the lanes in use. */
struct round {
	uint64_t used;
	uint64_t share; /* the most that one lane gives */
	uint64_t batch;
	bool more; /* a lane gave its whole share */
};

static TWI_WORKER_ONLY uint64_t round_take(struct twi_worker *worker, twi_lane_step *step,
					   struct round *round, unsigned *left)
{
	uint64_t taken = 0;

	for (uint32_t i = 0; i < TWI_LANES && taken < round->batch; i++) {
		uint32_t number = (worker->first_lane + i) % TWI_LANES;
		uint64_t room = round->batch - taken;
		uint64_t most = room < round->share ? room : round->share;
		uint64_t count;

		if ((round->used >> number & 1) == 0)
			continue;
		count = step(worker, &worker->lane[number], most, left);
		round->more |= count == most;
		taken += count;
	}
	return taken;
}

uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step, uint64_t batch,
			unsigned *left)
{
	/*
	 * RELAXED: if a lane is seen too late, the next turn sees it. After a grace period all
	 * lanes are seen.
	 */
	struct round round = {.used = twi_load_relaxed(&worker->lanes_used), .batch = batch};
	uint64_t taken;

	if (round.used == 0)
		return 0;
	round.share = batch / (uint64_t)__builtin_popcountll(round.used) + 1;
	taken = round_take(worker, step, &round, left);
	if (round.more && taken < batch) {
		round.share = round.batch = batch - taken;
		taken += round_take(worker, step, &round, left);
	}
	if (taken == batch) {
		*left |= TWI_LEFT_MORE;
		worker->first_lane = (worker->first_lane + 1) % TWI_LANES;
	}
	return taken;
}
