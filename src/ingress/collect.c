/* SPDX-License-Identifier: MIT */
/*
 * Takes the entries out of the lanes' rings, in the order in which they were pushed. Each entry
 * names a timeout that goes into the wheel, or one that must come out of it or be filed again.
 *
 * Stale entries. An entry names a node without its generation. If a thread cancels a timeout that
 * is still in a ring, the thread returns the node to its stock at once. So the thread's next
 * timeout uses the node while the node is still in the cache. The entry stays in the ring, and is
 * stale.
 *
 * A stale entry is harmless. Node memory is never freed. The state word shows whether the node
 * waits in a ring (INIT; in a link queue it is LINKED). The node's engine field shows whether the
 * timeout belongs to this engine. If the node now serves another timeout of this engine, the worker
 * transfers that timeout by the stale entry, a little earlier than by its own entry. At its own
 * entry, the worker then finds the node in another state and does nothing.
 *
 * Entries for cancelled nodes are never stale, because only reclaim frees such a node, and reclaim
 * finds it only through this entry.
 *
 * Repeated entries. If several entries in a row name the same node, as when a thread schedules and
 * cancels again and again, the worker looks only at the last one. So the node's cache line stays in
 * that thread's core.
 *
 * Entries that are used again. If most entries are repeated, the worker promises not to read the
 * lane's entries before it has made a barrier (ring.h). Then a thread that schedules, cancels and
 * schedules again needs only one entry: the last entry still names the node that the thread's stock
 * gives out again.
 */
#include "ingress/collect.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "ingress/reclaim.h"
#include "thread/barrier.h"
#include "worker/role.h"

/*
 * If the worker takes this many entries from a lane at once, it marks the lane as busy. From then
 * on the lane's pushes need no fence, but before each sleep the worker must make a barrier in all
 * threads.
 */
#ifndef TWI_RING_BUSY
#define TWI_RING_BUSY 1024
#endif

enum {
	/*
	 * Nodes are prefetched this many entries ahead: as many cache misses as a core can handle
	 * in parallel.
	 */
	AHEAD = 16,
	/* A node's slot entry is prefetched this many entries ahead. */
	PLACE_AHEAD = 8,
};

static struct twi_node *entry_node(uintptr_t entry)
{
	return (struct twi_node *)(entry & ~TWI_ENTRY_CANCELLED);
}

/*
 * Moves the timeout that an entry names into the wheel. Returns false if the entry is stale or the
 * timeout was cancelled.
 */
static TWI_WORKER_ONLY bool node_transfer(struct twi_worker *worker, struct twi_node *node)
{
	/*
	 * E21: if the state is INIT, the fields that are read afterwards belong to this generation
	 * or a later one. If the swap succeeds, they belong to this one.
	 */
	uint64_t word = twi_load_acquire(&node->word);

	TWI_TEST_POINT("collect:seen");
	if (TWI_UNLIKELY(twi_node_worker(node) != worker))
		return false;
	/*
	 * If the swap fails, the timeout was cancelled or rescheduled. The node may then serve a
	 * later timeout, even one of another engine.
	 */
	while (twi_word_state(word) == TWI_WORD_INIT && twi_node_worker(node) == worker) {
		/*
		 * E4: as in node_transfer() of transfer.c. E21: if the swap fails, acquires the
		 * fields of a later timeout, which the loop checks again.
		 */
		if (twi_cas_acquire(&node->word, &word, twi_word_to(word, TWI_WORD_WHEELED))) {
			TWI_PROBE3(transfer, worker, node, twi_word_generation(word));
			twi_wheel_insert(worker->wheel, node);
			return true;
		}
	}
	twi_worker_give_up(worker, node);
	return false;
}

/* Returns whether the next entry names the same node. */
static bool entry_repeated(const _Atomic uintptr_t *at, const _Atomic uintptr_t *end,
			   uintptr_t entry)
{
	return at + 1 < end && twi_ring_entry(at + 1) == entry;
}

static TWI_WORKER_ONLY void node_ask(struct twi_ring_part part, ptrdiff_t ahead)
{
	uintptr_t entry;

	if (part.end - part.at <= ahead)
		return;
	entry = twi_ring_entry(part.at + ahead);
	if (!entry_repeated(part.at + ahead, part.end, entry))
		TWI_PREFETCH_WRITE(entry_node(entry));
}

static TWI_WORKER_ONLY void place_ask(struct twi_ring_part part)
{
	uintptr_t entry, place;

	if (part.end - part.at <= PLACE_AHEAD)
		return;
	entry = twi_ring_entry(part.at + PLACE_AHEAD);
	if ((entry & TWI_ENTRY_CANCELLED) == 0)
		return;
	place = entry_node(entry)->place;
	if (twi_place_is_slot(place))
		TWI_PREFETCH_WRITE(&twi_place_chunk(place)->entry[twi_place_number(place)]);
}

struct tally {
	uint64_t transferred;
	uint64_t reclaimed;
	uint64_t repeated; /* entries that name the same node as the next one */
};

static TWI_WORKER_ONLY void part_take(struct twi_worker *worker, struct twi_ring_part part,
				      struct tally *tally)
{
	uint64_t count = twi_ring_part_count(part), looked = 0;

	for (ptrdiff_t ahead = 0; ahead < AHEAD; ahead++)
		node_ask(part, ahead);
	for (; part.at != part.end; part.at++) {
		uintptr_t entry = twi_ring_entry(part.at);

		node_ask(part, AHEAD);
		place_ask(part);
		if (entry_repeated(part.at, part.end, entry))
			continue;
		looked++;
		if ((entry & TWI_ENTRY_CANCELLED) != 0)
			tally->reclaimed += twi_node_reclaim(worker, entry_node(entry));
		else
			tally->transferred += node_transfer(worker, entry_node(entry));
	}
	tally->repeated += count - looked;
}

/*
 * Marks the lane as busy: from now on its pushes are cheaper, and each sleep of the worker costs
 * more.
 */
static TWI_COLD TWI_WORKER_ONLY void lane_unfence(struct twi_worker *worker, struct twi_lane *lane)
{
	if (!twi_barrier_able())
		return;
	worker->unfenced = true;
	/*
	 * E8: this may be the turn that follows the publication of a sleep. Then the mark must come
	 * after the published values. If a producer does not see the mark yet, it still pushes with
	 * a fence.
	 */
	twi_store_release(&lane->unfenced, true);
}

static TWI_WORKER_ONLY void lane_busy_check(struct twi_worker *worker, struct twi_lane *lane,
					    uint64_t count)
{
	/* RELAXED: only the worker writes the mark. */
	if (count >= TWI_RING_BUSY && !twi_load_relaxed(&lane->unfenced))
		lane_unfence(worker, lane);
}

/*
 * If the worker has promised not to read the lane's entries, takes the promise back. Must be called
 * before the worker reads one.
 */
static TWI_WORKER_ONLY void promise_end(struct twi_lane *lane)
{
	if (TWI_UNLIKELY(twi_ring_promise_end(&lane->ring_out)))
		twi_barrier_force(); /* E163 */
}

/* Returns whether the lane's thread has scheduled many timeouts since the last call. */
static TWI_WORKER_ONLY bool many_scheduled(struct twi_lane *lane)
{
	/* RELAXED: only a number, which publishes nothing. */
	uint64_t scheduled = twi_load_relaxed(&lane->scheduled_count);
	bool many = scheduled - lane->scheduled_seen >= TWI_RING_BUSY;

	lane->scheduled_seen = scheduled;
	return many;
}

/*
 * Decides whether the lane's thread may use entries again. It may if, in two large batches in a
 * row, the thread mostly scheduled, cancelled, and scheduled again. The lane is busy then. So a
 * schedule without a push needs no fence either (E8). If the system has no barrier, no lane is
 * busy. The thread loses the permission if it schedules so rarely that the worker makes a barrier
 * for few timeouts.
 */
static TWI_WORKER_ONLY void again_judge(struct twi_lane *lane, uint64_t count, uint64_t repeated)
{
	bool large = count >= TWI_RING_BUSY, repeats = repeated >= count / 2;
	/* RELAXED: only the worker writes the hint. */
	bool again = twi_load_relaxed(&lane->again);
	bool next;

	if (!again && !large)
		return;
	next = many_scheduled(lane);
	if (again)
		next = next && (repeats || !large);
	else
		/* RELAXED: only the worker writes the mark. */
		next = next && repeats && lane->repeats && twi_load_relaxed(&lane->unfenced);
	if (next != again)
		twi_store_relaxed(&lane->again, next); /* RELAXED: a hint publishes nothing. */
	lane->repeats = large && repeats;
}

uint64_t twi_lane_collect(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			  unsigned *left)
{
	/* Entries that are pushed after this load wait for the next turn. */
	uint64_t pushed = twi_ring_pushed(&lane->ring);
	uint64_t at = twi_ring_taken(&lane->ring_out);
	uint64_t count = pushed - at, end;
	struct tally tally = {0, 0, 0};

	(void)left;
	if (count > most)
		count = most;
	if (count == 0)
		return 0;
	promise_end(lane);
	for (end = at + count; at != end;) {
		struct twi_ring_part part =
			twi_ring_part(&lane->arrays, &lane->ring_out.array, at, end);

		part_take(worker, part, &tally);
		at += twi_ring_part_count(part);
	}
	twi_ring_take(&lane->ring_out, end);
	lane_busy_check(worker, lane, count);
	again_judge(lane, count, tally.repeated);
	/* RELAXED: only the worker writes the mark. */
	if (twi_load_relaxed(&lane->again))
		twi_ring_promise(&lane->ring_out, end);
	twi_count_add(&worker->transferred_count, tally.transferred);
	twi_count_add(&worker->reclaimed_count, tally.reclaimed);
	return count;
}
