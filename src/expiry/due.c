/* SPDX-License-Identifier: MIT */
/*
 * Handles timeouts that were passed to the dispatch hook. If the hook accepts a timeout, an
 * executor runs its callback. If not, the option `rejection` decides what happens (enum
 * tw_rejection).
 */
#include "expiry/due.h"

#include "base/atomic.h"
#include "expiry/periodic.h"
#include "expiry/run.h"
#include "thread/futex.h"
#include "thread/rcu.h"
#include "worker/role.h"

#include <pthread.h>

static enum twi_due_claim claim_rejected(const struct tw_due *due, uint64_t word)
{
	if (!twi_word_same(word, due->handle.generation))
		return TWI_DUE_ENDED;
	switch (twi_word_state(word)) {
	case TWI_WORD_CANCELLED:
	case TWI_WORD_EXPIRED:
		return TWI_DUE_ENDED;
	case TWI_WORD_RUNNING:
		return TWI_DUE_RUNNING;
	default:
		return TWI_DUE_PENDING;
	}
}

/*
 * Claims an accepted timeout for a run. Only the first claim succeeds. The swap is repeated if a
 * waiter has set its bit meanwhile.
 */
static enum twi_due_claim due_claim(const struct tw_due *due, uint64_t *ret_word)
{
	struct twi_node *node = twi_node_of_handle(due->handle);
	/*
	 * RELAXED, load and swap: only one swap succeeds, and the dispatch hook has passed the
	 * timeout to this thread.
	 */
	uint64_t word = twi_load_relaxed(&node->word);

	do {
		if (!twi_word_same(word, due->handle.generation) ||
		    twi_word_state(word) != TWI_WORD_DUE)
			return claim_rejected(due, word);
		TWI_TEST_POINT("due:seen");
		/* RELAXED: as above. */
	} while (!twi_cas_relaxed(&node->word, &word, twi_word_to(word, TWI_WORD_RUNNING)));
	*ret_word = word;
	return TWI_DUE_TAKEN;
}

/*
 * Counts the run as ended, in the run's last accesses to the engine. The RCU section keeps the
 * engine from being freed until this thread has read `sweeping` and woken the finisher.
 */
static void in_flight_end(void *argument)
{
	struct twi_worker *worker = argument;
	bool last;

	twi_rcu_enter(); /* E10: also publishes the callback's writes */
	/*
	 * E22: releases the push of a chain that waits again. Without it the finisher could miss
	 * that push.
	 */
	last = twi_fetch_sub_release(&worker->in_flight, 1) == 1;
	TWI_TEST_POINT("due:counted");
	/* RELAXED: the finisher sets `sweeping`, and then waits for our section. */
	if (last && twi_load_relaxed(&worker->sweeping))
		twi_futex_wake(&worker->in_flight);
	twi_rcu_leave();
}

static void due_end(struct twi_run *run, uint64_t word, bool dropped)
{
	bool periodic = (word & TWI_WORD_PERIODIC) != 0;

	pthread_cleanup_push(in_flight_end, run->worker);
	if (periodic && dropped)
		twi_chain_drop(run->worker, run->thread, run->node, word);
	else if (periodic)
		twi_chain_run(run->worker, run->thread, run->node, word);
	else if (dropped)
		twi_run_drop(run);
	else
		twi_run(run);
	pthread_cleanup_pop(1);
}

static struct twi_run due_run_of(const struct tw_due *due)
{
	struct twi_node *node = twi_node_of_handle(due->handle);

	return (struct twi_run){
		.thread = twi_thread(),
		.node = node,
		.worker = twi_node_worker(node),
		.handle = due->handle,
		.kind = due->kind,
		.arg = due->arg,
	};
}

enum twi_due_claim twi_due_run(const struct tw_due *due)
{
	enum twi_due_claim claim;
	struct twi_run run;
	uint64_t word;

	claim = due_claim(due, &word);
	if (claim != TWI_DUE_TAKEN)
		return claim;
	run = due_run_of(due);
	due_end(&run, word, false);
	return TWI_DUE_TAKEN;
}

void twi_due_drop(const struct tw_due *due)
{
	struct twi_run run;
	uint64_t word;

	if (due_claim(due, &word) != TWI_DUE_TAKEN)
		return;
	run = due_run_of(due);
	/* If the timeout was cancelled meanwhile, it ends without a call of the drop hook. */
	if ((word & TWI_WORD_OVER) == 0)
		twi_count_add(&run.worker->dropped_count, 1);
	due_end(&run, word, true);
}

static enum twi_word_state pending_state(const struct tw_due *due)
{
	return (due->kind->flags & TW_KIND_FLAG_OWNER_ONLY) != 0 ? TWI_WORD_OWNED
								 : TWI_WORD_WHEELED;
}

/*
 * Steps back to the pending state. Returns false if the run has begun, or must end without a
 * callback.
 */
static bool word_again(struct twi_node *node, const struct tw_due *due, uint64_t *ret_word)
{
	/*
	 * RELAXED, load and swap: only one swap succeeds. The swap publishes nothing, and does not
	 * break the release sequence of earlier swaps.
	 */
	uint64_t word = twi_load_relaxed(&node->word);

	do {
		if (!twi_word_same(word, due->handle.generation) ||
		    twi_word_state(word) != TWI_WORD_DUE || (word & TWI_WORD_OVER) != 0)
			return false;
		*ret_word = word;
		TWI_TEST_POINT("due:again");
		/* RELAXED: as above. */
	} while (!twi_cas_relaxed(&node->word, &word,
				  twi_word_to(word, pending_state(due)) & ~TWI_WORD_WAITER));
	return true;
}

TWI_WORKER_ONLY bool twi_due_again(const struct tw_due *due)
{
	struct twi_node *node = twi_node_of_handle(due->handle);
	struct twi_worker *worker = twi_node_worker(node);
	uint64_t word;

	if (!word_again(node, due, &word))
		return false;
	/*
	 * A thread that cancels the timeout from here on pushes it to a queue, and a later turn
	 * takes it.
	 */
	twi_wheel_insert_rejected(worker->wheel, node, worker->due_limit);
	twi_count_add((word & TWI_WORD_PERIODIC) != 0 ? &worker->periodic_run_count
						      : &worker->expired_count,
		      (uint64_t)-1);
	/*
	 * RELAXED: only the worker waits for the count to become 0, and this thread is the worker.
	 */
	(void)twi_fetch_sub_relaxed(&worker->in_flight, 1);
	if ((word & TWI_WORD_WAITER) != 0)
		twi_futex_wake(twi_word_futex(&node->word));
	return true;
}
