/* SPDX-License-Identifier: MIT */
/*
 * A snapshot: a thread that wants to see an engine asks the worker to look at the parts that only
 * the worker may touch. These are the wheel and the consumer ends of the queues.
 *
 * Protocol. The asking thread has a place for the answer on its stack, and stores its address in
 * the worker's `snapshot` if that is empty. Only one thread asks at a time, and others wait. The
 * asking thread then takes a ticket of flush's, which keeps the worker awake and wakes it (E8),
 * and waits as a flusher does (E13). The worker takes the address out at the begin of its next
 * turn, looks, and publishes that the answer is there (E71). A thread that gives up takes the
 * address out itself. Of the two swaps one wins. If the worker's came first, the look is under way.
 * Then the asking thread must wait for its end, because otherwise the worker would write into a
 * place that is gone.
 *
 * Progress. Asking blocks until the given time, and for a look that is under way then. The look is
 * O(pending), unless only the next due tick is wanted; a turn without one pays a load.
 */
#ifndef TWI_TURN_SNAPSHOT_H
#define TWI_TURN_SNAPSHOT_H

#include "base/atomic.h"
#include "wheel/snapshot.h"
#include "worker/worker.h"

/* The contents of the lanes. */
struct twi_ingress_snapshot {
	unsigned lanes;            /* in use */
	uint64_t ring;             /* entries, stale ones among them */
	uint64_t ring_cancelled;   /* of these, nodes that must leave the wheel, or be filed anew */
	uint64_t linked;           /* in link queues: the lane had no ring, or a full one */
	uint64_t linked_cancelled; /* likewise */
};

/* A timeout as it was when the worker looked: an indication only. */
struct twi_snapshot_node {
	void *node;
	uint64_t generation;
	const struct tw_kind *kind;
	void *arg;
	int64_t deadline_ns;
};

struct twi_snapshot {
	struct twi_wheel_snapshot wheel;
	struct twi_ingress_snapshot ingress;
	struct twi_snapshot_node cancelled; /* the first of them, if there is one */
	uint64_t count;                     /* timeouts in the wheel */
	uint64_t due;                       /* out of it, and about to run */
	uint64_t fresh;                     /* the owner's, not in the wheel yet */
	uint64_t tick;                      /* the wheel's now */
	uint64_t next_due;                  /* a tick, or TWI_TICK_NEVER */
	int64_t next_due_ns;                /* when that tick is over, or INT64_MAX */
	bool due_only; /* set by the asking thread: only the two above, in O(levels) or O(slots) */
	_Atomic bool done; /* [atomic E71] */
};

/*
 * Looks at once. Must be called on the worker, or by the owner of the loop. `ret` must be zeroed,
 * except for `due_only`.
 */
TWI_WORKER_ONLY void twi_snapshot_here(struct twi_worker *worker, struct twi_snapshot *ret);

/*
 * Asks the worker, from another thread. `snapshot` must be zeroed, except for `due_only`. Returns 0, -ETIMEDOUT, or
 * -ESHUTDOWN if no worker will take a turn.
 */
int twi_snapshot_ask(struct twi_worker *worker, struct twi_snapshot *snapshot, int64_t until_ns);

/* Answers the thread that asks. Must be called by the worker. */
TWI_WORKER_ONLY void twi_snapshot_serve(struct twi_worker *worker);

/* Must be called by the worker at the begin of a turn, after it has read the tickets. */
static inline TWI_WORKER_ONLY void twi_snapshot_look(struct twi_worker *worker)
{
	/*
	 * RELAXED: a thread that has a ticket stored its address before. A thread without one keeps
	 * us awake for one more turn.
	 */
	if (TWI_UNLIKELY(twi_load_relaxed(&worker->snapshot) != NULL))
		twi_snapshot_serve(worker);
}

#endif
