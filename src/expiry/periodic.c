/* SPDX-License-Identifier: MIT */
/*
 * A run of a periodic timeout and the step after it: the next wait, or the end (protocol:
 * docs/internals/special-paths.md, "Periodic timeouts").
 *
 * The thread that runs a chain owns it until it changes the node's state word. Either it steps to
 * WHEELED, and the wait for the next run begins. Or it sets the bit OVER, and the chain ends. A
 * cancel during the run sets OVER first, so that the step to WHEELED fails.
 *
 * On the worker, inside a turn, the node is inserted into the wheel directly. On other threads it
 * is pushed to the worker, like a node that was rescheduled to an earlier deadline: state word and
 * deadline change in one swap that sets the queued bit, and the thread that set the bit pushes the
 * node. api/reschedule.c explains why such a push cannot miss its wake-up. No RCU section is
 * needed: stop waits until this thread has counted down in_flight, after the push. Then stop looks
 * at the queues once more (E22).
 */
#include "expiry/periodic.h"

#include "base/atomic.h"
#include "base/tick.h"
#include "clock/tsc.h"
#include "expiry/run.h"
#include "expiry/slack.h"
#include "ingress/push.h"
#include "worker/role.h"

#include <pthread.h>

/*
 * Returns evenly distributed numbers of 64 bits: a counter that grows by an odd number, with its
 * bits mixed.
 */
static uint64_t random_next(uint64_t *state)
{
	uint64_t bits = *state += UINT64_C(0x9e3779b97f4a7c15);

	bits = (bits ^ bits >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	bits = (bits ^ bits >> 27) * UINT64_C(0x94d049bb133111eb);
	return bits ^ bits >> 31;
}

/* Returns a random time of at most `ppm` millionths of the interval. */
static int64_t jitter_ns(struct twi_chain *chain, int64_t interval_ns, uint32_t ppm)
{
	int64_t most_ns = interval_ns / 1000000 * ppm + interval_ns % 1000000 * ppm / 1000000;

	return (int64_t)(random_next(&chain->random) % ((uint64_t)most_ns + 1));
}

int64_t twi_chain_deadline_ns(const struct twi_worker *worker, struct twi_chain *chain,
			      const struct tw_kind *kind, int64_t interval_ns)
{
	uint32_t ppm = twi_rule_jitter_ppm(twi_chain_rule(chain));
	int64_t deadline_ns = chain->scheduled_ns;

	if (ppm != 0)
		deadline_ns = twi_deadline_after(deadline_ns, jitter_ns(chain, interval_ns, ppm));
	return kind->slack_ns != 0 ? twi_slacken(worker, deadline_ns, kind->slack_ns) : deadline_ns;
}

/* Returns when the tick that contains `now_ns` began. */
static int64_t tick_begin_ns(const struct twi_worker *worker, int64_t now_ns)
{
	uint64_t since_ns = twi_since(now_ns, worker->epoch_ns);

	return twi_absolute_ns(worker->epoch_ns, since_ns - since_ns % worker->tick_ns);
}

/*
 * Returns the first grid point after `point_ns` whose tick is not over. The tick of `point_ns` must
 * be over. `from_ns`: the beginning of the present tick.
 */
static int64_t grid_skip(int64_t point_ns, int64_t period_ns, int64_t from_ns)
{
	int64_t rest_ns = (from_ns - point_ns) % period_ns;

	return rest_ns == 0 ? from_ns : twi_deadline_after(from_ns, period_ns - rest_ns);
}

/*
 * Returns the time `interval_ns` after the end of the run, which is now. Adds the lag of a clock
 * that reads behind, so that the next run is not too early.
 */
static int64_t after_end_ns(const struct twi_chain_run *own, int64_t interval_ns)
{
	struct tw_clock *clock = own->run.worker->clock;
	int64_t end_ns;

	if (TWI_LIKELY(twi_clock_quick_after_ns(clock, interval_ns, &end_ns)))
		return end_ns;
	return twi_clock_after_ns(clock, interval_ns);
}

static int64_t next_on_grid_ns(const struct twi_chain_run *own, int64_t point_ns, uint32_t missed)
{
	const struct twi_worker *worker = own->run.worker;
	int64_t from_ns;

	/* The usual case. It needs no further reading of the clock. */
	if (TWI_LIKELY(point_ns >= after_end_ns(own, 0)))
		return point_ns;
	from_ns = tick_begin_ns(worker, twi_clock_now_ns(worker->clock));
	if (point_ns >= from_ns)
		return point_ns;
	return missed == TW_MISSED_SKIP
		       ? grid_skip(point_ns, twi_chain_period_ns(own->chain), from_ns)
		       : after_end_ns(own, own->interval_ns);
}

/* Returns the scheduled time of the next run. Must be called at the end of this run. */
static int64_t next_scheduled_ns(const struct twi_chain_run *own, uint64_t word)
{
	uint64_t rule = twi_chain_rule(own->chain);
	int64_t point_ns = own->chain->scheduled_ns;

	if (twi_rule_mode(rule) == TW_PERIOD_FIXED_DELAY)
		return after_end_ns(own, own->interval_ns);
	/* If the run was rescheduled, the grid continues from the new deadline. */
	if (TWI_UNLIKELY((word & TWI_WORD_RESCHEDULED) != 0))
		point_ns = twi_node_deadline_ns(own->run.node);
	point_ns = twi_deadline_after(point_ns, own->interval_ns);
	if (twi_rule_missed(rule) == TW_MISSED_BURST)
		return point_ns;
	return next_on_grid_ns(own, point_ns, twi_rule_missed(rule));
}

/*
 * Returns when a chain runs next in a forked child: at the next point of its grid or, with
 * TW_PERIOD_FIXED_DELAY, one period from now. If the parent had already set a time after now, the
 * chain keeps it.
 */
static int64_t inherited_next_ns(const struct twi_worker *worker, struct twi_chain *chain,
				 int64_t grid_ns)
{
	int64_t now_ns = twi_clock_now_ns(worker->clock);
	int64_t period_ns = twi_chain_period_ns(chain);

	if (chain->scheduled_ns > now_ns)
		return chain->scheduled_ns;
	if (twi_rule_mode(twi_chain_rule(chain)) == TW_PERIOD_FIXED_DELAY)
		return twi_deadline_after(now_ns, period_ns);
	if (grid_ns > now_ns)
		return grid_ns;
	return twi_deadline_after(now_ns, period_ns - (now_ns - grid_ns) % period_ns);
}

void twi_chain_inherit(const struct twi_worker *worker, struct twi_node *node, uint64_t word)
{
	struct twi_chain *chain = twi_node_chain(node);
	int64_t grid_ns = (word & TWI_WORD_RESCHEDULED) != 0 ? twi_node_deadline_ns(node)
							     : chain->scheduled_ns;
	int64_t deadline_ns;

	chain->scheduled_ns = inherited_next_ns(worker, chain, grid_ns);
	deadline_ns = twi_chain_deadline_ns(worker, chain, twi_node_kind(node),
					    twi_chain_period_ns(chain));
	/* RELAXED: no other thread has the node yet. */
	twi_store_relaxed(&node->deadline_ns, deadline_ns);
}

/* Returns the state word of the next wait. */
static uint64_t waiting_word(uint64_t word)
{
	return twi_word_to(word, TWI_WORD_WHEELED) & ~TWI_WORD_RESCHEDULED;
}

/*
 * Begins the next wait (the linearization point) inside a turn of the worker. Returns false if the
 * chain was cancelled.
 */
static TWI_WORKER_UNCHECKED bool again_here(struct twi_worker *worker, struct twi_node *node,
					    uint64_t word, int64_t deadline_ns)
{
	/*
	 * E4: a thread that acquires this deadline also finds RUNNING, or a later state, in the
	 * state word.
	 */
	twi_store_release(&node->deadline_ns, deadline_ns);
	do {
		if ((word & TWI_WORD_OVER) != 0)
			return false;
		TWI_TEST_POINT("chain:ending");
		/*
		 * E4: releases the writes of this run. If the swap fails, acquires the canceller's
		 * writes. E16: as in run.c.
		 */
	} while (!twi_cas_acq_rel(&node->word, &word, waiting_word(word)));
	if (TWI_LIKELY(deadline_ns >= worker->direct_from_ns))
		twi_wheel_insert(worker->wheel, node);
	else
		twi_wheel_insert_later(worker->wheel, node);
	return true;
}

/*
 * Begins the next wait (the linearization point) on a thread other than the worker. Returns false
 * if the chain was cancelled.
 */
static bool again_far(struct twi_worker *worker, const struct twi_thread *thread,
		      struct twi_node *node, uint64_t word, int64_t deadline_ns)
{
	/* RELAXED: only this thread changes the deadline during the run. */
	uint64_t seen_ns = (uint64_t)twi_load_relaxed(&node->deadline_ns);
	struct twi_pair seen, next;

	for (;;) {
		if ((word & TWI_WORD_OVER) != 0)
			return false;
		TWI_TEST_POINT("chain:ending");
		seen = (struct twi_pair){{word, seen_ns}};
		next = (struct twi_pair){
			{waiting_word(word) | TWI_WORD_QUEUED, (uint64_t)deadline_ns}};
		/* E4: as in again_here. E8: as in api/reschedule.c. E16: as in run.c. */
		if (twi_cas_pair_acq_rel(&node->word, seen, next))
			break;
		word = twi_load_acquire(&node->word); /* E4: as in again_here. */
	}
	if ((word & TWI_WORD_QUEUED) == 0)
		deadline_ns = twi_lane_push_queued(worker, twi_lane_of(worker, thread), node);
	/*
	 * E8: the load must come after the change, so that either the sleeper sees the change or we
	 * wake it.
	 */
	if (deadline_ns < twi_load_seq_cst(&worker->wake_before_ns))
		twi_park_wake(&worker->park);
	return true;
}

/*
 * Makes the chain wait for its next run. Afterwards another thread may already run the chain or
 * free it. Returns false if the chain was cancelled.
 */
static bool chain_again(struct twi_chain_run *own, uint64_t word)
{
	struct twi_run *run = &own->run;
	struct twi_chain *chain = own->chain;
	int64_t deadline_ns;

	if ((word & TWI_WORD_OVER) != 0)
		return false;
	chain->scheduled_ns = next_scheduled_ns(own, word);
	if (chain->runs_left != 0)
		chain->runs_left--;
	deadline_ns = twi_chain_deadline_ns(run->worker, chain, run->kind, own->interval_ns);
	if (TWI_LIKELY(run->thread->worker == run->worker))
		return again_here(run->worker, run->node, word, deadline_ns);
	return again_far(run->worker, run->thread, run->node, word, deadline_ns);
}

/* Ends a chain without a cancel (the linearization point). Returns false if a cancel came first. */
static bool chain_over(struct twi_node *node, uint64_t word)
{
	do {
		if ((word & TWI_WORD_OVER) != 0)
			return false;
		TWI_TEST_POINT("chain:ending");
		/* E4: if the swap fails, acquires the canceller's writes. */
	} while (!twi_cas_acquire(&node->word, &word, (word & ~TWI_WORD_PERIODIC) | TWI_WORD_OVER));
	return true;
}

static void chain_free(void *argument)
{
	struct twi_chain_run *own = argument;
	struct twi_run *run = &own->run;

	/*
	 * RELAXED: only a count. The canceller has already counted a cancelled chain. This must
	 * come before the chain's slot of the limit is given back. Otherwise the counters would
	 * show more timeouts than the limit.
	 */
	if (own->end != TW_END_CANCELLED)
		(void)twi_fetch_add_relaxed(&run->worker->chain_expired_count, 1);
	if (TWI_UNLIKELY(run->marks != 0))
		twi_run_marked_end(run);
	run->thread->run = run->outer;
	if (twi_run_close(run->node))
		twi_pool_give(&run->thread->stock, run->node);
	/*
	 * The chain's block must be given back last, because a thread that finds the node alive
	 * reads the argument from this block.
	 */
	twi_pool_give(&run->thread->stock, own->chain);
}

void twi_chain_place_offer(struct twi_chain_run *own)
{
	if (own->place_offered)
		return;
	own->place_offered = true;
	if (own->run.worker->pending_limit != 0)
		own->run.marks |= TWI_RUN_OWNS_SLOT;
}

static void chain_finalise(struct twi_chain_run *own)
{
	struct twi_run *run = &own->run;

	twi_chain_place_offer(own);
	/* Reports to ThreadSanitizer that the finaliser comes after the canceller's call. */
	twi_run_mark_reported(run);
	pthread_cleanup_push(chain_free, own);
	if (run->kind->finaliser != NULL)
		run->kind->finaliser(run->arg, own->end);
	pthread_cleanup_pop(1);
}

static void chain_run_end(void *argument)
{
	struct twi_chain_run *own = argument;
	/* E4: if the chain was cancelled, acquires the canceller's writes. */
	uint64_t word = twi_load_acquire(&own->run.node->word);

	if (own->chain->runs_left != 1) {
		if (chain_again(own, word)) {
			if (TWI_UNLIKELY(own->run.marks != 0))
				twi_run_marked_end(&own->run);
			own->run.thread->run = own->run.outer;
			return;
		}
		own->end = TW_END_CANCELLED;
	} else if (!own->once && !chain_over(own->run.node, word)) {
		own->end = TW_END_CANCELLED;
	}
	chain_finalise(own);
}

static void chain_hook(struct twi_run *run)
{
	run->worker->on_drop(run->worker->drop_context, run->handle, run->kind, run->arg);
}

/*
 * Begins the last run of a chain. The chain of a timeout with a date is over as soon as its run
 * begins, so that a later cancel reports RUNNING, as for any one-shot timeout. Returns false if a
 * cancel came first.
 */
static bool last_begin(struct twi_chain_run *own, uint64_t word)
{
	twi_chain_place_offer(own);
	if (twi_rule_mode(twi_chain_rule(own->chain)) != TWI_RULE_WALL)
		return true;
	own->once = true;
	if (chain_over(own->run.node, twi_word_to(word, TWI_WORD_RUNNING)))
		return true;
	own->end = TW_END_CANCELLED;
	return false;
}

static TWI_ALWAYS_INLINE void chain_run(struct twi_worker *worker, struct twi_thread *thread,
					struct twi_node *node, uint64_t word, bool dropped)
{
	struct twi_chain *chain = twi_node_chain(node);
	struct twi_chain_run own = {
		.run = {.outer = thread->run,
			.worker = worker,
			.thread = thread,
			.node = node,
			.handle = {.node = node, .generation = twi_word_generation(word)},
			.kind = twi_node_kind(node),
			.arg = twi_chain_arg(chain)},
		.chain = chain,
		.interval_ns = twi_chain_period_ns(chain),
		.end = dropped ? TW_END_DROPPED : TW_END_EXPIRED,
	};

	thread->run = &own.run;
	if (chain->runs_left == 1 && !last_begin(&own, word))
		word |= TWI_WORD_OVER;
	TWI_TEST_POINT("run:begin");
	pthread_cleanup_push(chain_run_end, &own);
	/* If the chain was cancelled before the executor ran it, the callback must not run. */
	if (TWI_UNLIKELY((word & TWI_WORD_OVER) != 0))
		;
	else if (dropped)
		twi_run_body(&own.run, chain_hook);
	else
		twi_run_callback(&own.run);
	pthread_cleanup_pop(1);
}

void twi_chain_run(struct twi_worker *worker, struct twi_thread *thread, struct twi_node *node,
		   uint64_t word)
{
	chain_run(worker, thread, node, word, false);
}

TWI_COLD void twi_chain_drop(struct twi_worker *worker, struct twi_thread *thread,
			     struct twi_node *node, uint64_t word)
{
	chain_run(worker, thread, node, word, true);
}
