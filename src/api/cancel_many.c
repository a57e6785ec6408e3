/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel_many.
 *
 * A sweep is the work of one section. It cancels waiting timeouts, in a ring or in the wheel of one
 * engine, each by its own swap (LIN), as in cancel.c. It goes by blocks: consecutive handles of
 * timeouts that wait in the same place. A locked instruction waits until all stores before it are
 * in the cache. So the swaps of a block come first, with next to nothing between them.
 *
 * All other work follows for the whole block. The cancels are counted. Nodes out of a ring go back
 * to the stock together. Nodes in the wheel are added to one batch of pushes (ingress/batch.h), so
 * that the worker sees them all at once. Until its push, or its return to the stock, no other
 * thread does anything with such a node. If it is in the wheel, reclaim frees it, and comes to it
 * only by the push. If it was in a ring, it is ours.
 *
 * A block ends after a timeout with a finaliser, because the finaliser runs outside of any section
 * and may do as it likes. It also ends before a timeout of another engine or in another place.
 * tw_cancel does the timeouts that are not simple, also outside of sections. They are periodic,
 * queued by a reschedule, in a link queue, running, ended, or only their owner's.
 *
 * Progress. Wait-free except for the timeouts that go by tw_cancel, because a swap that fails is
 * not tried again here. If a thread is stopped in the middle, it holds back the memory of at most a
 * block. The timeouts that its sweep has cancelled in the wheel wait for its push.
 */
#include "base/atomic.h"
#include "base/probe.h"
#include "engine/engine.h"
#include "expiry/limit.h"
#include "ingress/batch.h"
#include "ingress/push.h"
#include "thread/rcu.h"
#include "worker/role.h"

#include <errno.h>
#include <tickwheel/batch.h>

enum {
	/*
	 * How many handles ahead a node's cache line is fetched, from the worker's core or from
	 * memory.
	 */
	AHEAD = 16,
	/*
	 * How many swaps come in a row. Their nodes stay in the nearest cache until all other work
	 * is done.
	 */
	BLOCK = 32,
};

/* The state of one section. */
struct sweep {
	struct twi_thread *thread;
	struct twi_worker *worker; /* NULL: nothing is cancelled yet */
	struct twi_lane *lane;
	const struct tw_kind *plain; /* a kind without a finaliser, or NULL */
	uint32_t units;              /* full units of cancels in the wheel */
	bool sweeping;               /* stop frees the cancelled nodes it finds */
	bool batch_begun;            /* a timeout was in the wheel */
	bool other;                  /* the next handle is not simple */
	void *node[BLOCK];           /* swapped, but not counted, pushed or freed yet */
	struct twi_batch batch;
	/* The finaliser of the timeout that was cancelled last, or NULL, and its argument. */
	tw_finaliser *finaliser;
	void *arg;
};

/* The fields of a timeout that are needed after its swap. */
struct victim {
	const struct tw_kind *kind;
	void *arg;
};

/* The state of one call. */
struct batch {
	const struct tw_handle *handle;
	int *ret_outcome; /* or NULL */
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
	 * E10: the section lasts from the look at a live timeout to the last touch of its engine.
	 */
	twi_rcu_enter();
}

static void sweep_report(struct sweep *sweep)
{
	if (sweep->batch_begun)
		twi_batch_end(&sweep->batch);
	/* A timeout that is cancelled in the wheel waits for the worker, like a scheduled one. */
	if (TWI_UNLIKELY(sweep->units != 0))
		twi_units_add(sweep->worker, sweep->units);
}

/* Switches the sweep to another engine. */
static void sweep_engine(struct sweep *sweep, struct twi_worker *worker)
{
	if (sweep->worker != NULL)
		sweep_report(sweep);
	sweep->worker = worker;
	sweep->lane = &worker->lane[sweep->thread->lane];
	sweep->units = 0;
	/* RELAXED: as in pending_cancel (cancel.c). One look is enough for the section. */
	sweep->sweeping = twi_load_relaxed(&worker->sweeping);
	sweep->batch_begun = false;
}

static inline void sweep_end(struct sweep *sweep)
{
	if (TWI_LIKELY(sweep->worker != NULL))
		sweep_report(sweep);
	twi_rcu_leave();
}

/* For nodes out of rings, which are ours since the swaps. */
static inline void ring_cancelled(struct sweep *sweep, size_t count)
{
	twi_lane_end_count(sweep->thread, sweep->lane, count);
	twi_pool_give_many_warm(&sweep->thread->stock, sweep->node, count);
}

/* Returns how many of the last `count` numbers up to `last` begin a unit. */
static inline uint32_t units_begun(uint64_t last, uint64_t count)
{
	return (uint32_t)((last + TWI_UNIT_TIMEOUTS - 1) / TWI_UNIT_TIMEOUTS -
			  (last - count + TWI_UNIT_TIMEOUTS - 1) / TWI_UNIT_TIMEOUTS);
}

/* For nodes in the wheel. */
static inline void wheel_cancelled(struct sweep *sweep, size_t count)
{
	uint64_t last = twi_lane_end_count_as(sweep->thread, sweep->lane,
					      &sweep->lane->cancelled_count, count);

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

/* Does the rest of the work for a block, after its swaps. */
static inline void block_cancelled(struct batch *batch, struct sweep *sweep, uint64_t state,
				   size_t count)
{
	TWI_TEST_POINT("cancel:swapped");
	if (state == TWI_WORD_INIT)
		ring_cancelled(sweep, count);
	else
		wheel_cancelled(sweep, count);
	/* Must come after the count. Otherwise the counters could show more than the limit. */
	if (TWI_UNLIKELY(sweep->worker->pending_limit != 0))
		twi_limit_give_many(sweep->worker, count);
	for (size_t i = 0; batch->ret_outcome != NULL && i < count; i++)
		batch->ret_outcome[batch->at + i] = TW_CANCEL_DONE;
	batch->cancelled += count;
	batch->at += count;
}

/* Whether the timeout waits in that state, and has no other mark than rescheduled. */
static inline bool word_simple(uint64_t word, uint64_t generation, uint64_t state)
{
	return ((word ^ generation) & ~TWI_WORD_RESCHEDULED) == state;
}

/* Cancels the timeout if it is of that engine, and in that state. True if cancelled. */
static inline bool handle_swap(struct tw_handle handle, const struct twi_worker *of, uint64_t state,
			       struct victim *ret_victim)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	uint64_t word;

	if (TWI_UNLIKELY(!twi_handle_sane(handle)))
		return false;
	/* E4: our timeout's if the swap succeeds, as in victim_cancel (cancel.c). */
	worker = twi_node_worker(node);
	ret_victim->kind = twi_node_kind(node);
	ret_victim->arg = twi_node_arg(node);
	TWI_TEST_POINT("cancel:read");
	word = twi_load_acquire(&node->word); /* E4: as in victim_cancel. */
	TWI_TEST_POINT("cancel:seen");
	if (TWI_UNLIKELY(!word_simple(word, handle.generation, state) || worker != of))
		return false;
	TWI_TEST_POINT("cancel:wheeled");
	/*
	 * E4: releases our writes to a thread that sees CANCELLED. If the swap fails, the
	 * block of handles ends here. LIN of cancel.
	 */
	return twi_cas_acq_rel(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED));
}

/*
 * Makes the swaps of a block: of at most the next `most` handles, as long as their timeouts are of
 * the sweep's engine and in that state. A locked instruction waits for all stores before it, so
 * there are next to none between the swaps. Ends after a timeout with a finaliser. Returns the
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

/* Cancels the next handles in that state, at most to the end of a block or of the span. */
static inline void block_cancel(struct batch *batch, struct sweep *sweep, uint64_t state,
				size_t end)
{
	size_t most = end - batch->at < BLOCK ? end - batch->at : BLOCK;
	size_t done = block_swap(batch, sweep, state, most);

	sweep->other = done == 0;
	if (TWI_LIKELY(done > 0))
		block_cancelled(batch, sweep, state, done);
}

/* Looks at the next handle, and cancels it with those like it that follow. */
static inline void sweep_cancel(struct batch *batch, struct sweep *sweep, size_t end)
{
	struct tw_handle handle = batch->handle[batch->at];
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	uint64_t word;

	sweep->other = true;
	if (!twi_handle_sane(handle))
		return;
	/* E10: if the timeout is alive in this section, its engine exists. */
	worker = twi_node_worker(node);
	/* RELAXED: shows only where a block begins; the swaps look again. */
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

/* Goes on until `end`, a handle that is not simple, or a finaliser that must run. */
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

/* Does one section, and then the work that it leaves. */
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
		 * A thread that knows a wheel has a shorter path, without a section. In a process
		 * that was forked each handle may be the parent's.
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
