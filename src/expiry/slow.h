/* SPDX-License-Identifier: MIT */
/*
 * Slow runs: each thread records its runs, and other threads notice if a run takes too long. A
 * watch exists only with the option slow_ns. An engine without it pays nothing more for its runs.
 *
 * A thread that runs a callback records it in a slot. The engine's worker has one slot, and every
 * other thread uses that of its lane, so each slot has one writer at a time. The threads that share
 * the last lane have no slot: their runs are checked when they end. A run inside another run of the
 * same engine on the same thread is not checked, because it is part of the outer one.
 *
 * No thread is a dedicated watcher. Threads look at the slots at points where a look costs little
 * (twi_watch_look, twi_watch_claim). A schedule looks when it completes a unit, and tw_engine_watch
 * and the statistics calls always look. An executor looks when it begins a run, and the worker when
 * it has handed over a batch.
 *
 * State of a slot, [atomic E65]:
 *
 *     bits 63..2 number of the run | bit 1 reported | bit 0 running
 *
 *     idle     -> running         the running thread, by a store, after the fields
 *     running  -> running, reported  a watcher that finds it too slow, by a swap, so
 *                                 only one watcher reports the run
 *     running  -> idle, next      the running thread, by a store; if the run was slow, by a swap,
 *                                 which fails if the run was reported meanwhile
 *
 * Fields. They are written while the state is idle, and each idle state has a new number. A watcher
 * reads the state before the fields. If a field belongs to a later run, the state has changed by
 * then, and the swap fails. So all fields of a report belong to one run, and that run had not ended
 * when it was claimed. It may end before the hook reads the report, because a run does not wait for
 * the hook. So the hook must not follow the report's pointers.
 *
 * Each slow run is counted once, by the thread whose swap succeeds. A watcher's clock may be ahead
 * of the clock reading at the run's end. Then the watcher may have reported a run that had not
 * exceeded the bound when it ended. Such a run counts too.
 *
 * Progress: wait-free, except for the hook.
 */
#ifndef TWI_EXPIRY_SLOW_H
#define TWI_EXPIRY_SLOW_H

#include "worker/role.h"

struct twi_watch_slot {
	TWI_CACHE_ALIGNED _Atomic uint64_t state; /* [atomic E65] */
	_Atomic int64_t begin_ns;                 /* [atomic E65] */
	_Atomic(void *) node;                     /* [atomic E65] */
	_Atomic uint64_t generation;              /* [atomic E65] */
	_Atomic(tw_callback *) callback;          /* [atomic E65] */
	_Atomic(void *) arg;                      /* [atomic E65] */
};

struct twi_watch {
	int64_t slow_ns;                         /* [const] */
	tw_slow_hook *hook;                      /* [const] NULL if slow runs are only counted */
	void *context;                           /* [const] */
	TWI_CACHE_ALIGNED _Atomic uint64_t used; /* [atomic] a bit for each slot ever used */
	_Atomic uint64_t count;                  /* [atomic] slow runs */
	/* a slot for each lane; the worker has that of the shared lane */
	struct twi_watch_slot slot[TWI_LANES];
};

/*
 * A report. It holds all that the hook needs, so it can be delivered after the RCU section, when
 * the engine may be freed.
 */
struct twi_report {
	tw_slow_hook *hook;
	void *context;
	struct tw_slow slow;
};

/* Makes the watch that the options ask for. Returns NULL if there is no memory. */
struct twi_watch *twi_watch_create(const struct tw_allocator *allocator,
				   const struct tw_options *options);
/* Frees the watch. NULL is accepted. */
void twi_watch_free(const struct tw_allocator *allocator, struct twi_watch *watch);
/*
 * Resets the watch in a forked child: no callback runs there, and the count is zero. NULL is
 * accepted.
 */
void twi_watch_renew(struct twi_watch *watch);

/*
 * Begins a run at `now_ns`. Marks it if its end must be checked. twi_watch_end must end a marked
 * run.
 */
void twi_watch_begin(struct twi_run *run, int64_t now_ns);
/* Ends a marked run at `now_ns`. May call the hook. Returns the time after the hook. */
int64_t twi_watch_end(const struct twi_run *run, int64_t now_ns);

/*
 * Reports all runs that are too slow now. Returns how many there are, including those reported
 * before.
 */
int twi_watch_look(struct twi_worker *worker);
/*
 * Claims one slow run that was not reported yet. Must be called inside an RCU section. Returns true
 * if the caller must report the run, which it must do outside of the section.
 */
bool twi_watch_claim(struct twi_worker *worker, struct twi_report *ret);
void twi_report_deliver(const struct twi_report *report);

/* Returns how many runs were slow so far. */
uint64_t twi_watch_count(const struct twi_worker *worker);

#endif
