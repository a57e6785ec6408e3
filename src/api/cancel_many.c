/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel_many.
 *
 * In this file a sweep is the work of one RCU section. (Only the flag `sweeping` means the sweep of
 * a stop.) It cancels timeouts that wait in a ring or in an engine's wheel. As in cancel.c, each
 * timeout has a swap of its own, which is the linearization point of its cancel. A sweep works in
 * blocks. A block is a row of consecutive handles whose timeouts belong to one engine and wait in
 * the same place. A locked instruction waits until all stores before it are in the cache. So a
 * block makes all its swaps first, with as few stores as possible between them.
 *
 * All other work follows once for the whole block. The sweep counts the cancels. If the nodes were
 * in a ring, the sweep returns them to the stock together, because since the swaps they belong to
 * the canceller. If they are in the wheel, the sweep adds them to one batch of pushes
 * (ingress/batch.h), so that the worker sees them all at once. Only reclaim frees a node in the
 * wheel, and reclaim finds the node only through the push. So no other thread touches a swapped
 * node before the push.
 *
 * A block ends after a timeout with a finaliser. The finaliser may block or call the library, so it
 * must run outside of the RCU section. A block also ends before a timeout of another engine or in
 * another place. Outside of the section, tw_cancel handles all other timeouts: those that are
 * periodic, queued by a reschedule, in a link queue, running, ended, or owner-only.
 *
 * Progress. Wait-free, because a swap that fails is not repeated here. Timeouts that are left to
 * tw_cancel have the progress of tw_cancel, which is lock-free. If the system suspends the thread
 * in the middle, two groups of nodes stay in memory until the thread continues: those of one block
 * in a ring, and those that the sweep has cancelled in the wheel but not pushed yet.
 */
#include "base/atomic.h"
#include "base/probe.h"
#include "engine/engine.h"
#include "expiry/limit.h"
#include "ingress/batch.h"
#include "ingress/pressure.h"
#include "ingress/push.h"
#include "thread/rcu.h"
#include "worker/role.h"

#include <errno.h>
#include <tickwheel/batch.h>

enum {
	/*
	 * How many of the following handles have their nodes prefetched. The cache lines of these
	 * nodes may be in the worker's core or in memory.
	 */
	AHEAD = 16,
	/*
	 * The largest number of swaps in a row. A block is small enough that its nodes stay in the
	 * nearest cache until the rest of the work is done.
	 */
	BLOCK = 32,
};

/* The state of one RCU section. */
struct sweep {
	struct twi_thread *thread;
	struct twi_worker *worker; /* the worker of the present block's engine; NULL at first */
	struct twi_lane *lane;
	const struct tw_kind *plain; /* a kind that is known to have no finaliser, or NULL */
	uint32_t units;              /* units (64 cancels in the wheel each) begun so far */
	bool sweeping;               /* stop frees cancelled nodes itself, so none is pushed */
	bool batch_begun;            /* `batch` is in use: a timeout was in the wheel */
	bool other;                  /* the next handle must be cancelled by tw_cancel */
	void *node[BLOCK];           /* swapped, but not counted, pushed or freed yet */
	struct twi_batch batch;
	/*
	 * The finaliser of the latest cancelled timeout, or NULL, and the argument of that timeout.
	 */
	tw_finaliser *finaliser;
	void *arg;
};

/* The fields of a timeout that are needed after its swap, when the node may no longer be read. */
struct victim {
	const struct tw_kind *kind;
	void *arg;
};

/* The state of one call. */
struct batch {
	const struct tw_handle *handle;
	int *ret_outcome; /* the caller's array, or NULL */
	size_t count;
	size_t at; /* index of the next handle */
	size_t cancelled;
};

static inline void sweep_begin(struct sweep *sweep)
{
	sweep->thread = twi_thread();
	sweep->worker = NULL;
	sweep->plain = NULL;
	sweep->other = false;
	sweep->finaliser = NULL;
	/*
	 * E10: the RCU section lasts from the first look at a pending timeout to the last access to
	 * its engine. Stop waits for its end before the engine may be freed.
	 */
	twi_rcu_enter();
}

static void sweep_report(struct sweep *sweep)
{
	if (sweep->batch_begun)
		twi_batch_end(&sweep->batch);
	/*
	 * Cancelled timeouts count towards units, as scheduled ones do, because the worker must
	 * take them out of the wheel.
	 */
	if (TWI_UNLIKELY(sweep->units != 0))
		twi_cancelled_units_add(sweep->worker, sweep->lane, sweep->units);
}

/* Switches the sweep to another engine. */
static void sweep_engine(struct sweep *sweep, struct twi_worker *worker)
{
	if (sweep->worker != NULL)
		sweep_report(sweep);
	sweep->worker = worker;
	sweep->lane = twi_lane_of(worker, sweep->thread);
	sweep->units = 0;
	/*
	 * RELAXED: as in pending_cancel (cancel.c). One load is enough for the whole RCU section,
	 * because the thread that completes stop waits for the section.
	 */
	sweep->sweeping = twi_load_relaxed(&worker->sweeping);
	sweep->batch_begun = false;
}

static inline void sweep_end(struct sweep *sweep)
{
	if (TWI_LIKELY(sweep->worker != NULL))
		sweep_report(sweep);
	twi_rcu_leave();
}

/*
 * Frees nodes whose timeouts were cancelled in a ring. The swaps have made this thread their owner.
 */
static inline void ring_cancelled(struct sweep *sweep, size_t count)
{
	twi_lane_end_count(sweep->lane, count);
	twi_pool_give_many_warm(&sweep->thread->stock, sweep->node, count);
}

/*
 * Returns how many units begin within the last `count` cancels. `last` is the number of the last
 * cancel in its lane.
 */
static inline uint32_t units_begun(uint64_t last, uint64_t count)
{
	return (uint32_t)((last + TWI_UNIT_TIMEOUTS - 1) / TWI_UNIT_TIMEOUTS -
			  (last - count + TWI_UNIT_TIMEOUTS - 1) / TWI_UNIT_TIMEOUTS);
}

/* Passes to the worker the nodes of a block whose timeouts were cancelled in the wheel. */
static inline void wheel_cancelled(struct sweep *sweep, size_t count)
{
	uint64_t last = twi_lane_end_count_as(sweep->lane, &sweep->lane->cancelled_count, count);

	sweep->units += units_begun(last, count);
	TWI_TEST_POINT("cancel:won");
	if (TWI_UNLIKELY(sweep->sweeping))
		return;
	if (TWI_UNLIKELY(!sweep->batch_begun)) {
		twi_batch_begin(&sweep->batch, sweep->worker, sweep->thread, TWI_BATCH_MAX);
		sweep->batch_begun = true;
	}
	for (size_t i = 0; i < count; i++)
		twi_batch_add_cancelled(&sweep->batch, sweep->node[i]);
}

/*
 * Does the work that follows the swaps of a block: counts the cancels, frees the nodes or pushes
 * them to the worker, and writes the outcomes.
 */
static inline void block_cancelled(struct batch *batch, struct sweep *sweep, uint64_t state,
				   size_t count)
{
	TWI_TEST_POINT("cancel:swapped");
	if (state == TWI_WORD_INIT)
		ring_cancelled(sweep, count);
	else
		wheel_cancelled(sweep, count);
	/*
	 * Must come after the cancels are counted. Otherwise another thread could use the returned
	 * slots first, and the counters would show more pending timeouts than the limit.
	 */
	if (TWI_UNLIKELY(sweep->worker->pending_limit != 0))
		twi_limit_give_many(sweep->worker, count);
	for (size_t i = 0; batch->ret_outcome != NULL && i < count; i++)
		batch->ret_outcome[batch->at + i] = TW_CANCEL_DONE;
	batch->cancelled += count;
	batch->at += count;
}

/*
 * Returns whether the state word has this generation and state, and no other bit except
 * RESCHEDULED.
 */
static inline bool word_simple(uint64_t word, uint64_t generation, uint64_t state)
{
	return ((word ^ generation) & ~TWI_WORD_RESCHEDULED) == state;
}

/*
 * Cancels the timeout if it belongs to the engine `of` and waits in `state`. Returns true if it was
 * cancelled.
 */
static inline bool handle_swap(struct tw_handle handle, const struct twi_worker *of, uint64_t state,
			       struct victim *ret_victim)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	uint64_t word;

	if (TWI_UNLIKELY(!twi_handle_sane(handle)))
		return false;
	/*
	 * E4: these fields belong to our timeout only if the swap succeeds, as in victim_cancel
	 * (cancel.c).
	 */
	worker = twi_node_worker(node);
	ret_victim->kind = twi_node_kind(node);
	ret_victim->arg = twi_node_arg(node);
	TWI_TEST_POINT("cancel:read");
	word = twi_load_acquire(&node->word); /* E4: as in victim_cancel (cancel.c). */
	TWI_TEST_POINT("cancel:seen");
	if (TWI_UNLIKELY(!word_simple(word, handle.generation, state) || worker != of))
		return false;
	TWI_TEST_POINT("cancel:wheeled");
	/*
	 * E4: releases our writes to a thread that sees CANCELLED. If the swap fails, the block of
	 * handles ends here. Linearization point of cancel.
	 */
	return twi_cas_acq_rel(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED));
}

/*
 * Makes the swaps of a block, for at most the next `most` handles. Stops at a timeout of another
 * engine or in another state, and after a timeout with a finaliser. A locked instruction waits for
 * all stores before it, so there are as few stores as possible between the swaps. Returns the
 * number of swaps.
 */
static inline size_t block_swap(const struct batch *batch, struct sweep *sweep, uint64_t state,
				size_t most)
{
	const struct tw_handle *handle = &batch->handle[batch->at];
	const struct twi_worker *worker = sweep->worker;
	const struct tw_kind *plain = sweep->plain;
	size_t behind = batch->count - batch->at;
	struct victim victim;
	size_t done = 0;

	while (done < most) {
		if (done + AHEAD < behind)
			TWI_PREFETCH_WRITE(handle[done + AHEAD].node);
		if (!handle_swap(handle[done], worker, state, &victim))
			break;
		TWI_PROBE4(cancel, worker, handle[done].node, handle[done].generation,
			   state == TWI_WORD_INIT ? TWI_PROBE_ON_ITS_WAY : TWI_PROBE_IN_WHEEL);
		sweep->node[done] = handle[done].node;
		done++;
		if (TWI_LIKELY(victim.kind == plain))
			continue;
		plain = victim.kind;
		sweep->finaliser = plain->finaliser;
		sweep->arg = victim.arg;
		if (sweep->finaliser != NULL)
			break;
	}
	sweep->plain = plain;
	return done;
}

/*
 * Cancels the timeouts of the next handles, as long as they wait in `state`. Stops at the latest
 * after BLOCK handles, or before the handle with the index `end`.
 */
static inline void block_cancel(struct batch *batch, struct sweep *sweep, uint64_t state,
				size_t end)
{
	size_t most = end - batch->at < BLOCK ? end - batch->at : BLOCK;
	size_t done = block_swap(batch, sweep, state, most);

	sweep->other = done == 0;
	if (TWI_LIKELY(done > 0))
		block_cancelled(batch, sweep, state, done);
}

/*
 * Looks at the next handle's timeout. Cancels it, and the following timeouts of the same engine and
 * state.
 */
static inline void sweep_cancel(struct batch *batch, struct sweep *sweep, size_t end)
{
	struct tw_handle handle = batch->handle[batch->at];
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	uint64_t word;

	sweep->other = true;
	if (!twi_handle_sane(handle))
		return;
	/*
	 * E10: if the timeout is alive in this RCU section, its engine exists until the section
	 * ends.
	 */
	worker = twi_node_worker(node);
	/* RELAXED: only decides where a block begins. The swaps check the state again. */
	word = twi_load_relaxed(&node->word);
	if (TWI_UNLIKELY(!word_simple(word, handle.generation, TWI_WORD_INIT) &&
			 !word_simple(word, handle.generation, TWI_WORD_WHEELED)))
		return;
	if (TWI_UNLIKELY(worker != sweep->worker))
		sweep_engine(sweep, worker);
	if (twi_word_state(word) == TWI_WORD_INIT)
		block_cancel(batch, sweep, TWI_WORD_INIT, end);
	else
		block_cancel(batch, sweep, TWI_WORD_WHEELED, end);
}

/*
 * Cancels inside one RCU section. Stops at the index `end`, at a handle that needs tw_cancel, or
 * when a finaliser must run.
 */
static void batch_sweep(struct batch *batch, struct sweep *sweep, size_t end)
{
	sweep_begin(sweep);
	while (batch->at < end && !sweep->other && sweep->finaliser == NULL)
		sweep_cancel(batch, sweep, end);
	sweep_end(sweep);
}

static inline void handle_done(struct batch *batch, int outcome)
{
	if (batch->ret_outcome != NULL)
		batch->ret_outcome[batch->at] = outcome;
	batch->cancelled += outcome == TW_CANCEL_DONE || outcome == TW_CANCEL_STOPPED;
	batch->at++;
}

/*
 * Runs one RCU section. Then calls the finaliser or tw_cancel, which must not run inside the
 * section.
 */
static void span_cancel(struct batch *batch)
{
	size_t left = batch->count - batch->at;
	size_t end = batch->at + (left < TWI_BATCH_MAX ? left : TWI_BATCH_MAX);
	struct sweep sweep;

	batch_sweep(batch, &sweep, end);
	if (sweep.finaliser != NULL)
		sweep.finaliser(sweep.arg, TW_END_CANCELLED);
	else if (batch->at < end)
		handle_done(batch, tw_cancel(batch->handle[batch->at]));
}

static void batch_cancel(struct batch *batch)
{
	for (size_t ahead = 0; ahead < AHEAD && ahead < batch->count; ahead++)
		TWI_PREFETCH_WRITE(batch->handle[ahead].node);
	while (batch->at < batch->count) {
		/*
		 * A thread whose wheel_of is set has a shorter path, without an RCU section. In a
		 * forked child, any handle may be the parent's, so tw_cancel must check each one.
		 */
		if (twi_thread_self.wheel_of != NULL || twi_fork_epoch != 0)
			handle_done(batch, tw_cancel(batch->handle[batch->at]));
		else
			span_cancel(batch);
	}
}

int tw_cancel_many(const struct tw_handle *handles, size_t count, int *ret_outcomes)
{
	struct batch batch = {.handle = handles, .ret_outcome = ret_outcomes, .count = count};

	if (handles == NULL || count == 0)
		return -EINVAL;
	if (count > TW_BATCH_MAX)
		return -ERANGE;
	if (twi_forked())
		return -ECHILD;
	batch_cancel(&batch);
	return (int)batch.cancelled;
}
