/* SPDX-License-Identifier: MIT */
/*
 * Slow runs: who runs what since when, and who notices that it takes too long. There only with the
 * option slow_ns; an engine without it has no watch, and its runs cost nothing more.
 *
 * A thread that runs a callback says so in a slot: the engine's worker in one, every other thread in that
 * of its lane, so each slot has one writer at a time. The threads that share the last lane have none:
 * their runs are judged when they end. So is nothing inside another run of the same engine on the same
 * thread: that is part of the outer one.
 *
 * Nobody watches by profession. Whoever comes by, with some time to spare, looks at the slots (twi_watch_look,
 * twi_watch_claim): schedule at each unit's end, who asks (watch, statistics), an executor that begins a run,
 * a worker that has handed over a batch.
 *
 * State of a slot, [atomic E65]:
 *
 *     bits 63..2 number of the run | bit 1 told | bit 0 running
 *
 *     idle     -> running         who runs, by a store, after the fields
 *     running  -> running, told   who came by and found it too slow: a swap, so one of all
 *     running  -> idle, next      who ran: by a store; too slow, by a swap, which fails where it was told
 *
 * Fields. They are written in idle, of which the number is a new one each time. Who reads them reads the
 * state before; if one was of a later run, the state is a later one by then, and the swap fails. So what is
 * told is of one run. That it was still running when it was told is certain; that it is when the hook
 * reads, is not: nobody waits for a hook, and a pointer is a number.
 *
 * Each slow run is counted once, by who wins the swap. A watcher's clock may be ahead of the reading that
 * the end goes by: then it has told of a run that took as long as it may, and no longer. It counts too.
 *
 * Progress: wait-free, the hook excepted.
 */
#ifndef TWI_WORKER_WATCH_H
#define TWI_WORKER_WATCH_H

#include "worker/worker.h"

struct twi_watch_slot {
	TWI_CACHE_ALIGNED _Atomic uint64_t state; /* [atomic E65] */
	_Atomic int64_t begin_ns;                 /* [atomic E65] */
	_Atomic(void *) node;                     /* [atomic E65] */
	_Atomic uint64_t birth;                   /* [atomic E65] */
	_Atomic(tw_callback *) callback;          /* [atomic E65] */
	_Atomic(void *) arg;                      /* [atomic E65] */
};

struct twi_watch {
	int64_t slow_ns;                         /* [const] */
	tw_slow_hook *hook;                      /* [const] NULL: count only */
	void *context;                           /* [const] */
	TWI_CACHE_ALIGNED _Atomic uint64_t used; /* [atomic] bit per slot that ever was */
	_Atomic uint64_t count;                  /* [atomic] slow runs */
	struct twi_watch_slot slot[TWI_LANES];   /* by lane; the shared one's is the worker's */
};

/* What is told, once nothing of the engine is needed any more. */
struct twi_report {
	tw_slow_hook *hook;
	void *context;
	struct tw_slow slow;
};

/* NULL when there is no memory. */
struct twi_watch *twi_watch_create(const struct tw_allocator *allocator,
				   const struct tw_options *options);
/* NULL is accepted. */
void twi_watch_free(const struct tw_allocator *allocator, struct twi_watch *watch);
/* In a forked child: nobody runs anything, nothing is counted. NULL is accepted. */
void twi_watch_renew(struct twi_watch *watch);

/* A run begins at `now_ns`, and is marked; its end must be told by twi_watch_end. */
void twi_watch_begin(struct twi_run *run, int64_t now_ns);
/* A run that is marked has ended, at `now_ns`. May call the hook; what the time is after that. */
int64_t twi_watch_end(const struct twi_run *run, int64_t now_ns);

/* Tells of all that are too slow. How many there are, told before or not. */
int twi_watch_look(struct twi_worker *worker);
/* The same inside a section: one that nobody has told of. True: to be told outside. */
bool twi_watch_claim(struct twi_worker *worker, struct twi_report *ret);
void twi_report_tell(const struct twi_report *report);

/* How many were slow so far. */
uint64_t twi_watch_count(const struct twi_worker *worker);

#endif
