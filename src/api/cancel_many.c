/* SPDX-License-Identifier: MIT */
/*
 * tw_cancel_many.
 *
 * A sweep is what one section cancels: timeouts that wait, in a ring or in the wheel of one engine, each by
 * the swap that cancels it (LIN), as in cancel.c. What follows the swaps is done for all of them at the
 * end: those of a ring are counted, and those of the wheel are pushed as one burst (worker/burst.h), so
 * that the worker hears of them at once. Between swap and push nobody else does anything with such a node:
 * it is in the wheel, and reclaim, which frees it, comes by the push.
 *
 * The sweep ends before a finaliser, which runs outside of any section and may do what it likes, and at
 * a timeout of another engine. Whatever is not as simple as that (periodic, queued by a reschedule, in a link
 * queue, running, ended, the owner's) goes by tw_cancel, outside too.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "mech/rcu.h"
#include "worker/burst.h"

#include <errno.h>
#include <tickwheel/batch.h>

enum {
	/* So far ahead a node's line is asked for: it comes from the worker's core, or from memory. */
	AHEAD = 16,
	/* Not simple. */
	OTHER = -1,
};

/* What one section does. */
struct sweep {
	struct twi_thread *thread;
	struct twi_worker *worker; /* NULL: there is nothing to be done at the end */
	struct twi_lane *lane;
	uint64_t withdrawn; /* out of rings */
	uint32_t units;     /* full, of those out of the wheel */
	bool burst_begun;   /* one was in the wheel */
	struct twi_burst burst;
	/* Of the timeout that was cancelled last; NULL: none. */
	tw_finaliser *finaliser;
	void *arg;
};

static inline void sweep_begin(struct sweep *sweep)
{
	sweep->thread = twi_thread();
	sweep->worker = NULL;
	sweep->finaliser = NULL;
	/* E10: from a look at a timeout that is alive to the last touch of its engine. */
	twi_rcu_enter();
}

/* For the rest of what is swept: of that engine. */
static void sweep_engine(struct sweep *sweep, struct twi_worker *worker)
{
	sweep->worker = worker;
	sweep->lane = &worker->lane[sweep->thread->lane];
	sweep->withdrawn = 0;
	sweep->units = 0;
	sweep->burst_begun = false;
}

static TWI_APART void sweep_shared_count(struct sweep *sweep)
{
	/* RELAXED: a count. */
	(void)twi_fetch_add_relaxed(&sweep->lane->withdrawn_count, sweep->withdrawn);
}

static void sweep_tell(struct sweep *sweep)
{
	if (TWI_UNLIKELY(sweep->thread->lane == TWI_LANE_SHARED))
		sweep_shared_count(sweep);
	else
		twi_count_add(&sweep->lane->withdrawn_count, sweep->withdrawn);
	if (sweep->burst_begun)
		twi_burst_end(&sweep->burst);
	/* What is cancelled in the wheel waits for the worker, like what is scheduled. */
	if (TWI_UNLIKELY(sweep->units != 0))
		twi_unseen_note(sweep->worker, sweep->units);
}

static inline void sweep_end(struct sweep *sweep)
{
	if (TWI_LIKELY(sweep->worker != NULL))
		sweep_tell(sweep);
	twi_rcu_leave();
}

/* In a ring, and ours since the swap. */
static inline void ring_cancelled(struct sweep *sweep, struct twi_node *node)
{
	TWI_TEST_POINT("cancel:swapped");
	sweep->withdrawn++;
	twi_pool_give_warm(&sweep->thread->stock, node);
}

/* In the wheel. `sweeping`, as it was before the swap: stop frees what it finds cancelled. */
static inline void wheel_cancelled(struct sweep *sweep, struct twi_node *node, bool sweeping)
{
	uint64_t count = twi_lane_count(sweep->thread, &sweep->lane->cancelled_count);

	TWI_TEST_POINT("cancel:won");
	sweep->units += count % TWI_UNSEEN_UNIT == 1;
	if (TWI_UNLIKELY(sweeping))
		return;
	if (TWI_UNLIKELY(!sweep->burst_begun)) {
		twi_burst_begin(&sweep->burst, sweep->worker, sweep->thread, TWI_BURST_MAX);
		sweep->burst_begun = true;
	}
	twi_burst_add_cancelled(&sweep->burst, node);
}

/* Waits, in a ring or in the wheel, and nothing else is to be said of it. */
static inline bool word_simple(uint64_t word, uint64_t birth)
{
	uint64_t rest = (word ^ birth) & ~TWI_WORD_RESCHEDULED;

	return rest == TWI_WORD_INIT || rest == TWI_WORD_WHEELED;
}

/* A timeout of the sweep's engine. True: cancelled. */
static inline bool sweep_cancel(struct sweep *sweep, struct twi_node *node, uint64_t word)
{
	const struct tw_kind *kind = twi_node_kind(node);
	void *arg = twi_node_arg(node);
	/* RELAXED: as in cancel.c, wheeled_cancel. */
	bool sweeping = twi_load_relaxed(&sweep->worker->sweeping);

	TWI_TEST_POINT("cancel:wheeled");
	/* E4: to who sees CANCELLED; if it fails, tw_cancel looks again. LIN of cancel. */
	if (!twi_cas_acq_rel(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED)))
		return false;
	sweep->finaliser = kind->finaliser;
	sweep->arg = arg;
	if (TWI_UNLIKELY(sweep->worker->pending_limit != 0))
		twi_limit_give(sweep->worker);
	if (twi_word_state(word) == TWI_WORD_INIT)
		ring_cancelled(sweep, node);
	else
		wheel_cancelled(sweep, node, sweeping);
	return true;
}

/* TW_CANCEL_DONE, or OTHER. */
static inline int sweep_handle(struct sweep *sweep, struct tw_handle handle)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	uint64_t word;

	/* E4: of our timeout if the swap succeeds, as in cancel.c, victim_cancel. */
	worker = twi_node_worker(node);
	TWI_TEST_POINT("cancel:read");
	word = twi_load_acquire(&node->word); /* E4 */
	TWI_TEST_POINT("cancel:seen");
	if (TWI_UNLIKELY(!word_simple(word, handle.birth)))
		return OTHER;
	if (TWI_UNLIKELY(worker != sweep->worker)) {
		if (sweep->worker != NULL)
			sweep_tell(sweep);
		sweep_engine(sweep, worker);
	}
	return sweep_cancel(sweep, node, word) ? TW_CANCEL_DONE : OTHER;
}

/* A call. */
struct batch {
	const struct tw_handle *handle;
	int *ret_outcome; /* or NULL */
	size_t count;
	size_t at; /* the next handle */
	size_t cancelled;
};

static inline void handle_done(struct batch *batch, int outcome)
{
	if (batch->ret_outcome != NULL)
		batch->ret_outcome[batch->at] = outcome;
	batch->cancelled += outcome == TW_CANCEL_DONE || outcome == TW_CANCEL_STOPPED;
	batch->at++;
}

static inline void node_ask(const struct batch *batch)
{
	if (batch->at + AHEAD < batch->count)
		TWI_PREFETCH_WRITE(batch->handle[batch->at + AHEAD].node);
}

/* As far as it gets: to `end`, something not simple, or a finaliser that is to run. */
static void batch_sweep(struct batch *batch, struct sweep *sweep, size_t end)
{
	sweep_begin(sweep);
	while (batch->at < end && sweep->finaliser == NULL) {
		struct tw_handle handle = batch->handle[batch->at];

		node_ask(batch);
		if (!twi_handle_sane(handle) || sweep_handle(sweep, handle) == OTHER)
			break;
		handle_done(batch, TW_CANCEL_DONE);
	}
	sweep_end(sweep);
}

/* One section, and what it leaves to be done. */
static void span_cancel(struct batch *batch)
{
	size_t left = batch->count - batch->at;
	size_t end = batch->at + (left < TWI_BURST_MAX ? left : TWI_BURST_MAX);
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
		 * Who knows a wheel has a shorter way, which is no section's. In a process that was
		 * forked each handle may be the parent's.
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
