/* SPDX-License-Identifier: MIT */
/*
 * The end of an engine: nothing lost, nothing run twice (protocol: worker.h).
 *
 * Each step can be taken up again, by another thread too: when a hand-back ends the worker's thread, what
 * it had not reached is still where it was; and a stop that does the work itself, and whose time is up
 * while executors have callbacks, leaves the rest to the next one.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "mech/futex.h"
#include "mech/pin.h"
#include "mech/rcu.h"

#include <errno.h>
#include <pthread.h>

/*
 * LIN of a hand-back. False: cancelled before, and then nobody else frees the node. None is queued any
 * more: the queues were emptied, and since the sweep began nobody sets the bit.
 */
static bool node_take_back(struct twi_node *node, uint64_t *ret_word)
{
	/* RELAXED: a first guess. */
	uint64_t word = twi_load_relaxed(&node->word);

	do {
		*ret_word = word;
		if (!twi_word_pending(word) && twi_word_state(word) != TWI_WORD_OWNED)
			return false;
		TWI_TEST_POINT("hand_back:seen");
		/* E4: the deadline is the one that the last reschedule has left. */
	} while (!twi_cas_acquire(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED)));
	return true;
}

static int64_t remaining_ns(const struct twi_worker *worker, struct twi_node *node)
{
	int64_t deadline_ns = twi_node_deadline_ns(node);

	if (deadline_ns == TW_NEVER)
		return TW_NEVER;
	return deadline_ns - twi_clock_now_ns(worker->clock);
}

static void hand_back_end(void *argument)
{
	struct twi_run *run = argument;

	/* RELAXED: nobody else changes it any more. */
	if ((twi_load_relaxed(&run->node->word) & TWI_WORD_PERIODIC) != 0)
		twi_pool_give(&run->thread->stock, twi_node_chain(run->node));
	run->thread->run = run->outer;
	twi_pool_give(&run->thread->stock, run->node);
}

static void hand_back_finalise(void *argument)
{
	struct twi_run *run = argument;

	pthread_cleanup_push(hand_back_end, run);
	if (run->kind->finaliser != NULL)
		run->kind->finaliser(run->arg, TW_END_HANDED_BACK);
	pthread_cleanup_pop(1);
}

static void hand_back_run(struct twi_run *run)
{
	struct twi_worker *worker = run->worker;

	run->outer = run->thread->run;
	run->thread->run = run;
	pthread_cleanup_push(hand_back_finalise, run);
	if (worker->hand_back != NULL)
		worker->hand_back(worker->hand_back_context, run->handle, run->kind, run->arg,
				  remaining_ns(worker, run->node));
	pthread_cleanup_pop(1);
}

static TWI_WORKER_ONLY void node_hand_back(struct twi_worker *worker, struct twi_node *node)
{
	struct twi_run run = {.worker = worker, .thread = worker->self};
	uint64_t word;

	if (!node_take_back(node, &word)) {
		twi_count_add(&worker->reclaimed_count, 1);
		twi_pool_give(&worker->self->stock, node);
		return;
	}
	TWI_TEST_POINT("hand_back:taken");
	twi_count_add(&worker->handed_back_count, 1);
	run.node = node;
	run.handle = (struct tw_handle){.node = node, .birth = twi_word_birth(word)};
	run.kind = twi_node_kind(node);
	run.arg = (word & TWI_WORD_PERIODIC) != 0 ? twi_chain_arg(twi_node_chain(node))
						  : twi_node_arg(node);
	twi_handle_acquire(run.handle);
	hand_back_run(&run);
}

/* What is on its way goes into the wheel, and what was cancelled out of it. */
static TWI_WORKER_ONLY void queues_empty(struct twi_worker *worker)
{
	unsigned left;

	do {
		left = twi_worker_reclaim(worker, TW_TRANSFER_BATCH_MAX);
		(void)twi_ingress_take(worker, TW_TRANSFER_BATCH_MAX, &left);
	} while (left != TWI_LEFT_NOTHING);
}

static TWI_WORKER_ONLY void wheel_hand_back(struct twi_worker *worker)
{
	struct twi_due_batch batch = {.node = worker->due, .capacity = TWI_DUE_BATCH};

	do {
		twi_wheel_drain(worker->wheel, &batch);
		worker->due_at = 0;
		worker->due_count = batch.count;
		while (worker->due_at < worker->due_count)
			node_hand_back(worker, worker->due[worker->due_at++]);
	} while (batch.count > 0);
}

/* What executors have accepted ends before the engine does. False: not by then. */
static bool in_flight_wait(struct twi_worker *worker, int64_t until_ns)
{
	uint32_t count;

	/* E22: their chains are in a queue. What else they did, the grace period after this publishes. */
	while ((count = twi_load_acquire(&worker->in_flight)) != 0)
		if (twi_futex_wait(&worker->in_flight, count, until_ns) == -ETIMEDOUT)
			return false;
	return true;
}

/*
 * From the first touch of the engine to the last, whoever does it. Out of time, it is taken up again from
 * the begin: all that comes before the executors finds nothing more to be done.
 */
TWI_WORKER_UNCHECKED bool twi_worker_finish(struct twi_worker *worker, int64_t until_ns)
{
	void *outer = twi_thread()->worker;

	/* The hook that stop has left, and what the worker before did. */
	twi_tsan_acquire(&worker->life);
	twi_fresh_flush(worker);
	twi_worker_enter(worker);
	twi_worker_due_put_back(worker);
	/*
	 * Before the grace period: cancels in later sections see it and do not push. RELAXED: that is
	 * what a grace period orders.
	 */
	twi_store_relaxed(&worker->sweeping, true);
	TWI_TEST_POINT("finish:sweeping");
	twi_rcu_synchronize(); /* E10: every push is complete */
	queues_empty(worker);
	wheel_hand_back(worker);
	twi_worker_refused_end(worker);
	if (!in_flight_wait(worker, until_ns)) {
		worker->self->worker = outer == worker ? NULL : outer;
		return false;
	}
	/* Chains that wait again since they have run there. */
	queues_empty(worker);
	wheel_hand_back(worker);
	/* E10: cancels that have looked at this engine through a node are over. */
	twi_rcu_synchronize();
	/* E100: reschedulers that have moved one of its timeouts have counted that in here. */
	twi_pins_wait(worker);
	worker->self->worker = outer == worker ? NULL : outer;
	twi_worker_disown(worker);
	TWI_TEST_POINT("finish:stopping");
	twi_tsan_acquire(&worker->in_flight);
	twi_tsan_release(&worker->life);
	/* E12, pairs with stop's load: everything has ended. The last touch of the engine. */
	twi_store_release(&worker->life, TWI_LIFE_STOPPED);
	twi_futex_wake(&worker->life);
	return true;
}
