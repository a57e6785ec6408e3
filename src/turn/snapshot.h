/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of an engine. The wheel and the consumer ends of the queues may be read only by the
 * worker, so another thread asks the worker to look at them.
 *
 * Protocol. The asking thread has a place for the answer on its stack. It stores the address of
 * this place in the worker's `snapshot`. If `snapshot` is not NULL, another thread is asking, and
 * this thread waits until that thread is done. The asking thread then takes a flush ticket, which
 * wakes the worker or keeps it awake (E8), and waits as a flusher does (E13). At the beginning of
 * its next turn, the worker takes the address out, looks, and publishes that the answer is there
 * (E71). A thread that gives up takes the address out itself. Only one of the two swaps succeeds.
 * If the worker's swap succeeds, the worker is looking. Then the asking thread must wait for the
 * end of the look, because the worker still writes to that thread's stack.
 *
 * Progress. Asking blocks until the given time at most, and longer only if a look is under way
 * then. The look costs O(pending), unless the thread asks only for the next due tick. A turn
 * without a look costs one load.
 */
#ifndef TWI_TURN_SNAPSHOT_H
#define TWI_TURN_SNAPSHOT_H

#include "base/atomic.h"
#include "wheel/snapshot.h"
#include "worker/worker.h"

/* The contents of the lanes. */
struct twi_ingress_snapshot {
	unsigned lanes;          /* lanes in use */
	uint64_t ring;           /* ring entries, including stale ones */
	uint64_t ring_cancelled; /* ring entries for nodes to take out or file again */
	uint64_t linked;         /* entries in the link queues of schedules */
	/* entries in the link queues of cancels: nodes to take out or file again */
	uint64_t linked_cancelled;
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
	struct twi_snapshot_node cancelled; /* one of the cancelled nodes, if there are any */
	uint64_t count;                     /* timeouts in the wheel */
	uint64_t due;                       /* timeouts taken out of the wheel, about to run */
	uint64_t fresh;                     /* the owner's fresh timeouts, not in the wheel yet */
	uint64_t tick;                      /* the wheel's present tick */
	uint64_t next_due;                  /* the next due tick, or TWI_TICK_NEVER */
	int64_t next_due_ns;                /* the end of that tick, or INT64_MAX */
	/* set by the asking thread: the answer needs only the two fields above */
	bool due_only;
	_Atomic bool done; /* [atomic E71] */
};

/*
 * Takes the snapshot on the calling thread, which must be the worker or the owner of the loop.
 * `ret` must be zeroed, except for `due_only`.
 */
TWI_WORKER_ONLY void twi_snapshot_here(struct twi_worker *worker, struct twi_snapshot *ret);

/*
 * Asks the worker for a snapshot, from another thread. `snapshot` must be zeroed, except for
 * `due_only`. Returns 0, -ETIMEDOUT, or -ESHUTDOWN if there will be no worker to take a turn.
 */
int twi_snapshot_ask(struct twi_worker *worker, struct twi_snapshot *snapshot, int64_t until_ns);

/* Answers the asking thread. Must be called by the worker. */
TWI_WORKER_ONLY void twi_snapshot_serve(struct twi_worker *worker);

/*
 * Answers a waiting request, if there is one. The worker must call it at the beginning of a turn,
 * after it has read the tickets.
 */
static inline TWI_WORKER_ONLY void twi_snapshot_look(struct twi_worker *worker)
{
	/*
	 * RELAXED: a thread that has a ticket has stored its address before. A thread without a
	 * ticket yet will keep the worker awake for one more turn.
	 */
	if (TWI_UNLIKELY(twi_load_relaxed(&worker->snapshot) != NULL))
		twi_snapshot_serve(worker);
}

#endif
