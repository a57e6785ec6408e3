/* SPDX-License-Identifier: MIT */
/*
 * Wall timeouts: those with a date of the wall clock (docs/internals/special-paths.md, "Wall
 * timeouts").
 *
 * A wall timeout is a node and a second block, like a periodic timeout of one run. The block holds
 * the date and the slack, which are constant. The node waits in the wheel of the engine's clock, by
 * a deadline that the worker alone computes: the date minus the difference of the two clocks. The
 * difference is constant until the wall clock is set.
 *
 * The scheduling thread does not convert the date. It pushes the timeout as one that is due at
 * once. In its next turn the worker sees that the date has not come, computes the deadline, and
 * lists the timeout. Therefore no deadline can be computed from an outdated difference.
 *
 * Before each run the worker compares the date with the wall clock (twi_wall_look). If the clock
 * was set back, the timeout goes back into the wheel. If it was set forward, the deadlines are too
 * late, so the worker goes through the list and files each timeout again (twi_wall_turn), a slice
 * per turn.
 *
 * The mark "listed" is the lowest bit of the deadline, because the state word has no free bit. The
 * mark changes a deadline by at most a nanosecond. tw_reschedule sets the bit RESCHEDULED, which
 * makes the mark void: such a timeout depends on its deadline alone.
 */
#ifndef TWI_EXPIRY_WALL_H
#define TWI_EXPIRY_WALL_H

#include "base/atomic.h"
#include "thread/step.h"
#include "worker/worker.h"

#include <stdbool.h>
#include <stdint.h>

struct twi_wall {
	const struct tw_allocator *allocator; /* [const] */
	struct twi_park *park;                /* [const] the park of the engine's worker */
	_Atomic uint32_t *steps;              /* [const] how often the wall clock was stepped */
	bool watched;                         /* the watch was started and has not ended */
	struct twi_step_watch watch;          /* [const] */
	/* [atomic E8] the counter of steps that the watch raises */
	_Atomic uint32_t own_steps;
	_Atomic bool open;                    /* [atomic E8] the watch may wake the worker */
	uint32_t steps_seen TWI_WORKER_FIELD; /* [worker] */
	int64_t ahead_ns TWI_WORKER_FIELD;    /* [worker] the wall clock minus the engine's */
	/* entries (see entry_of); the timeouts of some may have ended */
	uint64_t *listed TWI_WORKER_FIELD;
	size_t listed_count TWI_WORKER_FIELD; /* [worker] */
	size_t listed_room TWI_WORKER_FIELD;  /* [worker] */
	size_t sweep_at
		TWI_WORKER_FIELD; /* [worker] next entry to file again; listed_count if none */
	size_t scavenge_at TWI_WORKER_FIELD; /* [worker] next entry to check for an end */
};

static inline struct twi_wall *twi_wall_of(const struct twi_worker *worker)
{
	return twi_load_acquire(&worker->wall); /* E110: pairs with twi_engine_wall(). */
}

/* Returns whether a step of the wall clock has left work that the worker has not done yet. */
static inline TWI_WORKER_UNCHECKED bool twi_wall_stepped(const struct twi_worker *worker)
{
	const struct twi_wall *wall = twi_wall_of(worker);

	/*
	 * E8: a reason to stay awake. The thread that counts a step does so before it looks whether
	 * the worker sleeps.
	 */
	return TWI_UNLIKELY(wall != NULL) && (twi_load_seq_cst(wall->steps) != wall->steps_seen ||
					      wall->sweep_at < wall->listed_count);
}

/*
 * Returns whether the timeout has a date, and was not rescheduled. The caller must be allowed to
 * read its chain.
 */
bool twi_wall_is(struct twi_node *node, uint64_t word);

/*
 * Does the same as twi_wall_is, on any thread. `chain` is the node's argument, read before `word`.
 * It is dereferenced only if `word` is that of a chain. Then it points to the chain's block, which
 * stays readable even if the chain has ended meanwhile.
 */
bool twi_wall_chain_is(struct twi_chain *chain, uint64_t word);

/* Returns the deadline with which a wall timeout is scheduled. */
int64_t twi_wall_first_ns(const struct twi_worker *worker);

/*
 * Returns the wall clock minus the engine's clock. If the result is inexact, deadlines become
 * later, not earlier.
 */
int64_t twi_wall_ahead_ns(struct tw_clock *clock);

/* Converts a date to the engine's time. */
int64_t twi_wall_deadline_ns(int64_t wall_ns, int64_t ahead_ns);

/*
 * Converts the date of a wall timeout to the engine's time, by the present difference of the
 * clocks.
 */
int64_t twi_wall_chain_ns(const struct twi_worker *worker, struct twi_chain *chain);

/*
 * Takes the timeouts that are early by the wall clock out of the due batch. Returns false if none
 * is left in it.
 */
TWI_WORKER_ONLY bool twi_wall_look(struct twi_worker *worker, struct twi_wall *wall);

/*
 * Does a part of the work that steps of the wall clock have left. Returns false if there was none.
 */
TWI_WORKER_ONLY bool twi_wall_turn(struct twi_worker *worker, struct twi_wall *wall);

#endif
