/* SPDX-License-Identifier: MIT */
/*
 * The worker's life: turns, sleep between them, and the finish.
 */
#include "worker/visit.h"

#include "base/atomic.h"
#include "mech/fork.h"
#include "mech/futex.h"
#include "mech/log.h"
#include "mech/rcu.h"

bool twi_worker_open(const struct twi_worker *worker)
{
	/*
	 * E8: the last look before a sleep is one of these loads. E12: acquires the hook that stop
	 * has left.
	 */
	return twi_life_accepts(twi_load_seq_cst(&worker->life)) &&
	       worker->fork_epoch == twi_fork_epoch;
}

void twi_settle_notify(struct twi_worker *worker)
{
	/* E13: pairs with settle's load. The change must come before this step. */
	(void)twi_fetch_add_release(&worker->settle_epoch, 1);
	twi_futex_wake(&worker->settle_epoch);
}

/* A function of its own, so that a turn without tickets needs no stack frame. */
static TWI_APART void ticket_serve(struct twi_worker *worker, uint32_t ticket)
{
	twi_tsan_release(&worker->settle_done);
	/* E13: pairs with settle's load, so that a settler sees the turn's writes. */
	twi_store_release(&worker->settle_done, ticket);
	TWI_TEST_POINT("settle:served");
	twi_settle_notify(worker);
}

void twi_settle_serve(struct twi_worker *worker, uint32_t ticket)
{
	/* RELAXED: the worker is the only writer. */
	if (twi_load_relaxed(&worker->settle_done) != ticket)
		ticket_serve(worker, ticket);
}

static void life_change(struct twi_worker *worker, uint32_t from, uint32_t to)
{
	/* RELAXED: a begin publishes nothing, and twi_worker_open acquires the writes of a stop. */
	(void)twi_cas_relaxed(&worker->life, &from, to);
}

TWI_WORKER_UNCHECKED void twi_worker_enter(struct twi_worker *worker)
{
	worker->self = twi_thread();
	if (worker->self->worker != worker)
		worker->outer = worker->self->worker;
	worker->self->worker = worker;
	worker->self->wheel_of = worker;
	/* RELAXED: only a thread that has written itself here finds itself. */
	twi_store_relaxed(&worker->owner, worker->self);
}

TWI_WORKER_UNCHECKED bool twi_worker_inside(const struct twi_worker *worker)
{
	const struct twi_worker *inside = twi_thread()->worker;

	while (inside != NULL && inside != worker)
		inside = inside->outer;
	return inside != NULL;
}

void twi_worker_disown(struct twi_worker *worker)
{
	struct twi_thread *thread = twi_thread();

	/* The thread may have another engine's wheel by now. */
	if (thread->wheel_of == worker)
		thread->wheel_of = NULL;
	/* RELAXED: as above. */
	twi_store_relaxed(&worker->owner, NULL);
}

static TWI_WORKER_ONLY void turns_take(struct twi_worker *worker)
{
	while (twi_worker_open(worker)) {
		/*
		 * E8: the turn below serves the tickets taken by now. The acquire is needed because
		 * the turn must see the pushes before them.
		 */
		uint32_t ticket = twi_load_acquire(&worker->settle_wanted);
		unsigned left;

		twi_visit_look(worker);
		left = twi_worker_turn(worker);
		if ((left & TWI_LEFT_MORE) != 0)
			continue;
		if ((left & TWI_LEFT_CUT) == 0)
			twi_settle_serve(worker, ticket);
		twi_worker_sleep(worker, left);
	}
}

void twi_worker_run(struct twi_worker *worker)
{
	twi_worker_enter(worker);
	life_change(worker, TWI_LIFE_STARTING, TWI_LIFE_RUNNING);
	TWI_TEST_POINT("worker:running");
	life_change(worker, TWI_LIFE_STOPPING_STARTING, TWI_LIFE_STOPPING);
	turns_take(worker);
	/* If a callback has forked and returned in the child too, the engine is the parent's. */
	if (worker->fork_epoch == twi_fork_epoch)
		(void)twi_worker_finish(worker, INT64_MAX);
}

/* The new life of an engine when its worker is gone. In the other lives there is no worker. */
static uint32_t bereaved_life(uint32_t life)
{
	if (twi_life_accepts(life))
		return TWI_LIFE_FAILED;
	return life == TWI_LIFE_STOPPING ? TWI_LIFE_ORPHAN : life;
}

TWI_WORKER_UNCHECKED void twi_worker_died(struct twi_worker *worker)
{
	struct twi_thread *thread = twi_thread();
	uint32_t life;

	/*
	 * The thread may be inside a callback of another engine. Then that engine's runs end after
	 * this, and must find the thread as its worker.
	 */
	if (thread->worker == worker)
		thread->worker = worker->outer;
	twi_worker_disown(worker);
	/*
	 * E10: a thread that finishes the engine now waits for a grace period, and so for our last
	 * touch.
	 */
	twi_rcu_enter();
	/* RELAXED: a first guess; the swap decides. */
	life = twi_load_relaxed(&worker->life);
	TWI_TEST_POINT("died:seen");
	twi_tsan_release(&worker->life);
	/*
	 * E12: must be one step, because between two steps another thread could adopt the engine.
	 */
	while (!twi_cas_release(&worker->life, &life, bereaved_life(life)))
		;
	TWI_TEST_POINT("died:told");
	twi_futex_wake(&worker->life);
	twi_settle_notify(worker);
	twi_rcu_leave();
	twi_log(TW_LOG_ERROR, "a callback ended the worker's thread; the engine takes no more");
}
