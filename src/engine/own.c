/* SPDX-License-Identifier: MIT */
/*
 * Loop mode: the engine's owner. A thread is the owner, and may touch the wheel, while it is in a
 * bracket: during a poll, or from tw_loop_enter to tw_loop_exit. Outside of a bracket every thread
 * is a producer, even the latest owner.
 *
 * The engine's state says whether there is an owner: in RUNNING a bracket is open, in STARTING
 * there is none. The swap from one state to the other (E12) hands over all of the worker's data,
 * and detects a second bracket. `owner` only lets a thread recognize its own bracket. Only the
 * thread that opened a bracket closes it, and clears its own wheel_of. If the thread ends, its exit
 * handler closes the bracket (thread/thread.c). So if a new thread's struct twi_thread has the same
 * address, the new thread is not taken for the owner.
 *
 * A thread may be in brackets of several engines. Its wheel_of names only the engine that it used
 * last. When it uses another one, twi_owner_again checks once whether the thread owns that engine,
 * too.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "ingress/far.h"
#include "ingress/lanes.h"
#include "ingress/transfer.h"
#include "thread/log.h"
#include "thread/rcu.h"
#include "turn/direct.h"
#include "worker/left.h"
#include "worker/role.h"
#include "worker/state.h"

#include <errno.h>

/* How many batches a thread transfers at most when it opens a bracket. */
enum { PUSHED_BATCHES = 100 };

bool twi_engine_owned(const struct tw_engine *engine)
{
	/*
	 * RELAXED: only this thread writes its own address to `owner`, so the comparison cannot be
	 * true by mistake.
	 */
	return twi_load_relaxed(&engine->worker.owner) == twi_thread();
}

static struct tw_engine *engine_of(struct twi_worker *worker)
{
	return TWI_CONTAINER_OF(worker, struct tw_engine, worker);
}

/* Returns whether the thread is inside a callback of one of the engine's scaled kinds. */
static bool kind_inside(const struct tw_engine *engine, const struct twi_run *run)
{
	while (run != NULL && engine_of(run->worker)->front != engine)
		run = run->outer;
	return run != NULL;
}

bool twi_engine_inside(const struct tw_engine *engine)
{
	const struct twi_thread *thread = twi_thread();

	return twi_worker_inside(&engine->worker) || twi_run_of(thread, &engine->worker) != NULL ||
	       kind_inside(engine, thread->run);
}

/* Closes a bracket that is still open when its thread ends. */
static TWI_COLD void bracket_left(void *worker)
{
	twi_log(TW_LOG_WARNING, "a thread ended inside a loop's bracket; the bracket was closed");
	twi_engine_leave(worker);
}

int twi_engine_own(struct tw_engine *engine)
{
	struct twi_worker *worker = &engine->worker;
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	uint32_t state = twi_load_relaxed(&worker->state);

	do {
		if (state == TW_ENGINE_RUNNING)
			return -EBUSY;
		if (state != TW_ENGINE_NEW && state != TW_ENGINE_STARTING)
			return -ESHUTDOWN;
		TWI_TEST_POINT("own:seen");
		/* E12: acquires the writes of the previous owner. */
	} while (!twi_cas_acquire(&worker->state, &state, TW_ENGINE_RUNNING));
	twi_tsan_acquire(&worker->state);
	twi_worker_own(worker, twi_thread(), bracket_left);
	return 0;
}

TWI_WORKER_UNCHECKED void twi_engine_pushed_take(struct tw_engine *engine)
{
	struct twi_worker *worker = &engine->worker;
	const struct twi_lane *lane = twi_lane_made_of(worker, twi_thread());

	if (twi_lane_idle(lane))
		return;
	worker->self = twi_thread();
	/*
	 * Timeouts that are still fresh from the previous bracket were scheduled earlier, so they
	 * must enter the wheel first.
	 */
	twi_fresh_flush(worker);
	for (int batches = 0; batches < PUSHED_BATCHES && !twi_lane_idle(lane); batches++)
		if ((twi_worker_transfer(worker, worker->transfer_batch) & TWI_LEFT_MORE) == 0)
			return;
}

TWI_COLD bool twi_owner_again(struct tw_handle handle, struct twi_thread *thread)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	bool ours;

	/* E10: inside a section in which the timeout is alive, the engine cannot be freed. */
	twi_rcu_enter();
	worker = twi_node_worker(node);
	/*
	 * E4: if the state word is that of a pending timeout, the engine exists. RELAXED: only this
	 * thread writes its own address to `owner`.
	 */
	ours = twi_owned_word(twi_load_acquire(&node->word), handle.generation) &&
	       twi_load_relaxed(&worker->owner) == thread;
	twi_rcu_leave();
	if (ours)
		thread->wheel_of = worker;
	return ours;
}

/*
 * Returns the state after the owner has left. If a stop has closed the engine, a stop must then do
 * the work itself.
 */
static uint32_t left_state(uint32_t state)
{
	return state == TW_ENGINE_STOPPING ? TWI_STATE_ORPHAN : TW_ENGINE_STARTING;
}

void twi_engine_leave(struct tw_engine *engine)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t state = TW_ENGINE_RUNNING;

	twi_worker_disown(worker);
	TWI_TEST_POINT("own:leaving");
	twi_tsan_release(&worker->state);
	/* E12: releases to the next owner, or to the stop that adopts the engine. */
	while (!twi_cas_release(&worker->state, &state, left_state(state)))
		;
	if (state == TW_ENGINE_STOPPING)
		twi_futex_wake(&worker->state);
}
