/* SPDX-License-Identifier: MIT */
/*
 * A timeout that went to the dispatch hook: its callback in an executor, or on the worker when the
 * hook did not accept it.
 */
#include "base/atomic.h"
#include "mech/futex.h"
#include "mech/rcu.h"
#include "worker/watch.h"

#include <errno.h>
#include <pthread.h>

/* The first run of an accepted timeout wins; a waiter may be noted meanwhile. */
static bool due_claim(const struct tw_due *due, uint64_t *ret_word)
{
	struct twi_node *node = twi_node_of_handle(due->handle);
	/* RELAXED, both: one of all swaps wins; the timeout itself came through the hook. */
	uint64_t word = twi_load_relaxed(&node->word);

	do {
		if (!twi_word_same(word, due->handle.birth) || twi_word_state(word) != TWI_WORD_DUE)
			return false;
		TWI_TEST_POINT("due:seen");
		/* RELAXED: as above. */
	} while (!twi_cas_relaxed(&node->word, &word, twi_word_to(word, TWI_WORD_RUNNING)));
	*ret_word = word;
	return true;
}

/* The last touch of the engine by this run; the section keeps it until we have looked and woken. */
static void in_flight_end(void *argument)
{
	struct twi_worker *worker = argument;
	bool last;

	twi_rcu_enter(); /* E10: publishes what the callback did, too */
	/* E22: after the push of a chain that waits again. */
	last = twi_fetch_sub_release(&worker->in_flight, 1) == 1;
	TWI_TEST_POINT("due:counted");
	/* RELAXED: who raised it waits for our section. */
	if (last && twi_load_relaxed(&worker->sweeping))
		twi_futex_wake(&worker->in_flight);
	twi_rcu_leave();
}

int twi_due_run(const struct tw_due *due)
{
	struct twi_run run = {.thread = twi_thread()};
	uint64_t word;

	if (!due_claim(due, &word))
		return -ESTALE;
	run.node = twi_node_of_handle(due->handle);
	run.worker = twi_node_worker(run.node);
	run.handle = due->handle;
	run.kind = due->kind;
	run.arg = due->arg;
	pthread_cleanup_push(in_flight_end, run.worker);
	/* An executor has other runs beside it. */
	if (run.worker->watch != NULL && run.thread->worker != run.worker)
		(void)twi_watch_look(run.worker);
	if ((word & TWI_WORD_PERIODIC) != 0)
		twi_chain_run(run.worker, run.thread, run.node, word);
	else
		twi_run(&run);
	pthread_cleanup_pop(1);
	return 0;
}
