/* SPDX-License-Identifier: MIT */
/*
 * The worker: the one thread that touches wheel and consumers' ends. A turn is
 *
 *     reclaim what the cancel queues have, take a batch out of rings and ingress queues, expire what
 *     is due
 *
 * (a ring brings what is to be reclaimed and what is to be transferred, as it was pushed) and is repeated
 * at once while there is more than a batch; then the worker parks until the next
 * tick.
 *
 * Life of an engine, in one word that is also what stop sleeps on:
 *
 *     NEW       -> STARTING           start: who makes the compare-and-swap makes the thread
 *     STALLED   -> STARTING           start again after a failure
 *     STARTING  -> RUNNING            the worker, when it begins
 *     STARTING  -> STALLED            start, when the thread cannot be made
 *     STARTING, RUNNING -> FAILED     the worker's thread ends inside a callback
 *     NEW, STARTING -> RUNNING        loop mode: a thread becomes the owner
 *     RUNNING   -> STARTING           loop mode: the owner leaves
 *     STOPPING  -> ORPHAN             loop mode: the owner leaves
 *     STARTING  -> ORPHAN             loop mode: stop; nobody is the owner
 *     NEW, STARTING, RUNNING, STALLED, FAILED -> NEW, STALLED
 *                                     a forked child takes over its copy (engine/adopt.c)
 *     NEW       -> STOPPED            stop: nothing was ever accepted
 *     STARTING  -> STOPPING_STARTING  stop; the thread is still being made
 *     STOPPING_STARTING -> STOPPING   the worker, when it begins
 *     STOPPING_STARTING -> ORPHAN     start, when the thread cannot be made
 *     RUNNING   -> STOPPING           stop; the worker sees it and finishes
 *     STALLED, FAILED -> ORPHAN       stop; no worker is there to finish
 *     STOPPING  -> ORPHAN             the worker's thread ends inside a hand-back; or the stop that has
 *                                     adopted the engine runs out of time
 *     ORPHAN    -> STOPPING           a stop takes over: makes a thread, or finishes itself
 *     STOPPING  -> STOPPED            who finishes; the last touch of the engine
 *
 * schedule is accepted in STARTING and RUNNING only, looked at inside a read-side section.
 *
 * Finish, without loss: stop has closed the state; the finisher raises `sweeping`, waits for a
 * grace period (E10), and from then on nothing is pushed any more: schedules see the closed state,
 * cancels see `sweeping` and leave the node to the sweep. It empties queues and rings into the wheel,
 * hands back what is there, waits for what executors still run, and for one more grace
 * period (cancels that have looked at a node of this engine), and says STOPPED.
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
	/* Expired timeouts that are out of the wheel at once: a few chunks. */
	TWI_DUE_BATCH = 4 * TWI_CHUNK_ENTRIES,
	/*
	 * The memory bound: a lane that has pushed so many more timeouts says so, and after so many
	 * such units that the worker has not seen it is woken, however far away its tick is. 2 MiB, and
	 * half of a ring.
	 */
	TWI_UNSEEN_UNIT = 64,
	TWI_UNSEEN_MAX = 512,
	/* After so many schedules a thread looks whether the worker keeps up; a multiple of the unit. */
	TWI_WAY_UNIT = 16 * TWI_UNSEEN_UNIT,
	/* The owner's latest timeouts that are not in the wheel yet (direct.h). */
	TWI_FRESH_MAX = 16,
};

/* Bits of a run's marks. */
enum {
	/* Of the limit: until it is passed on, or the run ends. */
	TWI_RUN_OWNS_SLOT = 1,
	/* Its end asks whether it was slow (watch.h). */
	TWI_RUN_TIMED = 2,
	/* Its end counts how long it took (measure.h). */
	TWI_RUN_MEASURED = 4,
	/* Its end reports to ThreadSanitizer (base/tsan.h). */
	TWI_RUN_REPORTED = 8,
};

struct twi_measure;
struct twi_watch;
struct twi_visit;

/* Whether who schedules gives way to the worker: not, by a yield, or by so many ms of sleep more. */
enum twi_way {
	TWI_WAY_FREE = 0,
	TWI_WAY_YIELD = 1,
};

/* Why a sleep ended. */
enum twi_wake {
	/* What the worker slept for has come. */
	TWI_WAKE_DEADLINE = 0,
	/* Somebody has scheduled, rescheduled or cancelled what could not wait. */
	TWI_WAKE_PRODUCER = 1,
	/* settle, stop, or a clock that was moved. */
	TWI_WAKE_CALL = 2,
	/* To look again at a push that was not linked; or the system woke it. */
	TWI_WAKE_OTHER = 3,
	TWI_WAKE_CAUSES = 4,
};

/* While the worker is awake: no deadline is earlier. */
#define TWI_WAKE_NOBODY INT64_MIN

struct twi_worker {
	/* Read by every call, written at changes of life. */
	TWI_CACHE_ALIGNED _Atomic uint32_t life; /* [atomic E12] enum twi_life, a futex */
	uint32_t fork_epoch;                     /* [const] */
	_Atomic bool sweeping;                   /* [atomic E10] */
	bool loop;                               /* [const] no thread: the caller polls */
	struct tw_clock *clock;                  /* [const] */
	/* The thread that may touch the wheel; each compares it with itself, and nothing else. */
	_Atomic(struct twi_thread *) owner; /* [atomic] */
	_Atomic uint64_t lanes_used;        /* [atomic] bit per lane that was ever pushed to */
	uint64_t pending_limit;             /* [const] 0: none */
	/* The worker sleeps, and a timeout with an earlier deadline needs it. */
	_Atomic int64_t wake_before_ns; /* [worker E8] */
	_Atomic uint64_t
		lanes_busy; /* [worker E8] bit per lane that is pushed to without a fence */

	/* Slots of the limit: written by all, only where there is a limit. */
	TWI_CACHE_ALIGNED _Atomic uint64_t slots_taken; /* [atomic] */

	/* Why the worker should wake up. */
	TWI_CACHE_ALIGNED struct twi_park park;
	_Atomic uint32_t settle_wanted;    /* [atomic E8] tickets given out */
	_Atomic uint32_t unseen;           /* [atomic E8] units pushed since the last turn */
	_Atomic uint32_t settle_done;      /* [atomic E13] tickets served */
	_Atomic uint32_t settle_epoch;     /* [atomic E13] what settlers wait for, a futex */
	_Atomic uint32_t in_flight;        /* [atomic] dispatched, not ended; a futex */
	_Atomic(struct twi_visit *) visit; /* [atomic E71] who wants the worker to look */
	_Atomic uint64_t early_told; /* [atomic] the greatest cancelled_early a reader was given */

	/* The worker's own. */
	TWI_CACHE_ALIGNED struct twi_wheel *wheel TWI_WORKER_FIELD; /* [worker] */
	struct twi_thread *self TWI_WORKER_FIELD; /* [worker] the thread that is the worker now */
	void *outer TWI_WORKER_FIELD; /* [worker] whose worker that thread is outside of this one */
	uint32_t first_lane TWI_WORKER_FIELD;   /* [worker] where the next batch begins */
	int64_t given_up_ns TWI_WORKER_FIELD;   /* [worker] the first deadline cancelled of late */
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
	struct twi_measure *measure;            /* [const] NULL: nobody wants to know */
	bool runs_judged;                       /* [const] there is a bound, or a measurement */
	int64_t run_from_ns TWI_WORKER_FIELD;   /* [worker] when its next run begins, about */
	int64_t due_before_ns TWI_WORKER_FIELD; /* [worker] the batch is of earlier deadlines */
	uint64_t due_limit TWI_WORKER_FIELD;    /* [worker] and of this tick, or of ticks before */
	size_t due_at TWI_WORKER_FIELD;         /* [worker] the next of the batch to expire */
	size_t due_count TWI_WORKER_FIELD;      /* [worker] */
	/* The owner's timeouts go straight into the wheel when due from here on (direct.h). */
	int64_t direct_from_ns TWI_WORKER_FIELD; /* [worker] */
	/* Due later than this, one goes among the fresh ones, and nothing else is to be done. */
	int64_t fresh_after_ns TWI_WORKER_FIELD; /* [worker] */
	uint64_t expire_stop TWI_WORKER_FIELD;   /* [worker] pause at this expired_count */
	int64_t timer_ns TWI_WORKER_FIELD; /* [worker] what the descriptor is set to, if known */
	int64_t armed_ns TWI_WORKER_FIELD; /* [worker] what the owner set it to: no later */
	uint32_t kicks_expected TWI_WORKER_FIELD; /* [worker] see poll.c */
	unsigned poll_left TWI_WORKER_FIELD;      /* [worker] by the last poll */
	bool said TWI_WORKER_FIELD;               /* [worker] loop mode: that it sleeps */
	bool barrier_failed TWI_WORKER_FIELD;     /* [worker] a push may be seen too late */
	uint32_t fresh_count TWI_WORKER_FIELD;    /* [worker] */
	struct twi_node *fresh[TWI_FRESH_MAX] TWI_WORKER_FIELD; /* [worker] */
	size_t dispatched_at TWI_WORKER_FIELD;    /* [worker] the next that was not accepted */
	size_t dispatched_count TWI_WORKER_FIELD; /* [worker] */
	/* Those that the hook is not asked for, from the end of `dispatched` downwards. */
	size_t inlined_at TWI_WORKER_FIELD;    /* [worker] the next of them to run */
	size_t inlined_count TWI_WORKER_FIELD; /* [worker] */
	tw_hand_back *hand_back;               /* [handoff E12] */
	void *hand_back_context;               /* [handoff E12] */
	/* Counters with one writer, read by anybody. */
	/* A pair, as in a lane: straight into the wheel, and straight out of it. */
	_Alignas(2 * sizeof(uint64_t)) _Atomic uint64_t direct_scheduled_count; /* [worker E90] */
	_Atomic uint64_t direct_cancelled_count;                                /* [worker E90] */
	_Atomic uint64_t expired_count;                                         /* [worker] */
	_Atomic uint64_t handed_back_count;                                     /* [worker] */
	_Atomic uint64_t transferred_count;                                     /* [worker] */
	_Atomic uint64_t reclaimed_count;  /* [worker] cancelled, and their memory free again */
	_Atomic uint64_t unlinked_count;   /* [worker] of these, those that came by ingress */
	_Atomic uint64_t transfer_count;   /* [worker] */
	_Atomic uint64_t largest_transfer; /* [worker] */
	_Atomic uint64_t turn_count;       /* [worker] */
	_Atomic uint64_t park_count;       /* [worker] */
	_Atomic uint64_t wake_count[TWI_WAKE_CAUSES]; /* [worker] */
	_Atomic uint64_t catch_up_tick_count;         /* [worker] */
	_Atomic uint64_t cascaded_count;              /* [worker] as the wheel has it */
	_Atomic uint64_t wheel_bytes;                 /* [worker] */
	_Atomic uint64_t wheel_block_count;           /* [worker] */
	_Atomic uint64_t check_failure_count;         /* [worker] */
	_Atomic int64_t latest_ns;                    /* [worker] */
	_Atomic uint64_t executor_refused_count;      /* [worker] */
	_Atomic uint64_t dropped_count;               /* [worker] */
	_Atomic uint64_t late_count;                  /* [atomic] by whoever runs them */
	_Atomic uint64_t periodic_run_count;          /* [worker] */
	_Atomic uint64_t chain_expired_count;         /* [atomic] by whoever ran the last run */
	struct twi_node *due[TWI_DUE_BATCH];          /* [worker] */
	struct tw_due dispatched[TWI_DUE_BATCH];      /* [worker] */

	struct twi_lane lane[TWI_LANES];
};

_Static_assert(offsetof(struct twi_worker, direct_cancelled_count) ==
		       offsetof(struct twi_worker, direct_scheduled_count) + sizeof(uint64_t),
	       "begins and ends are a pair");

/* A callback that runs, on its thread's stack: who am I in, and what is its. */
struct twi_run {
	struct twi_run *outer;
	struct twi_worker *worker;
	struct twi_thread *thread;
	struct twi_node *node;
	struct tw_handle handle;
	const struct tw_kind *kind;
	void *arg;
	int64_t late_by_ns; /* where there is a bound */
	int64_t begin_ns;   /* where it is timed, or measured */
	uint8_t marks;      /* TWI_RUN_… */
};

/* A run of a periodic timeout: the same, and what comes next. */
struct twi_chain_run {
	struct twi_run run;
	struct twi_chain *chain;
	int64_t interval_ns; /* as tw_period_next has it, or the period; no negative one */
	enum tw_end end;     /* where this is the last one */
	bool place_offered;  /* its place of the limit is to be passed on */
};

/* An engine begins with its worker. */
static inline struct twi_worker *twi_node_worker(struct twi_node *node)
{
	return (struct twi_worker *)(void *)twi_node_engine(node);
}

/* loop.c: the engine is at work, and this process is the one that it works in. */
bool twi_worker_open(const struct twi_worker *worker);

/* loop.c: something has changed for those who wait in settle. */
void twi_settle_notify(struct twi_worker *worker);

/* Whether the engine takes timeouts. */
static inline bool twi_life_accepts(uint32_t life)
{
	return life == TWI_LIFE_RUNNING || life == TWI_LIFE_STARTING;
}

/* loop.c: the worker's thread, from its first to its last turn. Ends by finish. */
void twi_worker_run(struct twi_worker *worker);
/* loop.c: the calling thread is the worker from now on. */
TWI_WORKER_BEGINS void twi_worker_enter(struct twi_worker *worker);
/*
 * loop.c: whether the calling thread is the worker, inside a turn of it; in a callback it may be another
 * engine's as well.
 */
bool twi_worker_inside(const struct twi_worker *worker);
/* loop.c: it is not, any more. */
void twi_worker_disown(struct twi_worker *worker);
/* loop.c: what to do when the worker's thread ends inside a callback. */
void twi_worker_died(struct twi_worker *worker);

/* What a turn, or a part of it, has left. */
enum twi_left {
	TWI_LEFT_NOTHING = 0,
	/* More than a batch: the next turn follows at once. */
	TWI_LEFT_MORE = 1,
	/* In the shared lane a push under way hides what others pushed behind it: look again soon. */
	TWI_LEFT_CUT = 2,
	/* In a lane of its own a thread's push is under way: look again soon, for that thread. */
	TWI_LEFT_HIDDEN = 4,
	/* A poll's budget is used up: what is due stays due. */
	TWI_LEFT_BUDGET = 8,
};

/*
 * A timeout was cancelled: its deadline still is a good time to wake up (sleep.c). Where the wheel
 * empties again and again, each next schedule would else find the worker asleep for ever.
 */
static inline TWI_WORKER_ONLY void twi_worker_give_up(struct twi_worker *worker,
						      struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	if (deadline_ns < worker->given_up_ns)
		worker->given_up_ns = deadline_ns;
}

/* sleep.c: until the wheel, or anybody, needs the worker. `left`: by the turn before. */
TWI_WORKER_ONLY void twi_worker_sleep(struct twi_worker *worker, unsigned left);

/* sleep.c: says that the worker sleeps, and what it needs to be woken for. Until when, by that. */
TWI_WORKER_ONLY int64_t twi_sleep_say(struct twi_worker *worker);
/* sleep.c: after that, whether a push may hide, as enum twi_left. */
TWI_WORKER_ONLY unsigned twi_sleep_hidden(const struct twi_worker *worker);
/* sleep.c: whether there is a reason to stay awake, time and ingress excepted. */
bool twi_sleep_refused(const struct twi_worker *worker, unsigned left);
/* sleep.c: what to give to the kernel to sleep until `until_ns` of the engine's clock. */
int64_t twi_sleep_kernel_ns(const struct twi_worker *worker, unsigned left, int64_t until_ns);
/* sleep.c: when tick `tick` is over; TW_NEVER for none. */
TWI_WORKER_ONLY int64_t twi_worker_boundary_ns(const struct twi_worker *worker, uint64_t tick);

/* turn.c: one turn. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_turn(struct twi_worker *worker);
/* turn.c: the same, at a time that the caller knows. */
TWI_WORKER_ONLY unsigned twi_worker_turn_at(struct twi_worker *worker, int64_t now_ns);

/* loop.c: all tickets up to `ticket` are served. */
void twi_settle_serve(struct twi_worker *worker, uint32_t ticket);

/* poll.c: a turn by the owner of a loop. How many expired, or a negative errno value. */
TWI_WORKER_ONLY int64_t twi_worker_poll(struct twi_worker *worker, int64_t now_ns, uint64_t budget);
/* poll.c: when the next poll is needed, in the engine's time. */
TWI_WORKER_ONLY int64_t twi_poll_due_ns(struct twi_worker *worker);
/* poll.c: makes the descriptor, and sets it. 0, or -ENOMEM. */
TWI_WORKER_ONLY int twi_poll_fd_make(struct twi_worker *worker);
/* poll.c: what is fresh goes into the wheel. Before anybody looks at that. */
TWI_WORKER_ONLY void twi_fresh_flush(struct twi_worker *worker);
/* poll.c: a timeout is there that is due earlier than was said. */
TWI_WORKER_ONLY void twi_poll_nearer(struct twi_worker *worker, int64_t deadline_ns);

/* reclaim.c: takes cancelled nodes out of the wheel. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_reclaim(struct twi_worker *worker, uint64_t batch);

/* reclaim.c: one node that came out of a cancel queue. True: its memory is free again. */
TWI_WORKER_ONLY bool twi_node_reclaim(struct twi_worker *worker, struct twi_node *node);

/* transfer.c: rings and ingress, a batch at most. Adds to *left what they have to say. */
TWI_WORKER_ONLY uint64_t twi_ingress_take(struct twi_worker *worker, uint64_t batch,
					  unsigned *left);
/* transfer.c: the same, counted. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_transfer(struct twi_worker *worker, uint64_t batch);

/* lane.c: takes at most `most` from one lane. Adds to *left what it has to say. */
typedef uint64_t twi_lane_step(struct twi_worker *worker, struct twi_lane *lane, uint64_t most,
			       unsigned *left);
/* collect.c: what is in the ring, into the wheel and out of it. */
TWI_WORKER_ONLY twi_lane_step twi_lane_collect;
/*
 * When take gave NULL: what hides there, as enum twi_left. In an exclusive lane only what its own
 * thread pushes.
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

/* lane.c: nothing was pushed that has not been taken. */
TWI_WORKER_ONLY bool twi_lanes_idle(const struct twi_worker *worker);

/* lane.c: a batch from all lanes; each gets its share. Returns how many were taken. */
TWI_WORKER_ONLY uint64_t twi_lanes_take(struct twi_worker *worker, twi_lane_step *step,
					uint64_t batch, unsigned *left);

/* expire.c: what is due at or before tick `limit`. Bits of enum twi_left. */
TWI_WORKER_ONLY unsigned twi_worker_expire(struct twi_worker *worker, uint64_t limit);

/*
 * expire.c: what was taken out of the wheel and has not run goes back. Cancelled ones among it may
 * be in a cancel queue too, and reclaim can tell only what is in the wheel.
 */
TWI_WORKER_ONLY void twi_worker_due_put_back(struct twi_worker *worker);

/* expire.c: what the dispatch hook was offered and did not accept, and what it was not asked for. */
TWI_WORKER_ONLY void twi_worker_refused_end(struct twi_worker *worker);

/*
 * finish.c: hands back all that is left, waits for executors, and says STOPPED. False: they have not ended by
 * then (CLOCK_MONOTONIC; INT64_MAX: waits), and the caller still is the worker.
 */
bool twi_worker_finish(struct twi_worker *worker, int64_t until_ns);

/* run.c: the 32 bits of a state word that a futex can wait for. */
_Atomic uint32_t *twi_word_futex(_Atomic uint64_t *word);
/* run.c: a callback, from its begin to the end of its timeout. */
void twi_run(struct twi_run *run);
/* run.c, the parts of it: the callback, or the late hook. */
void twi_run_callback(struct twi_run *run);
/*
 * run.c: `body`, which is the callback or a hook in its place. ThreadSanitizer is told that it comes after what
 * those who scheduled and rescheduled did, and before the next run.
 */
void twi_run_body(struct twi_run *run, void (*body)(struct twi_run *run));
/* run.c: the end of the run has to be reported to ThreadSanitizer, too. */
void twi_run_mark_reported(struct twi_run *run);
/* run.c: the end of a run that has marks, before its thread is out of it. */
void twi_run_marked_end(struct twi_run *run);
/* The last step of its word. True: the node is ours to give back, and not reclaim's. */
bool twi_run_close(struct twi_node *node);
/*
 * chain.c: the same as twi_run for a run of a chain, from the step to RUNNING, which found `word`, to
 * the step to WHEELED or the chain's end. Where it is over already, there is no callback.
 */
void twi_chain_run(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		   uint64_t word);
/* chain.c: the same for a run that was refused, with the drop hook in place of the callback. */
void twi_chain_drop(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		    uint64_t word);
/* chain.c: this run is the last: its place of the limit is for the first schedule from inside. */
void twi_chain_place_offer(struct twi_chain_run *own);
/* chain.c: the deadline of a run that is scheduled for then: its jitter, and the slack of its kind. */
int64_t twi_chain_deadline_ns(const struct twi_worker *worker, struct twi_chain *chain,
			      const struct tw_kind *kind, int64_t interval_ns);
/*
 * chain.c, in a forked child: when a chain goes on whose run stayed with the parent. The node has that
 * deadline from here on.
 */
void twi_chain_inherit(const struct twi_worker *worker, struct twi_node *node, uint64_t word);
/* slack.c: a deadline up to so much later. */
int64_t twi_slacken(const struct twi_worker *worker, int64_t deadline_ns, uint64_t slack_ns);
/* What a claim of one that went to the dispatch hook found. */
enum twi_due_claim {
	TWI_DUE_TAKEN,
	TWI_DUE_PENDING, /* never expired, put back, or a chain between two runs */
	TWI_DUE_RUNNING,
	TWI_DUE_ENDED,
};

/* due.c: the same for one that went to the dispatch hook, if this call is the first to claim it. */
enum twi_due_claim twi_due_run(const struct tw_due *due);
/* due.c: one that was refused: to the drop hook. */
void twi_due_drop(const struct tw_due *due);
/* due.c: one that was refused: pending again, and counted out. False: somebody runs it, or it is over. */
TWI_WORKER_ONLY bool twi_due_again(const struct tw_due *due);
/* run.c: as twi_run, with the drop hook in place of the callback. */
void twi_run_drop(struct twi_run *run);
/* run.c: the innermost callback of this worker's engine that the thread is in, or NULL. */
struct twi_run *twi_run_of(const struct twi_thread *thread, const struct twi_worker *worker);

/* lane.c: the worker looks at one more lane from now on. */
void twi_lane_join(struct twi_worker *worker, uint32_t number);
/* lane.c: the worker looks at the thread's lane. */
void twi_lane_ready(struct twi_worker *worker, const struct twi_thread *thread);
/* lane.c: frees the rings. */
void twi_lanes_free(struct twi_worker *worker);
/* lane.c: as the two pushes below, for a lane whose ring has no room, or that has none yet. */
void twi_lane_push_far(struct twi_worker *worker, const struct twi_thread *thread,
		       struct twi_node *node, uint64_t birth);
void twi_lane_cancelled_far(struct twi_worker *worker, const struct twi_thread *thread,
			    struct twi_node *node);
/* lane.c: so many more units were pushed that the worker has not seen. */
void twi_unseen_note(struct twi_worker *worker, uint32_t units);

/* pressure.c: how much the calling thread is to give way. Inside a section. */
unsigned twi_way_judge(const struct twi_worker *worker, const struct twi_thread *thread);
/* pressure.c: does it; touches no engine. Outside. */
void twi_way_give(unsigned way);

/*
 * Whether a push to the lane goes without a fence. A bit is never taken back, and who sleeps after it was
 * set makes the barrier.
 */
static inline bool twi_lane_unfenced(const struct twi_worker *worker,
				     const struct twi_thread *thread)
{
	/* E8: set between what a sleeper has said and its sleep, it shows what was said. */
	return (twi_load_acquire(&worker->lanes_busy) >> thread->lane & 1) != 0;
}

/* The way of what is scheduled. LIN of schedule: the push. */
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

/* The way of what was cancelled in the wheel, or is to be filed anew. */
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
 * lane.c: the node's word says queued since a step of ours on word and deadline. Pushes it, and returns
 * the deadline that the worker is to be woken for.
 */
int64_t twi_lane_push_queued(struct twi_worker *worker, const struct twi_thread *thread,
			     struct twi_node *node);

/* limit.c: the limit of pending timeouts. False: full. */
bool twi_limit_take(struct twi_worker *worker, struct twi_thread *thread);
void twi_limit_give(struct twi_worker *worker);
void twi_limit_give_many(struct twi_worker *worker, uint64_t count);

#endif
