/* SPDX-License-Identifier: MIT */
/*
 * The worker: the one thread that touches the wheel and the consumer ends of the queues. Its turns
 * are in turn/turn.c, its states in state.h.
 */
#ifndef TWI_WORKER_WORKER_H
#define TWI_WORKER_WORKER_H

#include "clock/clock.h"
#include "thread/park.h"
#include "thread/thread.h"
#include "timeout/chain.h"
#include "timeout/node.h"
#include "wheel/wheel.h"
#include "worker/lane.h"
#include "worker/mark.h"
#include "worker/wake.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/engine.h>
#include <tickwheel/memory.h>

enum {
	/* How many due timeouts may be out of the wheel at once: a few chunks. */
	TWI_DUE_BATCH = 4 * TWI_CHUNK_ENTRIES,
	/* How many of the owner's latest timeouts may wait outside the wheel (turn/fresh.h). */
	TWI_FRESH_MAX = 16,
};

struct twi_snapshot;
struct twi_wall;

struct twi_worker {
	/* Every call reads these fields, which are seldom written. */
	TWI_CACHE_ALIGNED _Atomic uint32_t state; /* [atomic E12] enum tw_engine_state, a futex */
	uint32_t fork_epoch;                      /* [const] */
	_Atomic bool sweeping;                    /* [atomic E10] stop's sweep has begun */
	bool loop;              /* [const] loop mode: no thread, the caller polls */
	bool ordered;           /* [const] timeouts run in the order of their deadlines */
	bool quick;             /* [const] the engine has no order and no limit */
	struct tw_clock *clock; /* [const] */
	/* The thread that may touch the wheel. Other threads only compare its address. */
	_Atomic(struct twi_thread *) owner; /* [atomic] */
	uint64_t pending_limit;             /* [const] 0 for no limit */
	_Atomic int64_t wake_before_ns;     /* [worker E8] earlier deadlines wake the sleeper */
	/* How many slots of the limit are taken. If there is a limit, all threads write this. */
	TWI_CACHE_ALIGNED _Atomic uint64_t slots_taken; /* [atomic] */
	/* The reasons why the worker must wake up. */
	TWI_CACHE_ALIGNED struct twi_park park;
	_Atomic uint32_t flush_wanted;  /* [atomic E8] tickets given out */
	_Atomic uint32_t units_pending; /* [atomic E8] units pushed since the last turn */
	_Atomic uint32_t flush_done;    /* [atomic E13] tickets served */
	_Atomic uint32_t flush_epoch;   /* [atomic E13] flushers wait on it; a futex */
	_Atomic uint32_t in_flight; /* [atomic] dispatched timeouts that have not ended; a futex */
	_Atomic(struct twi_snapshot *) snapshot; /* [atomic E71] the asking thread's place */
	_Atomic uint64_t early_reported; /* [atomic] the greatest cancelled_early that was read */
	_Atomic uint64_t cancelled_sum; /* [atomic] rough sum of all cancels (ingress/pressure.c) */

	/* Only the worker uses most of these fields. */
	TWI_CACHE_ALIGNED struct twi_wheel *wheel TWI_WORKER_FIELD; /* [worker] */
	struct twi_thread *self TWI_WORKER_FIELD; /* [worker] the thread that is the worker now */
	struct twi_hold hold;                     /* [worker] the owner's right to the wheel */
	void *outer TWI_WORKER_FIELD;         /* [worker] the engine whose worker self was before */
	uint32_t first_lane TWI_WORKER_FIELD; /* [worker] the next batch begins here */
	_Atomic uint32_t lanes_seen;          /* [worker] lanes in use, at the last batch */
	bool unfenced TWI_WORKER_FIELD;       /* [worker] some lane pushes without a fence */
	int64_t given_up_ns TWI_WORKER_FIELD; /* [worker] least deadline of recent cancels */
	const struct tw_allocator *allocator; /* [const] */
	_Atomic uint32_t marks;               /* [atomic] bits of mark.h */
	uint32_t check;                       /* [const] enum tw_check */
	uint64_t transfer_batch;              /* [const] */
	int64_t spin_ns;                      /* [const] */
	uint64_t tick_ns;                     /* [const] the wheel's tick */
	int64_t epoch_ns;                     /* [const] the wheel's epoch */
	tw_dispatch_hook *dispatch;           /* [const] */
	void *dispatch_context;               /* [const] */
	uint32_t rejection;                   /* [const] enum tw_rejection */
	tw_drop_hook *on_drop;                /* [const] */
	void *drop_context;                   /* [const] */
	int64_t late_ns;                      /* [const] the bound on lateness, or 0 */
	tw_late_hook *on_late;                /* [const] */
	void *late_context;                   /* [const] */
	struct twi_watch *watch;              /* [const] NULL if slow runs are not watched */
	struct twi_measure *measure;          /* [const] NULL if runs are not measured */
	bool runs_checked;                    /* [const] runs are timed, measured or reported */
	int64_t run_from_ns TWI_WORKER_FIELD; /* [worker] rough start of the next run */
	int64_t due_before_ns TWI_WORKER_FIELD;   /* [worker] the batch is due before this */
	uint64_t due_limit TWI_WORKER_FIELD;      /* [worker] the last tick of the batch */
	size_t due_at TWI_WORKER_FIELD;           /* [worker] the next in `due` to expire */
	size_t due_count TWI_WORKER_FIELD;        /* [worker] */
	int64_t direct_from_ns TWI_WORKER_FIELD;  /* [worker] see direct.h */
	int64_t fresh_after_ns TWI_WORKER_FIELD;  /* [worker] see fresh.h */
	uint64_t expire_stop TWI_WORKER_FIELD;    /* [worker] expired_count at the next check */
	uint64_t expire_end TWI_WORKER_FIELD;     /* [worker] expired_count at the poll's end */
	int64_t expire_until_ns TWI_WORKER_FIELD; /* [worker] the time of the poll's end */
	int64_t timer_ns TWI_WORKER_FIELD;        /* [worker] the descriptor's setting, if known */
	int64_t armed_ns TWI_WORKER_FIELD;        /* [worker] the owner's last setting */
	uint32_t kicks_expected TWI_WORKER_FIELD; /* [worker] see timer.h */
	unsigned poll_left TWI_WORKER_FIELD;      /* [worker] enum twi_left of the last poll */
	bool sleep_published TWI_WORKER_FIELD;    /* [worker] loop mode: sleep is published */
	bool polls_follow TWI_WORKER_FIELD;       /* [worker] loop mode: another poll follows */
	bool barrier_failed TWI_WORKER_FIELD;     /* [worker] a push may be hidden (sleep.c) */
	uint32_t fresh_count TWI_WORKER_FIELD;    /* [worker] nodes and holes in `fresh` */
	struct twi_node *fresh[TWI_FRESH_MAX] TWI_WORKER_FIELD; /* [worker] fresh.h */
	size_t dispatched_at TWI_WORKER_FIELD;    /* [worker] the next one not accepted yet */
	size_t dispatched_count TWI_WORKER_FIELD; /* [worker] */
	_Atomic(struct twi_wall *) wall;          /* [handoff E110] NULL if no date was ever used */
	/* Timeouts that are not offered to the hook fill `dispatched` from its end downwards. */
	size_t inlined_at TWI_WORKER_FIELD;    /* [worker] the next of them to run */
	size_t inlined_count TWI_WORKER_FIELD; /* [worker] */
	tw_unexpired_hook *on_unexpired;       /* [handoff E12] */
	void *hand_back_context;               /* [handoff E12] */
	/* Counters. The first two are a pair, as in a lane: inserts and removals by direct.h. */
	_Alignas(2 * sizeof(uint64_t)) _Atomic uint64_t direct_scheduled_count; /* [worker E90] */
	_Atomic uint64_t direct_cancelled_count;                                /* [worker E90] */
	_Atomic uint64_t expired_count;                                         /* [worker] */
	_Atomic uint64_t unexpired_count;                                       /* [worker] */
	_Atomic uint64_t transferred_count;                                     /* [worker] */
	_Atomic uint64_t reclaimed_count;  /* [worker] cancelled, and their memory is free again */
	_Atomic uint64_t unlinked_count;   /* [worker] reclaimed, and never in the wheel */
	_Atomic uint64_t transfer_count;   /* [worker] */
	_Atomic uint64_t largest_transfer; /* [worker] */
	_Atomic uint64_t turn_count;       /* [worker] */
	_Atomic uint64_t park_count;       /* [worker] */
	_Atomic uint64_t wake_count[TWI_WAKE_CAUSES]; /* [worker] */
	_Atomic uint64_t catch_up_tick_count;         /* [worker] */
	_Atomic uint64_t cascaded_count;              /* [worker] a copy of the wheel's count */
	_Atomic uint64_t wheel_bytes;                 /* [worker] */
	_Atomic uint64_t wheel_block_count;           /* [worker] */
	_Atomic uint64_t check_failure_count;         /* [worker] */
	_Atomic int64_t latest_ns;                    /* [worker] */
	_Atomic uint64_t executor_rejected_count;     /* [worker] */
	_Atomic uint64_t dropped_count;               /* [worker] */
	_Atomic uint64_t late_count;                  /* [atomic] any running thread adds */
	_Atomic uint64_t periodic_run_count;          /* [worker] */
	_Atomic uint64_t chain_expired_count;         /* [atomic] any running thread adds */
	struct twi_node *due[TWI_DUE_BATCH];          /* [worker] */
	struct tw_due dispatched[TWI_DUE_BATCH];      /* [worker] */

	_Atomic(struct twi_lane_block *) far[TWI_FAR_PAGES]; /* [atomic E130] see ingress/far.h */
	struct twi_lane_block near;                          /* the near lanes */
};

_Static_assert(offsetof(struct twi_worker, direct_cancelled_count) ==
		       offsetof(struct twi_worker, direct_scheduled_count) + sizeof(uint64_t),
	       "begins and ends are a pair");

#endif
