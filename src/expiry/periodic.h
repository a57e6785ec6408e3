/* SPDX-License-Identifier: MIT */
/*
 * The runs of periodic timeouts.
 */
#ifndef TWI_EXPIRY_PERIODIC_H
#define TWI_EXPIRY_PERIODIC_H
#include "worker/role.h"

/* A run of a periodic timeout: the same, and its next step. */
struct twi_chain_run {
	struct twi_run run;
	struct twi_chain *chain;
	int64_t interval_ns; /* as tw_period_next set it, or the period; never negative */
	enum tw_end end;     /* if this run is the last one */
	bool place_offered;  /* its slot of the limit may be passed on */
	bool once;           /* it has a date: over as soon as the run begins */
};

/*
 * Like twi_run, for a run of a chain: from the step to RUNNING, which found `word`, to the
 * step to WHEELED or the chain's end. If the chain is over already, its callback does not run.
 */
void twi_chain_run(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		   uint64_t word);

/* The same for a run that was rejected, with the drop hook instead of the callback. */
void twi_chain_drop(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		    uint64_t word);

/* Offers the slot of the limit of a last run to the first schedule from inside. */
void twi_chain_place_offer(struct twi_chain_run *own);

/*
 * The deadline of the next run from its scheduled time, with jitter and the slack of its
 * kind.
 */
int64_t twi_chain_deadline_ns(const struct twi_worker *worker, struct twi_chain *chain,
			      const struct tw_kind *kind, int64_t interval_ns);

/*
 * chain.c, in a forked child: decides when a chain goes on if its run stayed with the parent. Sets
 * that deadline in the node.
 */
void twi_chain_inherit(const struct twi_worker *worker, struct twi_node *node, uint64_t word);

#endif
