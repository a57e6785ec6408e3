/* SPDX-License-Identifier: MIT */
/*
 * Settle: takes a ticket, wakes the worker, waits until a turn that began later has ended (E13).
 * Whatever else may end the wait (the thread cannot be made, stop, the worker's death) changes the
 * engine's life first and the epoch then, and is looked at again.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "thread/futex.h"
#include "turn/poll.h"
#include "worker/left.h"
#include "worker/life.h"

#include <errno.h>

static bool ticket_served(uint32_t done, uint32_t ticket)
{
	return (int32_t)(done - ticket) >= 0;
}

static int ticket_wait(struct tw_engine *engine, uint32_t ticket, int64_t until_ns)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t epoch;
	int error;

	for (;;) {
		epoch = twi_load_acquire(&worker->settle_epoch);                     /* E13 */
		if (ticket_served(twi_load_acquire(&worker->settle_done), ticket)) { /* E13 */
			twi_tsan_acquire(&worker->settle_done);
			return 0;
		}
		/*
		 * Whether waiting makes sense. What came while a start failed waits for the next one:
		 * this. Who ends the wait changes the life first and the epoch then: we have acquired
		 * that, or do not wait for long.
		 */
		error = twi_engine_start(engine);
		if (error != 0)
			return error;
		TWI_TEST_POINT("settle:waiting");
		if (twi_futex_wait(&worker->settle_epoch, epoch, until_ns) == -ETIMEDOUT)
			return -ETIMEDOUT;
	}
}

/* How soon the owner looks again at a push that is not linked. */
#define LOOK_AGAIN_NS INT64_C(100000)

/* The owner of a loop is the worker that settle would wait for. */
static TWI_WORKER_UNCHECKED int owner_settle(struct twi_worker *worker, int64_t until_ns)
{
	for (;;) {
		int64_t expired = twi_worker_poll(worker, twi_clock_now_ns(worker->clock), 0);
		int64_t again_ns;

		if (expired < 0)
			return (int)expired;
		if ((worker->poll_left & (TWI_LEFT_MORE | TWI_LEFT_CUT)) == 0)
			return 0;
		if ((worker->poll_left & TWI_LEFT_CUT) == 0)
			continue;
		again_ns = twi_until_ns(LOOK_AGAIN_NS);
		if (again_ns > until_ns)
			return -ETIMEDOUT;
		/* RELAXED: nobody changes it: a sleep. */
		(void)twi_futex_wait(&worker->settle_done, twi_load_relaxed(&worker->settle_done),
				     again_ns);
	}
}

int twi_engine_settle(struct tw_engine *engine, int64_t until_ns)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t ticket;

	if (worker->loop && twi_engine_owned(engine))
		return owner_settle(worker, until_ns);

	/* RELAXED: who has scheduled, or knows of it, sees another life. Nothing was ever accepted. */
	if (twi_load_relaxed(&worker->life) == TWI_LIFE_NEW)
		return 0;
	/* E8: the reason, before the wake. */
	ticket = twi_fetch_add_seq_cst(&worker->settle_wanted, 1) + 1;
	twi_park_wake(&worker->park);
	return ticket_wait(engine, ticket, until_ns);
}
