/* SPDX-License-Identifier: MIT */
/*
 * Loop mode: the owner is the one thread that may poll. It is the worker during a poll, and may
 * touch the wheel between its polls, too.
 *
 * The engine's state holds the role: in RUNNING there is an owner, in STARTING there is none. The
 * step between the two (E12) hands over all of the worker's data. `owner` only lets a thread find
 * out that it is the owner. A thread may own several engines. It remembers the last one that it
 * touched (`wheel_of`). If it turns to another one, twi_owner_again checks once.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "ingress/transfer.h"
#include "thread/rcu.h"
#include "turn/direct.h"
#include "worker/left.h"
#include "worker/role.h"
#include "worker/state.h"

#include <errno.h>

/* The most batches that a new owner transfers before its first call goes on. */
enum { PUSHED_BATCHES = 100 };

bool twi_engine_owned(const struct tw_engine *engine)
{
	/* RELAXED: a thread finds itself there only if it has written itself there. */
	return twi_load_relaxed(&engine->worker.owner) == twi_thread();
}

bool twi_engine_inside(const struct tw_engine *engine)
{
	const struct twi_thread *thread = twi_thread();

	return twi_worker_inside(&engine->worker) || twi_run_of(thread, &engine->worker) != NULL;
}

static int owner_become(struct tw_engine *engine)
{
	struct twi_worker *worker = &engine->worker;
	/* RELAXED: a first guess. */
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
	/* RELAXED: only a thread that has written itself here finds itself. */
	twi_store_relaxed(&worker->owner, twi_thread());
	twi_thread()->wheel_of = worker;
	return 0;
}

/*
 * Moves into the wheel what the new owner has pushed before. Of equal deadlines it must come before
 * what the owner inserts from now on. The bound is for a flood of other threads.
 */
static TWI_WORKER_UNCHECKED void pushed_take(struct twi_worker *worker)
{
	unsigned left = TWI_LEFT_MORE;

	worker->self = twi_thread();
	for (int batches = 0; batches < PUSHED_BATCHES && (left & TWI_LEFT_MORE) != 0; batches++)
		left = twi_worker_transfer(worker, worker->transfer_batch);
}

int twi_engine_own(struct tw_engine *engine)
{
	int error;

	if (twi_engine_owned(engine))
		return 0;
	error = owner_become(engine);
	if (error == 0)
		pushed_take(&engine->worker);
	return error;
}

TWI_COLD bool twi_owner_again(struct tw_handle handle, struct twi_thread *thread)
{
	struct twi_node *node = twi_node_of_handle(handle);
	struct twi_worker *worker;
	bool ours;

	/* E10: inside a section in which the timeout is alive, the engine cannot be freed. */
	twi_rcu_enter();
	worker = twi_node_worker(node);
	/* E4: the timeout is pending, so the engine exists. RELAXED: a thread finds only itself. */
	ours = twi_owned_word(twi_load_acquire(&node->word), handle.generation) &&
	       twi_load_relaxed(&worker->owner) == thread;
	twi_rcu_leave();
	if (ours)
		thread->wheel_of = worker;
	return ours;
}

/*
 * Returns the state without an owner. A stop that waits for the owner must then do the work itself.
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
