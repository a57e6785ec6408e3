/* SPDX-License-Identifier: MIT */
/*
 * Stop closes the engine by one compare-and-swap (the linearization point), and waits until the
 * engine is finished. The worker finishes it. If there is no worker, a new thread does. In loop
 * mode, or if no thread can be made, the caller of stop finishes the engine.
 */
#include "base/atomic.h"
#include "base/probe.h"
#include "engine/engine.h"
#include "thread/futex.h"
#include "turn/finish.h"
#include "worker/role.h"
#include "worker/state.h"
#include "worker/ticket.h"

#include <errno.h>

/*
 * Returns the state that stop changes this state to. A state that is already closed stays as it is.
 */
static uint32_t closed_state(uint32_t state, bool loop)
{
	switch (state) {
	case TW_ENGINE_NEW:
		return TW_ENGINE_STOPPED;
	case TW_ENGINE_STARTING:
		return loop ? TWI_STATE_ORPHAN : TWI_STATE_STOPPING_STARTING;
	case TW_ENGINE_RUNNING:
		return TW_ENGINE_STOPPING;
	case TW_ENGINE_STALLED:
	case TW_ENGINE_FAILED:
		return TWI_STATE_ORPHAN;
	default:
		return state;
	}
}

/*
 * Closes the engine, if this is the first stop. The first stop stores its hook before it closes the
 * engine. Later stops do nothing here.
 */
static void engine_close(struct tw_engine *engine, tw_unexpired_hook *on_unexpired, void *context)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t state;
	bool claimed = false;

	/* RELAXED: the change of state below publishes the hook. */
	if (!twi_cas_relaxed(&engine->stop_claimed, &claimed, true))
		return;
	worker->on_unexpired = on_unexpired;
	worker->hand_back_context = context;
	TWI_TEST_POINT("stop:claimed");
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	state = twi_load_relaxed(&worker->state);
	twi_tsan_release(&worker->state);
	/* E12: publishes the hook. E8: the new state must be stored before the wake. */
	while (!twi_cas_seq_cst(&worker->state, &state, closed_state(state, worker->loop)))
		;
	TWI_PROBE1(stop, worker);
	TWI_TEST_POINT("stop:closed");
	twi_futex_wake(&worker->state);
	twi_flush_notify(worker);
	twi_park_wake(&worker->park);
}

static void finish_abandoned(void *argument)
{
	twi_worker_died(argument);
}

/*
 * Adopts an engine that has no worker. Returns true if the engine is finished, or another thread
 * finishes it. Returns false if the time is up.
 */
static bool orphan_take(struct tw_engine *engine, int64_t until_ns)
{
	uint32_t state = TWI_STATE_ORPHAN;
	bool in_time = true;

	/* E12: one thread wins, and acquires all writes of the last worker. */
	if (!twi_cas_acquire(&engine->worker.state, &state, TW_ENGINE_STOPPING))
		return true;
	/*
	 * A hand-back that runs here may end this thread (pthread_exit). Then the next stop adopts
	 * the engine.
	 */
	pthread_cleanup_push(finish_abandoned, &engine->worker);
	if (engine->worker.loop || twi_engine_thread_make(engine) != 0)
		in_time = twi_worker_finish(&engine->worker, until_ns);
	pthread_cleanup_pop(0);
	/* Leaves the engine to another stop, which may be waiting already. */
	if (!in_time)
		twi_engine_leave(engine);
	return in_time;
}

/*
 * Finishes a loop's engine on its owner, because the owner is the worker that stop would wait for.
 * Returns false if the time is up; the thread is then still the owner.
 */
static bool owner_finish(struct tw_engine *engine, int64_t until_ns)
{
	bool in_time;

	pthread_cleanup_push(finish_abandoned, &engine->worker);
	in_time = twi_worker_finish(&engine->worker, until_ns);
	pthread_cleanup_pop(0);
	return in_time;
}

/*
 * Makes the next step to STOPPED: adopts the engine, finishes it, or waits. Returns false if the
 * time is up.
 */
static bool stop_step(struct tw_engine *engine, uint32_t state, int64_t until_ns)
{
	struct twi_worker *worker = &engine->worker;

	if (state == TWI_STATE_ORPHAN)
		return orphan_take(engine, until_ns);
	if (worker->loop && twi_engine_owned(engine))
		return owner_finish(engine, until_ns);
	return twi_futex_wait(&worker->state, state, until_ns) != -ETIMEDOUT;
}

int twi_engine_stop(struct tw_engine *engine, tw_unexpired_hook *on_unexpired, void *context,
		    int64_t until_ns)
{
	uint32_t state;

	engine_close(engine, on_unexpired, context);
	/* E12: acquires everything that the engine did before STOPPED. */
	while ((state = twi_load_acquire(&engine->worker.state)) != TW_ENGINE_STOPPED)
		if (!stop_step(engine, state, until_ns))
			return -ETIMEDOUT;
	twi_tsan_acquire(&engine->worker.state);
	return 0;
}
