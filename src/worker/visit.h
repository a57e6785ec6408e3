/* SPDX-License-Identifier: MIT */
/*
 * A look at what only the worker may touch: wheel and consumers' ends, for who wants to see an engine.
 *
 * Protocol. Who asks has a place for the answer on its stack, and puts its address into the worker's
 * word, which is empty: one asks at a time, others wait for that. Then it takes a ticket of settle's,
 * which keeps the worker awake and wakes it (E8), and waits as a settler does (E13). The worker takes the
 * address out at the begin of its next turn, looks, and says that it has (E71). Who gives up takes the
 * address out itself: of the two swaps one wins. If the worker's came first, the look is under way, and
 * who asked waits for its end, or the worker would write into a place that is gone.
 *
 * Progress. Asking blocks, until the given time and for the look that is under way then. The look is O(pending);
 * a turn without one pays a load.
 */
#ifndef TWI_WORKER_VISIT_H
#define TWI_WORKER_VISIT_H

#include "base/atomic.h"
#include "wheel/survey.h"
#include "worker/worker.h"

/* What waits in the lanes. */
struct twi_inbox {
	unsigned lanes; /* in use */
	uint64_t ring;  /* entries, stale ones among them */
	uint64_t
		ring_cancelled; /* of these, of what is to come out of the wheel, or to be filed anew */
	uint64_t linked;        /* in the queues of lanes without a ring, or whose ring was full */
	uint64_t linked_cancelled; /* likewise */
};

/* Of a timeout, as it was when the worker looked: numbers to go by. */
struct twi_sight {
	void *node;
	uint64_t birth;
	const struct tw_kind *kind;
	void *arg;
	int64_t deadline_ns;
};

struct twi_visit {
	struct twi_survey wheel;
	struct twi_inbox inbox;
	struct twi_sight cancelled; /* the first of them, if there is one */
	uint64_t count;             /* timeouts in the wheel */
	uint64_t due;               /* out of it, and about to run */
	uint64_t fresh;             /* the owner's, on their way into it */
	uint64_t tick;              /* the wheel's now */
	uint64_t next_due;          /* a tick, or TWI_TICK_NEVER */
	_Atomic bool done;          /* [atomic E71] */
};

/* On the worker, or by the owner of the loop: at once. `ret` is zeros. */
TWI_WORKER_ONLY void twi_visit_here(struct twi_worker *worker, struct twi_visit *ret);

/*
 * In other threads. `visit` is zeros. 0; -ETIMEDOUT; -ESHUTDOWN: no worker is there who will take a turn.
 */
int twi_visit_ask(struct twi_worker *worker, struct twi_visit *visit, int64_t until_ns);

/* The worker: does what it is asked for. */
TWI_WORKER_ONLY void twi_visit_serve(struct twi_worker *worker);

/* The worker, at the begin of a turn, after its look at the tickets. */
static inline TWI_WORKER_ONLY void twi_visit_look(struct twi_worker *worker)
{
	/* RELAXED: who has taken a ticket was here before; who has not yet keeps us awake for one more turn. */
	if (TWI_UNLIKELY(twi_load_relaxed(&worker->visit) != NULL))
		twi_visit_serve(worker);
}

#endif
