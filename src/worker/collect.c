/* SPDX-License-Identifier: MIT */
/*
 * What comes by the rings of the lanes, in the order of its push: timeouts on their way to the wheel,
 * and those that come out of it.
 *
 * An entry names a node, and not which of its lives. Who cancels a timeout that has not reached the wheel
 * gives the node back at once, so that the thread's next timeout finds it in its cache, and leaves the
 * entry where it is. Such a stale entry is harmless: node memory is never freed, the word tells whether
 * the node waits in a ring (INIT; in a link queue it is LINKED), and the engine beside it whose ring that
 * is. Where it is one of ours, it is transferred a little sooner than by the entry of its own, which then
 * finds it in another state and does nothing. Entries of the cancel queue are never stale: nobody but
 * reclaim, which comes by this entry, frees the node.
 *
 * Where several entries on end name one node, as those of a thread that schedules and cancels do, only
 * the last one is looked at, and the node's line stays where it is written.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "mech/barrier.h"

/* A lane that brings so many at once is worth a barrier per sleep of the worker. */
#ifndef TWI_RING_BUSY
#define TWI_RING_BUSY 1024
#endif

enum {
	/* Nodes that are asked for at once: as many misses as a core can have open. */
	AHEAD = 16,
	/* So long before it is taken out, the line of its slot entry is asked for. */
	PLACE_AHEAD = 8,
};

static struct twi_node *entry_node(uintptr_t entry)
{
	return (struct twi_node *)(entry & ~TWI_ENTRY_CANCELLED);
}

/* True: it went into the wheel. */
static TWI_WORKER_ONLY bool node_transfer(struct twi_worker *worker, struct twi_node *node)
{
	/* E21: in INIT, the fields are of that life, and stay so if the swap succeeds. */
	uint64_t word = twi_load_acquire(&node->word);

	TWI_TEST_POINT("collect:seen");
	if (TWI_UNLIKELY(twi_node_worker(node) != worker))
		return false;
	/* The swap fails where it was cancelled or rescheduled: it may be of a later life, and not ours. */
	while (twi_word_state(word) == TWI_WORD_INIT && twi_node_worker(node) == worker) {
		/* E4: as in transfer.c. E21: failed, as above. */
		if (twi_cas_acquire(&node->word, &word, twi_word_to(word, TWI_WORD_WHEELED))) {
			TWI_PROBE3(transfer, worker, node, twi_word_birth(word));
			twi_wheel_insert(worker->wheel, node);
			return true;
		}
	}
	twi_worker_give_up(worker, node);
	return false;
}

/* A part of a ring, from `at` to `end`. */
struct stretch {
	_Atomic uintptr_t *entry;
	uint64_t at;
	uint64_t end;
};

/* Whether the next entry says the same. */
static bool entry_repeated(const struct stretch *stretch, uint64_t at, uintptr_t entry)
{
	return at + 1 < stretch->end && twi_ring_entry(stretch->entry, at + 1) == entry;
}

static TWI_WORKER_ONLY void node_ask(const struct stretch *stretch, uint64_t at)
{
	uintptr_t entry;

	if (at >= stretch->end)
		return;
	entry = twi_ring_entry(stretch->entry, at);
	if (!entry_repeated(stretch, at, entry))
		TWI_PREFETCH_WRITE(entry_node(entry));
}

static TWI_WORKER_ONLY void place_ask(const struct stretch *stretch, uint64_t at)
{
	uintptr_t entry, place;

	if (at >= stretch->end)
		return;
	entry = twi_ring_entry(stretch->entry, at);
	if ((entry & TWI_ENTRY_CANCELLED) == 0)
		return;
	place = entry_node(entry)->place;
	if (twi_place_is_slot(place))
		TWI_PREFETCH_WRITE(&twi_place_chunk(place)->entry[twi_place_number(place)]);
}

struct tally {
	uint64_t transferred;
	uint64_t reclaimed;
};

static TWI_WORKER_ONLY void stretch_take(struct twi_worker *worker, struct stretch *stretch,
					 struct tally *tally)
{
	for (uint64_t ahead = 0; ahead < AHEAD; ahead++)
		node_ask(stretch, stretch->at + ahead);
	for (; stretch->at != stretch->end; stretch->at++) {
		uintptr_t entry = twi_ring_entry(stretch->entry, stretch->at);

		node_ask(stretch, stretch->at + AHEAD);
		place_ask(stretch, stretch->at + PLACE_AHEAD);
		if (entry_repeated(stretch, stretch->at, entry))
			continue;
		if ((entry & TWI_ENTRY_CANCELLED) != 0)
			tally->reclaimed += twi_node_reclaim(worker, entry_node(entry));
		else
			tally->transferred += node_transfer(worker, entry_node(entry));
	}
}

/* From now on its pushes are cheaper, and our sleep dearer. */
static TWI_COLD TWI_WORKER_ONLY void lane_unfence(struct twi_worker *worker, uint64_t bit)
{
	/* RELAXED: the worker's own. */
	uint64_t busy = twi_load_relaxed(&worker->lanes_busy) | bit;

	/* E8: after what was said, if it is the last turn before a sleep. Seen late, a push has a fence. */
	if (twi_barrier_able())
		twi_store_release(&worker->lanes_busy, busy);
}

static TWI_WORKER_ONLY void lane_judge(struct twi_worker *worker, const struct twi_lane *lane,
				       uint64_t count)
{
	uint64_t bit = UINT64_C(1) << (lane - worker->lane);

	/* RELAXED: the worker's own. */
	if (count >= TWI_RING_BUSY && (twi_load_relaxed(&worker->lanes_busy) & bit) == 0)
		lane_unfence(worker, bit);
}

uint64_t twi_lane_collect(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			  unsigned *left)
{
	/* What comes meanwhile waits for the next turn. */
	uint64_t pushed = twi_ring_pushed(&lane->ring);
	struct stretch stretch = {.at = twi_ring_taken(&lane->ring_out)};
	uint64_t count = pushed - stretch.at;
	struct tally tally = {0, 0};

	(void)left;
	if (count > most)
		count = most;
	if (count == 0)
		return 0;
	stretch.entry = twi_ring_entries(&lane->ring);
	stretch.end = stretch.at + count;
	stretch_take(worker, &stretch, &tally);
	twi_ring_take(&lane->ring_out, stretch.end);
	lane_judge(worker, lane, count);
	twi_count_add(&worker->transferred_count, tally.transferred);
	twi_count_add(&worker->reclaimed_count, tally.reclaimed);
	return count;
}
