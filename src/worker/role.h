/* SPDX-License-Identifier: MIT */
/* Records which thread is the worker, and which callbacks a thread runs. */
#ifndef TWI_WORKER_ROLE_H
#define TWI_WORKER_ROLE_H

#include "worker/worker.h"

/* Returns the worker of a node's engine. The worker is the first member of the engine. */
static inline struct twi_worker *twi_node_worker(struct twi_node *node)
{
	return (struct twi_worker *)(void *)twi_node_engine(node);
}

/* Bits of a run's marks. */
enum {
	/* The run holds a slot of the limit, until it passes the slot on or ends. */
	TWI_RUN_OWNS_SLOT = 1,
	/* The end of the run checks whether it was slow (expiry/slow.h). */
	TWI_RUN_TIMED = 2,
	/* The end of the run records how long it took (expiry/measure.h). */
	TWI_RUN_MEASURED = 4,
	/* The end of the run is reported to ThreadSanitizer (base/tsan.h). */
	TWI_RUN_REPORTED = 8,
};

/* A running callback, on the stack of its thread: which engine it belongs to, and its timeout. */
struct twi_run {
	struct twi_run *outer;
	struct twi_worker *worker;
	struct twi_thread *thread;
	struct twi_node *node;
	struct tw_handle handle;
	const struct tw_kind *kind;
	void *arg;
	/* how late the run began; set only if the engine has a bound on lateness */
	int64_t late_by_ns;
	int64_t begin_ns; /* when the run began; set only if the run is timed or measured */
	uint8_t marks;    /* bits TWI_RUN_* */
};

/* Returns whether the engine accepts timeouts (STARTING, RUNNING), and belongs to this process. */
bool twi_worker_open(const struct twi_worker *worker);

/*
 * Makes the calling thread the one that may touch the wheel, until twi_worker_disown. No other
 * thread may have that right. If the thread ends first, `close` is called, unless it is NULL.
 */
void twi_worker_own(struct twi_worker *worker, struct twi_thread *thread, void (*close)(void *));

/* Makes the calling thread the worker. */
TWI_WORKER_BEGINS void twi_worker_enter(struct twi_worker *worker);

/*
 * Returns whether the calling thread is the worker, inside one of its turns. In a callback the
 * thread may be another engine's worker as well.
 */
bool twi_worker_inside(const struct twi_worker *worker);

/* Takes back the right that twi_worker_own has given to the calling thread. */
void twi_worker_disown(struct twi_worker *worker);

/*
 * Ends the role of a worker whose thread ends inside a callback. Stores the engine's next state
 * (FAILED or ORPHAN).
 */
void twi_worker_died(struct twi_worker *worker);

/* Returns the innermost callback of this worker's engine that the thread is in, or NULL. */
struct twi_run *twi_run_of(const struct twi_thread *thread, const struct twi_worker *worker);

#endif
