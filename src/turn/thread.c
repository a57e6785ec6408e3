/* SPDX-License-Identifier: MIT */
/*
 * The thread of an engine that has one: it takes turns, sleeps between them, and finishes the
 * engine.
 */
#include "turn/thread.h"

#include "base/atomic.h"
#include "ingress/lanes.h"
#include "thread/fork.h"
#include "thread/futex.h"
#include "thread/log.h"
#include "thread/rcu.h"
#include "turn/finish.h"
#include "turn/sleep.h"
#include "turn/snapshot.h"
#include "turn/turn.h"
#include "worker/role.h"
#include "worker/state.h"
#include "worker/ticket.h"

static void state_change(struct twi_worker *worker, uint32_t from, uint32_t to)
{
	/*
	 * RELAXED: a thread that begins publishes nothing, and twi_worker_open acquires the writes
	 * of a stop.
	 */
	(void)twi_cas_relaxed(&worker->state, &from, to);
}

/* Takes one more turn for the pushes that came before the sleep was published. */
static TWI_WORKER_ONLY unsigned last_turn(struct twi_worker *worker, unsigned left)
{
	left = twi_lanes_idle(worker) ? left : twi_worker_turn(worker);
	return left | twi_sleep_hidden(worker);
}

void twi_worker_sleep(struct twi_worker *worker, unsigned left)
{
	int64_t published_ns = twi_sleep_publish(worker);

	twi_sleep_until(worker, last_turn(worker, left), published_ns);
}

static TWI_WORKER_ONLY void turns_take(struct twi_worker *worker)
{
	while (twi_worker_open(worker)) {
		/*
		 * E8: the turn below serves the tickets taken so far. The acquire is needed because
		 * the turn must see the pushes that came before them.
		 */
		uint32_t ticket = twi_load_acquire(&worker->flush_wanted);
		unsigned left;

		twi_snapshot_look(worker);
		left = twi_worker_turn(worker);
		if ((left & TWI_LEFT_MORE) != 0)
			continue;
		if ((left & TWI_LEFT_CUT) == 0)
			twi_flush_serve(worker, ticket);
		twi_worker_sleep(worker, left);
	}
}

void twi_worker_run(struct twi_worker *worker)
{
	twi_worker_enter(worker);
	state_change(worker, TW_ENGINE_STARTING, TW_ENGINE_RUNNING);
	TWI_TEST_POINT("worker:running");
	state_change(worker, TWI_STATE_STOPPING_STARTING, TW_ENGINE_STOPPING);
	turns_take(worker);
	/*
	 * If a callback has forked and also returned in the child, the engine is the parent's, and
	 * the child must not touch it.
	 */
	if (worker->fork_epoch == twi_fork_epoch)
		(void)twi_worker_finish(worker, INT64_MAX);
}
