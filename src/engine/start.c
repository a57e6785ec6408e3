/* SPDX-License-Identifier: MIT */
/*
 * Starts an engine, by tw_engine_start or by the first schedule. The thread that changes the state
 * to STARTING makes the worker's thread. Other callers continue at once, and their timeouts wait in
 * the lanes. If the thread cannot be made, the engine is STALLED: it accepts no timeout, but keeps
 * those that were accepted meanwhile. The next start or schedule tries again.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "thread/log.h"
#include "worker/state.h"
#include "worker/ticket.h"

#include <errno.h>
#include <pthread.h>

/* Returns whether there is no worker, and no other thread is making one. */
static bool startable(uint32_t state)
{
	return state == TW_ENGINE_NEW || state == TW_ENGINE_STALLED;
}

static void start_failed(void *argument)
{
	struct tw_engine *engine = argument;
	uint32_t state = TW_ENGINE_STARTING;

	TWI_TEST_POINT("start:failed");
	/*
	 * E12: if the swap fails, a stop has closed the engine meanwhile. The callers of stop must
	 * learn that there will be no worker to finish the engine.
	 */
	if (!twi_cas_acq_rel(&engine->worker.state, &state, TW_ENGINE_STALLED)) {
		/*
		 * E12: releases to the stop that adopts the engine. The store also passes on the
		 * hook that the first stop has stored.
		 */
		twi_store_release(&engine->worker.state, TWI_STATE_ORPHAN);
		twi_futex_wake(&engine->worker.state);
	}
	twi_flush_notify(&engine->worker);
	twi_log(TW_LOG_ERROR, "the worker's thread could not be made");
}

int twi_engine_start(struct tw_engine *engine)
{
	/* RELAXED: a first guess that the compare-and-swap verifies. */
	uint32_t state = twi_load_relaxed(&engine->worker.state);
	int error;

	do {
		if (twi_state_accepts(state))
			return 0;
		if (!startable(state))
			return -ESHUTDOWN;
		/* E12: acquires the writes of the thread that tried to start before. */
	} while (!twi_cas_acquire(&engine->worker.state, &state, TW_ENGINE_STARTING));
	TWI_TEST_POINT("start:starting");
	/* In loop mode no thread is made: the first thread that polls is the worker. */
	if (engine->worker.loop)
		return 0;
	/* The thread hook may end this thread (pthread_exit). Then start_failed ends the start. */
	pthread_cleanup_push(start_failed, engine);
	error = twi_engine_thread_make(engine);
	pthread_cleanup_pop(error != 0);
	return error;
}
