/* SPDX-License-Identifier: MIT */
/*
 * Settle: takes a ticket, wakes the worker, waits until a turn that began later has ended (E13).
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "mech/futex.h"

#include <errno.h>

static bool ticket_served(uint32_t done, uint32_t ticket)
{
	return (int32_t)(done - ticket) >= 0;
}

/* NEW has nothing to settle; STALLED is started anew. */
static int worker_present(struct tw_engine *engine, bool *ret_present)
{
	uint32_t life = twi_load_acquire(&engine->worker.life); /* E12 */

	*ret_present = life != TWI_LIFE_NEW;
	return life == TWI_LIFE_STALLED ? twi_engine_start(engine) : 0;
}

int twi_engine_settle(struct tw_engine *engine, int64_t until_ns)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t ticket, done;
	bool present;
	int error = worker_present(engine, &present);

	if (error != 0 || !present)
		return error;
	/* E8: the reason, before the wake and before the look at the engine's life. */
	ticket = twi_fetch_add_seq_cst(&worker->settle_wanted, 1) + 1;
	twi_park_wake(&worker->park);
	while (twi_life_accepts(twi_load_seq_cst(&worker->life))) { /* E8 */
		done = twi_load_acquire(&worker->settle_done);      /* E13 */
		if (ticket_served(done, ticket))
			return 0;
		TWI_TEST_POINT("settle:waiting");
		if (twi_futex_wait(&worker->settle_done, done, until_ns) == -ETIMEDOUT)
			return -ETIMEDOUT;
	}
	return -ESHUTDOWN;
}
