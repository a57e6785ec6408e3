/* SPDX-License-Identifier: MIT */
#include "worker/role.h"

#include "base/atomic.h"
#include "thread/fork.h"
#include "thread/futex.h"
#include "thread/log.h"
#include "thread/rcu.h"
#include "worker/state.h"
#include "worker/ticket.h"

bool twi_worker_open(const struct twi_worker *worker)
{
	/*
	 * E8: this load is also part of the last look before a sleep. E12: acquires the hook that
	 * stop has stored.
	 */
	return twi_state_accepts(twi_load_seq_cst(&worker->state)) &&
	       worker->fork_epoch == twi_fork_epoch;
}

TWI_WORKER_UNCHECKED void twi_worker_enter(struct twi_worker *worker)
{
	worker->self = twi_thread();
	if (worker->self->worker != worker)
		worker->outer = worker->self->worker;
	worker->self->worker = worker;
	worker->self->wheel_of = worker;
	twi_worker_own(worker, worker->self, NULL);
}

void twi_worker_own(struct twi_worker *worker, struct twi_thread *thread, void (*close)(void *))
{
	/*
	 * RELAXED: only this thread writes its own address to `owner`, so the comparison cannot be
	 * true by mistake.
	 */
	if (twi_load_relaxed(&worker->owner) == thread)
		return;
	/* RELAXED: as above. */
	twi_store_relaxed(&worker->owner, thread);
	worker->hold.worker = worker;
	worker->hold.close = close;
	twi_hold_open(thread, &worker->hold);
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
	twi_hold_close(twi_thread(), &worker->hold);
	/* RELAXED: as above. */
	twi_store_relaxed(&worker->owner, NULL);
}

struct twi_run *twi_run_of(const struct twi_thread *thread, const struct twi_worker *worker)
{
	struct twi_run *run = thread->run;

	while (run != NULL && run->worker != worker)
		run = run->outer;
	return run;
}

/*
 * Returns the state of an engine after its worker's thread has died. A state in which there is no
 * worker does not change.
 */
static uint32_t bereaved_state(uint32_t state)
{
	if (twi_state_accepts(state))
		return TW_ENGINE_FAILED;
	return state == TW_ENGINE_STOPPING ? TWI_STATE_ORPHAN : state;
}

TWI_WORKER_UNCHECKED void twi_worker_died(struct twi_worker *worker)
{
	struct twi_thread *thread = twi_thread();
	uint32_t state;

	/*
	 * The thread may be inside a callback of another engine. The runs of that engine end later,
	 * and must find this thread as their worker.
	 */
	if (thread->worker == worker)
		thread->worker = worker->outer;
	twi_worker_disown(worker);
	/*
	 * E10: if another thread finishes the engine from here on, it waits for a grace period, and
	 * so for this thread's last access.
	 */
	twi_rcu_enter();
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	state = twi_load_relaxed(&worker->state);
	TWI_TEST_POINT("died:seen");
	twi_tsan_release(&worker->state);
	/*
	 * E12: the state must change in a single step, because between two steps another thread
	 * could adopt the engine.
	 */
	while (!twi_cas_release(&worker->state, &state, bereaved_state(state)))
		;
	TWI_TEST_POINT("died:told");
	twi_futex_wake(&worker->state);
	twi_flush_notify(worker);
	twi_rcu_leave();
	twi_log(TW_LOG_ERROR, "a callback ended the worker's thread; the engine takes no more");
}
