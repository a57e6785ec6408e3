/* SPDX-License-Identifier: MIT */
/*
 * Finishes an engine, so that no timeout is lost and none runs twice.
 *
 * After stop has closed the engine, the finisher sets `sweeping` and waits for a grace period (E10)
 * and for presences (E162). From then on no thread pushes: a schedule sees the closed state and
 * fails; a cancel sees `sweeping` and leaves the node to the sweep. The finisher empties queues and
 * rings into the wheel and hands back the wheel's timeouts. Then it waits for the callbacks that
 * executors still run. It also waits once more for a grace period and for presences, because a
 * cancel may still look at a node of this engine. Finally it stores STOPPED.
 *
 * Each step can be resumed, even by another thread. If the hand-back hook or a finaliser ends the
 * worker's thread, the timeouts that were not handed back yet are still where they were. A stop
 * that does the work itself may run out of time while executors still run callbacks. Then it leaves
 * the rest to the next stop.
 */
#include "turn/finish.h"

#include "base/atomic.h"
#include "expiry/expire.h"
#include "expiry/wall.h"
#include "ingress/reclaim.h"
#include "ingress/transfer.h"
#include "thread/futex.h"
#include "thread/pin.h"
#include "thread/presence.h"
#include "thread/rcu.h"
#include "turn/fresh.h"
#include "worker/left.h"
#include "worker/role.h"

#include <errno.h>
#include <pthread.h>

/*
 * Takes a timeout for its hand-back (the linearization point). Returns false if it was cancelled
 * before. Then the caller must free the node, because no other thread does. No node in the wheel
 * has its queued bit set: the queues were emptied, and since the sweep began no reschedule sets the
 * bit. An executor may still set it for a chain, but such a node is in a queue, not in the wheel.
 */
static bool node_take_back(struct twi_node *node, uint64_t *ret_word)
{
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	uint64_t word = twi_load_relaxed(&node->word);

	do {
		*ret_word = word;
		if (!twi_word_pending(word) && twi_word_state(word) != TWI_WORD_OWNED)
			return false;
		TWI_TEST_POINT("hand_back:seen");
		/* E4: acquires the deadline that the last reschedule has set. */
	} while (!twi_cas_acquire(&node->word, &word, twi_word_to(word, TWI_WORD_CANCELLED)));
	return true;
}

static int64_t remaining_ns(const struct twi_worker *worker, struct twi_node *node)
{
	/* RELAXED: no other thread changes the state word any more. */
	bool wall = twi_wall_is(node, twi_load_relaxed(&node->word));
	int64_t deadline_ns =
		wall ? twi_wall_chain_ns(worker, twi_node_chain(node)) : twi_node_deadline_ns(node);

	if (deadline_ns == TW_NEVER)
		return TW_NEVER;
	return deadline_ns - twi_clock_now_ns(worker->clock);
}

static void hand_back_end(void *argument)
{
	struct twi_run *run = argument;

	/* RELAXED: no other thread changes the state word any more. */
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
		run->kind->finaliser(run->arg, TW_END_UNEXPIRED);
	pthread_cleanup_pop(1);
}

static void hand_back_run(struct twi_run *run)
{
	struct twi_worker *worker = run->worker;

	run->outer = run->thread->run;
	run->thread->run = run;
	pthread_cleanup_push(hand_back_finalise, run);
	if (worker->on_unexpired != NULL)
		worker->on_unexpired(worker->hand_back_context, run->handle, run->kind, run->arg,
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
	twi_count_add(&worker->unexpired_count, 1);
	run.node = node;
	run.handle = (struct tw_handle){.node = node, .generation = twi_word_generation(word)};
	run.kind = twi_node_kind(node);
	run.arg = (word & TWI_WORD_PERIODIC) != 0 ? twi_chain_arg(twi_node_chain(node))
						  : twi_node_arg(node);
	twi_handle_acquire(run.handle);
	hand_back_run(&run);
}

/* Moves pushed timeouts into the wheel, and cancelled ones out of it. */
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

/*
 * Waits for the timeouts that executors have accepted, because they must end before the engine
 * does. Returns false if they have not ended by `until_ns`.
 */
static bool in_flight_wait(struct twi_worker *worker, int64_t until_ns)
{
	uint32_t count;

	/*
	 * E22: acquires the executors' pushes, so the caller finds their chains in a queue. The
	 * grace period after this wait publishes their other writes.
	 */
	while ((count = twi_load_acquire(&worker->in_flight)) != 0)
		if (twi_futex_wait(&worker->in_flight, count, until_ns) == -ETIMEDOUT)
			return false;
	return true;
}

/*
 * Waits for calls that may still read this engine. Presences (E162) come first, because a schedule
 * may change from a presence to an RCU section (schedule.c). The pins come last (E100): all
 * reschedulers with a pin on this engine must have counted their reschedules. Otherwise they could
 * write to freed memory. Returns false if such a call has not returned by `until_ns`.
 */
static bool calls_wait(const struct twi_worker *worker, int64_t until_ns)
{
	return twi_presences_wait(until_ns) && twi_rcu_synchronize_until(until_ns) && /* E10 */
	       twi_pins_wait(worker, until_ns);
}

/*
 * Ends all timeouts, and waits until no call uses the engine. Returns false if the time is up. The
 * next call then starts again at the first step, and the steps that are complete find nothing to do.
 */
static TWI_WORKER_ONLY bool all_end(struct twi_worker *worker, int64_t until_ns)
{
	/*
	 * The flag must be set before the grace period, so that cancels in later sections see it
	 * and do not push. RELAXED: the grace period orders this store.
	 */
	twi_store_relaxed(&worker->sweeping, true);
	TWI_TEST_POINT("finish:sweeping");
	/*
	 * E10: after both waits every push is complete. The second wait is for pushes by the quick
	 * paths, which are made outside of RCU sections (thread/presence.h).
	 */
	if (!twi_rcu_synchronize_until(until_ns) || !twi_presences_wait(until_ns))
		return false;
	queues_empty(worker);
	wheel_hand_back(worker);
	twi_worker_rejected_end(worker);
	if (!in_flight_wait(worker, until_ns))
		return false;
	/* A chain that has run in an executor may have been pushed for its next run. */
	queues_empty(worker);
	wheel_hand_back(worker);
	return calls_wait(worker, until_ns);
}

/* Does every step of finishing, on any thread. */
TWI_WORKER_UNCHECKED bool twi_worker_finish(struct twi_worker *worker, int64_t until_ns)
{
	void *outer = twi_thread()->worker;
	bool ended;

	/*
	 * For ThreadSanitizer: acquires the hook that stop has stored, and the writes of the former
	 * worker.
	 */
	twi_tsan_acquire(&worker->state);
	twi_fresh_flush(worker);
	twi_worker_enter(worker);
	twi_worker_due_put_back(worker);
	ended = all_end(worker, until_ns);
	worker->self->worker = outer == worker ? NULL : outer;
	if (!ended)
		return false;
	twi_worker_disown(worker);
	TWI_TEST_POINT("finish:stopping");
	twi_tsan_acquire(&worker->in_flight);
	twi_tsan_release(&worker->state);
	/*
	 * E12: pairs with stop's load, so that the caller of stop sees that everything has ended.
	 * This is the last access to the engine.
	 */
	twi_store_release(&worker->state, TW_ENGINE_STOPPED);
	twi_futex_wake(&worker->state);
	return true;
}
