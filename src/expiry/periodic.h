/* SPDX-License-Identifier: MIT */
/*
 * The runs of periodic timeouts.
 */
#ifndef TWI_EXPIRY_PERIODIC_H
#define TWI_EXPIRY_PERIODIC_H
#include "worker/role.h"

/* A run of a periodic timeout: a run, and the data for its next step. */
struct twi_chain_run {
	struct twi_run run;
	struct twi_chain *chain;
	int64_t interval_ns; /* the period, or what tw_period_next has set; never negative */
	enum tw_end end;     /* why the chain ends, if this run is the last one */
	bool place_offered;  /* the chain's slot of the limit may be passed on to a new timeout */
	bool once;           /* the timeout has a date: it is over as soon as the run begins */
};

/*
 * Does the same as twi_run, for a run of a chain. `word`: the state word before the step to
 * RUNNING. Ends with the step to WHEELED, or with the chain's end. If the chain was already
 * cancelled, its callback does not run.
 */
void twi_chain_run(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		   uint64_t word);

/* Does the same as twi_chain_run for a rejected run, with the drop hook instead of the callback. */
void twi_chain_drop(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		    uint64_t word);

/*
 * Allows the first timeout that this run schedules to take over the chain's slot of the limit. Must
 * be called in the chain's last run.
 */
void twi_chain_place_offer(struct twi_chain_run *own);

/*
 * Returns the deadline of the next run: its scheduled time, with jitter and the slack of its kind.
 */
int64_t twi_chain_deadline_ns(const struct twi_worker *worker, struct twi_chain *chain,
			      const struct tw_kind *kind, int64_t interval_ns);

/*
 * Called in a forked child, for a chain whose run stayed with the parent. Decides when the chain
 * runs next, and stores that deadline in the node.
 */
void twi_chain_inherit(const struct twi_worker *worker, struct twi_node *node, uint64_t word);

#endif
