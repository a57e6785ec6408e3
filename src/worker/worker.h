/* SPDX-License-Identifier: MIT */
/*
 * The worker: the one thread that touches the wheel and the consumer ends of the queues. A turn has
 * three steps:
 *
 *     1. reclaim the nodes that came by a cancel queue
 *     2. transfer a batch out of rings and ingress queues
 *     3. expire the timeouts that are due
 *
 * A ring brings both kinds of nodes, to be reclaimed and to be transferred, in the order of the
 * pushes. The next turn follows at once if there is more than a batch. Otherwise the worker parks
 * until the next tick.
 *
 * The life of an engine is one state word, on which stop also sleeps:
 *
 *     NEW       -> STARTING           start: the winner of the compare-and-swap makes the thread
 *     STALLED   -> STARTING           start again after a failure
 *     STARTING  -> RUNNING            the worker, when it begins
 *     STARTING  -> STALLED            start, when the thread cannot be made
 *     STARTING, RUNNING -> FAILED     the worker's thread ends inside a callback
 *     NEW, STARTING -> RUNNING        loop mode: a thread becomes the owner
 *     RUNNING   -> STARTING           loop mode: the owner leaves
 *     STOPPING  -> ORPHAN             loop mode: the owner leaves
 *     STARTING  -> ORPHAN             loop mode: stop, while there is no owner
 *     NEW, STARTING, RUNNING, STALLED, FAILED -> NEW, STALLED
 *                                     a forked child takes over its copy (engine/adopt.c)
 *     NEW       -> STOPPED            stop: no timeout was ever accepted
 *     STARTING  -> STOPPING_STARTING  stop, while the thread is still being made
 *     STOPPING_STARTING -> STOPPING   the worker, when it begins
 *     STOPPING_STARTING -> ORPHAN     start, when the thread cannot be made
 *     RUNNING   -> STOPPING           stop; the worker sees it and finishes
 *     STALLED, FAILED -> ORPHAN       stop; there is no worker that could finish
 *     STOPPING  -> ORPHAN             the worker's thread ends inside a hand-back; or the stop that
 *                                     has adopted the engine runs out of time
 *     ORPHAN    -> STOPPING           a stop takes over: makes a thread, or finishes itself
 *     STOPPING  -> STOPPED            the finisher; its last touch of the engine
 *
 * A schedule is accepted only in STARTING and RUNNING. The caller checks the life inside a
 * read-side section.
 *
 * Finish loses no timeout. After stop has closed the state, the finisher sets `sweeping` and waits
 * for a grace period (E10). From then on no thread pushes: a schedule sees the closed state, and a
 * cancel sees `sweeping` and leaves the node to the sweep. The finisher empties queues and rings
 * into the wheel and hands back its timeouts. Then it waits for the callbacks that executors still
 * run, and for one more grace period, because a cancel may still look at a node of this engine. At
 * last it stores STOPPED.
 */
#ifndef TWI_WORKER_WORKER_H
#define TWI_WORKER_WORKER_H

#include "mech/clock.h"
#include "mech/park.h"
#include "mech/thread.h"
#include "timeout/chain.h"
#include "timeout/node.h"
#include "wheel/wheel.h"
#include "worker/lane.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/engine.h>
#include <tickwheel/memory.h>

enum twi_life {
	TWI_LIFE_NEW = 0,
	TWI_LIFE_STARTING = 1,
	TWI_LIFE_RUNNING = 2,
	TWI_LIFE_STALLED = 3,
	TWI_LIFE_FAILED = 4,
	TWI_LIFE_STOPPING_STARTING = 5,
	TWI_LIFE_STOPPING = 6,
	TWI_LIFE_ORPHAN = 7,
	TWI_LIFE_STOPPED = 8,
};

enum {
	/* How many due timeouts may be out of the wheel at once: a few chunks. */
	TWI_DUE_BATCH = 4 * TWI_CHUNK_ENTRIES,
	/*
	 * The memory bound. A lane counts a unit for every TWI_UNSEEN_UNIT timeouts that it pushes.
	 * When the worker has not seen TWI_UNSEEN_MAX units, it is woken, however far away its tick
	 * is. That is 2 MiB, and half of a ring.
	 */
	TWI_UNSEEN_UNIT = 64,
	TWI_UNSEEN_MAX = 512,
	/*
	 * After so many schedules a thread checks whether the worker keeps up. Must be a multiple
	 * of the unit.
	 */
	TWI_WAY_UNIT = 16 * TWI_UNSEEN_UNIT,
	/* How many of the owner's latest timeouts may wait outside the wheel (direct.h). */
	TWI_FRESH_MAX = 16,
};

/* Bits of a run's marks. */
enum {
	/* The run has a slot of the limit, until it passes the slot on or ends. */
	TWI_RUN_OWNS_SLOT = 1,
	/* The end of the run checks whether it was slow (watch.h). */
	TWI_RUN_TIMED = 2,
	/* The end of the run counts how long it took (measure.h). */
	TWI_RUN_MEASURED = 4,
	/* The end of the run is reported to ThreadSanitizer (base/tsan.h). */
	TWI_RUN_REPORTED = 8,
};

struct twi_measure;
struct twi_watch;
struct twi_visit;

/*
 * How a thread that schedules gives way to the worker: not at all, by a yield, or, for each value
 * above that, by one more ms of sleep.
 */
enum twi_way {
	TWI_WAY_FREE = 0,
	TWI_WAY_YIELD = 1,
};

/* Why a sleep ended. */
enum twi_wake {
	/* The time until which the worker slept has come. */
	TWI_WAKE_DEADLINE = 0,
	/* Another thread has scheduled, rescheduled or cancelled a timeout that could not wait. */
	TWI_WAKE_PRODUCER = 1,
	/* settle, stop, or a clock that was moved. */
	TWI_WAKE_CALL = 2,
	/* The worker looks again at a push that was not linked; or the system woke it. */
	TWI_WAKE_OTHER = 3,
	TWI_WAKE_CAUSES = 4,
};

/* The value while the worker is awake: no deadline is earlier, so no producer wakes it. */
#define TWI_WAKE_NOBODY INT64_MIN

struct twi_worker {
	/* Every call reads these; they are written when the life changes. */
	TWI_CACHE_ALIGNED _Atomic uint32_t life; /* [atomic E12] enum twi_life, a futex */
	uint32_t fork_epoch;                     /* [const] */
	_Atomic bool sweeping;                   /* [atomic E10] */
	bool loop;                               /* [const] no thread: the caller polls */
	struct tw_clock *clock;                  /* [const] */
	/* The thread that may touch the wheel. A thread only compares it with itself. */
	_Atomic(struct twi_thread *) owner; /* [atomic] */
	_Atomic uint64_t lanes_used; /* [atomic] a bit for each lane that was ever pushed to */
	uint64_t pending_limit;      /* [const] 0: none */
	/* While the worker sleeps: a timeout with an earlier deadline must wake it. */
	_Atomic int64_t wake_before_ns; /* [worker E8] */
	_Atomic uint64_t
		lanes_busy; /* [worker E8] a bit for each lane that is pushed to without a fence */

	/*
	 * Slots of the limit that are taken. Every thread writes it, but only if there is a limit.
	 */
	TWI_CACHE_ALIGNED _Atomic uint64_t slots_taken; /* [atomic] */

	/* The reasons why the worker should wake up. */
	TWI_CACHE_ALIGNED struct twi_park park;
	_Atomic uint32_t settle_wanted;    /* [atomic E8] tickets given out */
	_Atomic uint32_t unseen;           /* [atomic E8] units pushed since the last turn */
	_Atomic uint32_t settle_done;      /* [atomic E13] tickets served */
	_Atomic uint32_t settle_epoch;     /* [atomic E13] settlers wait for it; a futex */
	_Atomic uint32_t in_flight;        /* [atomic] dispatched, not ended; a futex */
	_Atomic(struct twi_visit *) visit; /* [atomic E71] of the thread that wants a look */
	_Atomic uint64_t early_told; /* [atomic] the greatest cancelled_early given to a reader */

	/* Only the worker uses these. */
	TWI_CACHE_ALIGNED struct twi_wheel *wheel TWI_WORKER_FIELD; /* [worker] */
	struct twi_thread *self TWI_WORKER_FIELD; /* [worker] the thread that is the worker now */
	void *outer TWI_WORKER_FIELD; /* [worker] of which engine self was the worker before */
	uint32_t first_lane TWI_WORKER_FIELD;   /* [worker] the next batch begins here */
	int64_t given_up_ns TWI_WORKER_FIELD;   /* [worker] first deadline of recent cancels */
	const struct tw_allocator *allocator;   /* [const] */
	uint32_t check;                         /* [const] enum tw_check */
	uint64_t transfer_batch;                /* [const] */
	int64_t spin_ns;                        /* [const] */
	uint64_t tick_ns;                       /* [const] the wheel's */
	int64_t epoch_ns;                       /* [const] the wheel's */
	tw_dispatch_hook *dispatch;             /* [const] */
	void *dispatch_context;                 /* [const] */
	uint32_t refusal;                       /* [const] enum tw_refusal */
	tw_drop_hook *drop;                     /* [const] */
	void *drop_context;                     /* [const] */
	int64_t late_ns;                        /* [const] 0: no bound */
	tw_late_hook *late;                     /* [const] */
	void *late_context;                     /* [const] */
	struct twi_watch *watch;                /* [const] NULL: no run is slow */
	struct twi_measure *measure;            /* [const] NULL: runs are not measured */
	bool runs_judged;                       /* [const] there is a bound, or a measurement */
	int64_t run_from_ns TWI_WORKER_FIELD;   /* [worker] when its next run begins, about */
	int64_t due_before_ns TWI_WORKER_FIELD; /* [worker] the batch has earlier deadlines */
	uint64_t due_limit TWI_WORKER_FIELD;    /* [worker] and due at this tick or before */
	size_t due_at TWI_WORKER_FIELD;         /* [worker] the next of the batch to expire */
	size_t due_count TWI_WORKER_FIELD;      /* [worker] */
	/*
	 * If the owner's timeout is due at this time or later, it goes straight into the wheel
	 * (direct.h).
	 */
	int64_t direct_from_ns TWI_WORKER_FIELD; /* [worker] */
	/* If a timeout is due later than this, it joins the fresh ones and needs nothing else. */
	int64_t fresh_after_ns TWI_WORKER_FIELD;  /* [worker] */
	uint64_t expire_stop TWI_WORKER_FIELD;    /* [worker] pause at this expired_count */
	int64_t timer_ns TWI_WORKER_FIELD;        /* [worker] the descriptor's setting, if known */
	int64_t armed_ns TWI_WORKER_FIELD;        /* [worker] the owner's last setting */
	uint32_t kicks_expected TWI_WORKER_FIELD; /* [worker] see poll.c */
	unsigned poll_left TWI_WORKER_FIELD;      /* [worker] enum twi_left of the last poll */
	bool said TWI_WORKER_FIELD;               /* [worker] loop mode: sleep is published */
	bool barrier_failed TWI_WORKER_FIELD;     /* [worker] a push may be seen too late */
	uint32_t fresh_count TWI_WORKER_FIELD;    /* [worker] */
	struct twi_node *fresh[TWI_FRESH_MAX] TWI_WORKER_FIELD; /* [worker] */
	size_t dispatched_at TWI_WORKER_FIELD;    /* [worker] the next that was not accepted */
	size_t dispatched_count TWI_WORKER_FIELD; /* [worker] */
	/* The timeouts that the hook is not offered lie at the end of `dispatched`, downwards. */
	size_t inlined_at TWI_WORKER_FIELD;    /* [worker] the next of them to run */
	size_t inlined_count TWI_WORKER_FIELD; /* [worker] */
	tw_hand_back *hand_back;               /* [handoff E12] */
	void *hand_back_context;               /* [handoff E12] */
	/* Counters with one writer. Any thread may read them. */
	/* A pair, as in a lane: inserted straight into the wheel, and removed straight from it. */
	_Alignas(2 * sizeof(uint64_t)) _Atomic uint64_t direct_scheduled_count; /* [worker E90] */
	_Atomic uint64_t direct_cancelled_count;                                /* [worker E90] */
	_Atomic uint64_t expired_count;                                         /* [worker] */
	_Atomic uint64_t handed_back_count;                                     /* [worker] */
	_Atomic uint64_t transferred_count;                                     /* [worker] */
	_Atomic uint64_t reclaimed_count;  /* [worker] cancelled, and their memory is free again */
	_Atomic uint64_t unlinked_count;   /* [worker] of these, the ones that came by ingress */
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
	_Atomic uint64_t executor_refused_count;      /* [worker] */
	_Atomic uint64_t dropped_count;               /* [worker] */
	_Atomic uint64_t late_count;                  /* [atomic] by the threads that run them */
	_Atomic uint64_t periodic_run_count;          /* [worker] */
	_Atomic uint64_t chain_expired_count;         /* [atomic] by the thread of the last run */
	struct twi_node *due[TWI_DUE_BATCH];          /* [worker] */
	struct tw_due dispatched[TWI_DUE_BATCH];      /* [worker] */

	struct twi_lane lane[TWI_LANES];
};

_Static_assert(offsetof(struct twi_worker, direct_cancelled_count) ==
		       offsetof(struct twi_worker, direct_scheduled_count) + sizeof(uint64_t),
	       "begins and ends are a pair");

/* A running callback, on the stack of its thread: which engine it belongs to, and its timeout. */
struct twi_run {
	struct twi_run *outer;
	struct twi_worker *worker;
	struct twi_thread *thread;
	struct twi_node *node;
	struct tw_handle handle;
	const struct tw_kind *kind;
	void *arg;
	int64_t late_by_ns; /* if there is a bound */
	int64_t begin_ns;   /* if it is timed, or measured */
	uint8_t marks;      /* TWI_RUN_… */
};

/* A run of a periodic timeout: the same, and its next step. */
struct twi_chain_run {
	struct twi_run run;
	struct twi_chain *chain;
	int64_t interval_ns; /* as tw_period_next set it, or the period; never negative */
	enum tw_end end;     /* if this run is the last one */
	bool place_offered;  /* its slot of the limit may be passed on */
};

/* The first member of an engine is its worker. */
static inline struct twi_worker *twi_node_worker(struct twi_node *node)
{
	return (struct twi_worker *)(void *)twi_node_engine(node);
}

/* loop.c: whether the engine is at work, and in this process. */
bool twi_worker_open(const struct twi_worker *worker);

/* loop.c: notifies the threads that wait in settle that something has changed. */
void twi_settle_notify(struct twi_worker *worker);

/* Whether the engine takes timeouts. */
static inline bool twi_life_accepts(uint32_t life)
{
	return life == TWI_LIFE_RUNNING || life == TWI_LIFE_STARTING;
}

/* loop.c: the worker's thread, from its first to its last turn. Ends by finish. */
void twi_worker_run(struct twi_worker *worker);
/* loop.c: makes the calling thread the worker. */
TWI_WORKER_BEGINS void twi_worker_enter(struct twi_worker *worker);
/*
 * loop.c: whether the calling thread is the worker, inside one of its turns. In a callback the
 * thread may be another engine's worker as well.
 */
bool twi_worker_inside(const struct twi_worker *worker);
/* loop.c: the calling thread is no longer the worker. */
void twi_worker_disown(struct twi_worker *worker);
/* loop.c: must be called when the worker's thread ends inside a callback. */
void twi_worker_died(struct twi_worker *worker);

/* The work that a turn, or a part of it, has left. */
enum twi_left {
	TWI_LEFT_NOTHING = 0,
	/* There was more than a batch: the next turn follows at once. */
	TWI_LEFT_MORE = 1,
	/*
	 * A push under way in the shared lane hides later pushes of other threads: look again soon.
	 */
	TWI_LEFT_CUT = 2,
	/* A thread's push is under way in its own lane: look again soon, for that thread. */
	TWI_LEFT_HIDDEN = 4,
	/* A poll's budget is used up: the rest of the due timeouts stays due. */
	TWI_LEFT_BUDGET = 8,
};

/*
 * Keeps the deadline of a cancelled timeout as a time to wake up (sleep.c). Otherwise, if the wheel
 * empties again and again, each next schedule would find the worker asleep without a deadline and
 * wake it.
 */
static inline TWI_WORKER_ONLY void twi_worker_give_up(struct twi_worker *worker,
						      struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	if (deadline_ns < worker->given_up_ns)
		worker->given_up_ns = deadline_ns;
}

/*
 * sleep.c: sleeps until the wheel or another thread needs the worker. `left`: of the turn before.
 */
TWI_WORKER_ONLY void twi_worker_sleep(struct twi_worker *worker, unsigned left);

/*
 * sleep.c: publishes that the worker sleeps, and which deadlines must wake it. Returns until when
 * it sleeps by that.
 */
TWI_WORKER_ONLY int64_t twi_sleep_say(struct twi_worker *worker);
/* sleep.c: after that, whether a push may be hidden, as enum twi_left. */
TWI_WORKER_ONLY unsigned twi_sleep_hidden(const struct twi_worker *worker);
/* sleep.c: whether there is a reason to stay awake, other than time and ingress. */
bool twi_sleep_refused(const struct twi_worker *worker, unsigned left);
/* sleep.c: the time to give to the kernel for a sleep until `until_ns` of the engine's clock. */
int64_t twi_sleep_kernel_ns(const struct twi_worker *worker, unsigned left, int64_t until_ns);
/* sleep.c: when tick `tick` is over; TW_NEVER for none. */
TWI_WORKER_ONLY int64_t twi_worker_boundary_ns(const struct twi_worker *worker, uint64_t tick);

/* turn.c: one turn. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_turn(struct twi_worker *worker);
/* turn.c: the same, at a time that the caller knows. */
TWI_WORKER_ONLY unsigned twi_worker_turn_at(struct twi_worker *worker, int64_t now_ns);

/* loop.c: marks all tickets up to `ticket` as served. */
void twi_settle_serve(struct twi_worker *worker, uint32_t ticket);

/* poll.c: a turn by the owner of a loop. Returns how many expired, or a negative errno value. */
TWI_WORKER_ONLY int64_t twi_worker_poll(struct twi_worker *worker, int64_t now_ns, uint64_t budget);
/* poll.c: when the next poll is needed, in the engine's time. */
TWI_WORKER_ONLY int64_t twi_poll_due_ns(struct twi_worker *worker);
/* poll.c: makes the descriptor and sets it. Returns 0 or -ENOMEM. */
TWI_WORKER_ONLY int twi_poll_fd_make(struct twi_worker *worker);
/* poll.c: moves the fresh timeouts into the wheel. Must come before any look at the wheel. */
TWI_WORKER_ONLY void twi_fresh_flush(struct twi_worker *worker);
/* poll.c: sets the timer nearer for a timeout that is due earlier than was published. */
TWI_WORKER_ONLY void twi_poll_nearer(struct twi_worker *worker, int64_t deadline_ns);

/* reclaim.c: takes cancelled nodes out of the wheel. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_reclaim(struct twi_worker *worker, uint64_t batch);

/*
 * reclaim.c: reclaims one node that came out of a cancel queue. True if its memory is free again.
 */
TWI_WORKER_ONLY bool twi_node_reclaim(struct twi_worker *worker, struct twi_node *node);

/* transfer.c: takes at most a batch from rings and ingress. Adds to *left what remains there. */
TWI_WORKER_ONLY uint64_t twi_ingress_take(struct twi_worker *worker, uint64_t batch,
					  unsigned *left);
/* transfer.c: the same, counted. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_transfer(struct twi_worker *worker, uint64_t batch);

/* lane.c: takes at most `most` from one lane. Adds to *left what remains there. */
typedef uint64_t twi_lane_step(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			       unsigned *left);
/* collect.c: moves the timeouts that the ring names into the wheel or out of it. */
TWI_WORKER_ONLY twi_lane_step twi_lane_collect;
/*
 * What hides in the queue when take has returned NULL, as enum twi_left. In an exclusive lane that
 * can only be pushes of the lane's own thread.
 */
static inline TWI_WORKER_ONLY unsigned twi_lane_left(const struct twi_worker *worker,
						     const struct twi_lane *lane,
						     const struct twi_mpsc_node *last,
						     const struct twi_mpsc_out *out)
{
	if (last == &out->stub && out->tail == &out->stub)
		return TWI_LEFT_NOTHING;
	return lane == &worker->lane[TWI_LANE_SHARED] ? TWI_LEFT_CUT : TWI_LEFT_HIDDEN;
}

/* lane.c: whether everything that was pushed has been taken. */
TWI_WORKER_ONLY bool twi_lanes_idle(const struct twi_worker *worker);

/* lane.c: takes a batch from all lanes, a share from each. Returns how many were taken. */
TWI_WORKER_ONLY uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step,
					uint64_t batch, unsigned *left);

/* expire.c: expires the timeouts that are due at or before tick `limit`. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_expire(struct twi_worker *worker, uint64_t limit);

/*
 * expire.c: puts back the timeouts that were taken out of the wheel and have not run. This must be
 * done because a cancelled one may be in a cancel queue too, and reclaim can recognise only nodes
 * in the wheel.
 */
TWI_WORKER_ONLY void twi_worker_due_put_back(struct twi_worker *worker);

/* expire.c: ends the timeouts that the dispatch hook did not accept or was not offered. */
TWI_WORKER_ONLY void twi_worker_refused_end(struct twi_worker *worker);

/*
 * finish.c: hands back all timeouts that are left, waits for executors, and stores STOPPED. False
 * if they have not ended by `until_ns` (CLOCK_MONOTONIC; INT64_MAX: waits). Then the caller still
 * is the worker.
 */
bool twi_worker_finish(struct twi_worker *worker, int64_t until_ns);

/* run.c: the 32 bits of a state word on which a futex can wait. */
_Atomic uint32_t *twi_word_futex(_Atomic uint64_t *word);
/* run.c: runs a callback, from its begin to the end of its timeout. */
void twi_run(struct twi_run *run);
/* run.c, a part of it: the callback, or the late hook. */
void twi_run_callback(struct twi_run *run);
/*
 * run.c: runs `body`, which is the callback or a hook instead of it. ThreadSanitizer is notified
 * that it comes after the calls that scheduled and rescheduled it, and before the next run.
 */
void twi_run_body(struct twi_run *run, void (*body)(struct twi_run *run));
/* run.c: marks the run so that its end is reported to ThreadSanitizer, too. */
void twi_run_mark_reported(struct twi_run *run);
/* run.c: the end of a run that has marks. Must be called before its thread leaves the run. */
void twi_run_marked_end(struct twi_run *run);
/* The last step of the state word. True if the caller must give the node back, and not reclaim. */
bool twi_run_close(struct twi_node *node);
/*
 * chain.c: like twi_run, for a run of a chain: from the step to RUNNING, which found `word`, to the
 * step to WHEELED or the chain's end. If the chain is over already, its callback does not run.
 */
void twi_chain_run(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		   uint64_t word);
/* chain.c: the same for a run that was refused, with the drop hook instead of the callback. */
void twi_chain_drop(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		    uint64_t word);
/* chain.c: offers the slot of the limit of a last run to the first schedule from inside. */
void twi_chain_place_offer(struct twi_chain_run *own);
/*
 * chain.c: the deadline of the next run from its scheduled time, with jitter and the slack of its
 * kind.
 */
int64_t twi_chain_deadline_ns(const struct twi_worker *worker, struct twi_chain *chain,
			      const struct tw_kind *kind, int64_t interval_ns);
/*
 * chain.c, in a forked child: decides when a chain goes on if its run stayed with the parent. Sets
 * that deadline in the node.
 */
void twi_chain_inherit(const struct twi_worker *worker, struct twi_node *node, uint64_t word);
/* slack.c: returns a deadline that is later by at most `slack_ns`. */
int64_t twi_slacken(const struct twi_worker *worker, int64_t deadline_ns, uint64_t slack_ns);
/* The result of a claim of a timeout that went to the dispatch hook. */
enum twi_due_claim {
	TWI_DUE_TAKEN,
	TWI_DUE_PENDING, /* never expired, put back, or a chain between two runs */
	TWI_DUE_RUNNING,
	TWI_DUE_ENDED,
};

/*
 * due.c: like twi_run, for a timeout that went to the dispatch hook, if this call claims it first.
 */
enum twi_due_claim twi_due_run(const struct tw_due *due);
/* due.c: gives a refused timeout to the drop hook. */
void twi_due_drop(const struct tw_due *due);
/*
 * due.c: makes a refused timeout pending again, and counts it out. False if a thread runs it
 * already, or it is over.
 */
TWI_WORKER_ONLY bool twi_due_again(const struct tw_due *due);
/* run.c: like twi_run, with the drop hook instead of the callback. */
void twi_run_drop(struct twi_run *run);
/* run.c: the innermost callback of this worker's engine in which the thread is, or NULL. */
struct twi_run *twi_run_of(const struct twi_thread *thread, const struct twi_worker *worker);

/* lane.c: makes the worker look at one more lane from now on. */
void twi_lane_join(struct twi_worker *worker, uint32_t number);
/* lane.c: makes sure that the worker looks at the thread's lane. */
void twi_lane_ready(struct twi_worker *worker, const struct twi_thread *thread);
/* lane.c: frees the rings. */
void twi_lanes_free(struct twi_worker *worker);
/* lane.c: like the two pushes below, if the lane's ring is full or does not exist yet. */
void twi_lane_push_far(struct twi_worker *worker, const struct twi_thread *thread,
		       struct twi_node *node, uint64_t birth);
void twi_lane_cancelled_far(struct twi_worker *worker, const struct twi_thread *thread,
			    struct twi_node *node);
/* lane.c: counts units that were pushed and that the worker has not seen. */
void twi_unseen_note(struct twi_worker *worker, uint32_t units);

/* pressure.c: decides how much the calling thread gives way. Must be inside a section. */
unsigned twi_way_judge(const struct twi_worker *worker, const struct twi_thread *thread);
/* pressure.c: gives way, and touches no engine. Must be outside a section. */
void twi_way_give(unsigned way);

/*
 * Whether a push to the lane goes without a fence. A bit is never taken back, and a worker that
 * sleeps after it was set makes the barrier.
 */
static inline bool twi_lane_unfenced(const struct twi_worker *worker,
				     const struct twi_thread *thread)
{
	/*
	 * E8: if the mark was set after the sleeper published and before its sleep, this load also
	 * makes the published values visible.
	 */
	return (twi_load_acquire(&worker->lanes_busy) >> thread->lane & 1) != 0;
}

/* Pushes a scheduled timeout. LIN of schedule: the push. */
static inline void twi_lane_push(struct twi_worker *worker, const struct twi_thread *thread,
				 struct twi_node *node, uint64_t birth)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	if (TWI_LIKELY(twi_ring_has_room(&lane->ring, &lane->ring_out))) {
		twi_node_offer(node, birth, TWI_WORD_INIT);
		twi_ring_push(&lane->ring, (uintptr_t)node, twi_lane_unfenced(worker, thread));
	} else {
		twi_lane_push_far(worker, thread, node, birth);
	}
}

/* Pushes a timeout that was cancelled in the wheel, or that the worker must file anew. */
static inline void twi_lane_push_cancelled(struct twi_worker *worker,
					   const struct twi_thread *thread, struct twi_node *node)
{
	struct twi_lane *lane = &worker->lane[thread->lane];

	if (TWI_LIKELY(twi_ring_has_room(&lane->ring, &lane->ring_out)))
		twi_ring_push(&lane->ring, (uintptr_t)node | TWI_ENTRY_CANCELLED,
			      twi_lane_unfenced(worker, thread));
	else
		twi_lane_cancelled_far(worker, thread, node);
}

/*
 * lane.c: pushes a node after our own step on state word and deadline has set queued. Returns the
 * deadline for which the worker must be woken.
 */
int64_t twi_lane_push_queued(struct twi_worker *worker, const struct twi_thread *thread,
			     struct twi_node *node);

/* limit.c: the limit of pending timeouts. False if it is reached. */
bool twi_limit_take(struct twi_worker *worker, struct twi_thread *thread);
void twi_limit_give(struct twi_worker *worker);
void twi_limit_give_many(struct twi_worker *worker, uint64_t count);

#endif
