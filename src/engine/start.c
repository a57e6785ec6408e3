/* SPDX-License-Identifier: MIT */
/*
 * Start: explicit, or by the first schedule. Who makes the step to STARTING makes the thread;
 * others go on at once, their timeouts wait in ingress. If the thread cannot be made, the engine is
 * STALLED: it accepts nothing, keeps what came meanwhile, and the next start or schedule tries
 * again.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "thread/log.h"
#include "worker/life.h"
#include "worker/ticket.h"

#include <errno.h>
#include <pthread.h>

/* Nobody has made a worker, and nobody is about to. */
static bool startable(uint32_t life)
{
	return life == TWI_LIFE_NEW || life == TWI_LIFE_STALLED;
}

static void start_failed(void *argument)
{
	struct tw_engine *engine = argument;
	uint32_t life = TWI_LIFE_STARTING;

	TWI_TEST_POINT("start:failed");
	/* E12: or a stop came meanwhile, whose callers are told that no worker will do its work. */
	if (!twi_cas_acq_rel(&engine->worker.life, &life, TWI_LIFE_STALLED)) {
		/* E12: to the stop that adopts it; hands on the hook that another stop has left. */
		twi_store_release(&engine->worker.life, TWI_LIFE_ORPHAN);
		twi_futex_wake(&engine->worker.life);
	}
	twi_settle_notify(&engine->worker);
	twi_log(TW_LOG_ERROR, "the worker's thread could not be made");
}

int twi_engine_start(struct tw_engine *engine)
{
	/* RELAXED: a first guess. */
	uint32_t life = twi_load_relaxed(&engine->worker.life);
	int error;

	do {
		if (twi_life_accepts(life))
			return 0;
		if (!startable(life))
			return -ESHUTDOWN;
		/* E12: after whoever has tried before. */
	} while (!twi_cas_acquire(&engine->worker.life, &life, TWI_LIFE_STARTING));
	TWI_TEST_POINT("start:starting");
	/* There is no thread to be made: who polls first is the worker. */
	if (engine->worker.loop)
		return 0;
	/* The hook may end this thread. */
	pthread_cleanup_push(start_failed, engine);
	error = twi_engine_thread_make(engine);
	pthread_cleanup_pop(error != 0);
	return error;
}
