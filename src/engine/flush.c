/* SPDX-License-Identifier: MIT */
/*
 * Flush takes a ticket, wakes the worker, and waits until a turn that began later has ended (E13).
 * The wait also ends if the worker's thread cannot be made, at a stop, and if the worker's thread
 * dies. In each of these three cases a thread changes first the engine's state and then the epoch,
 * so that the flusher reads the state again.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "thread/futex.h"
#include "turn/poll.h"
#include "worker/left.h"

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
		/* E13: pairs with twi_flush_notify(). */
		epoch = twi_load_acquire(&worker->flush_epoch);
		/* E13: pairs with ticket_serve(). */
		if (ticket_served(twi_load_acquire(&worker->flush_done), ticket)) {
			twi_tsan_acquire(&worker->flush_done);
			return 0;
		}
		/*
		 * twi_engine_start decides whether there will be a worker. If an earlier start has
		 * failed, the timeouts that were accepted meanwhile wait for this start. A thread
		 * that ends the wait changes first the state and then the epoch. So start sees the
		 * new state here, or the wait below ends at once.
		 */
		error = twi_engine_start(engine);
		if (error != 0)
			return error;
		TWI_TEST_POINT("flush:waiting");
		if (twi_futex_wait(&worker->flush_epoch, epoch, until_ns) == -ETIMEDOUT)
			return -ETIMEDOUT;
	}
}

/* How long the owner waits before it looks again at a push that is not linked yet. */
#define LOOK_AGAIN_NS INT64_C(100000)

/*
 * Flushes on the owner of a loop. The owner must poll by itself, because the owner does the work
 * that the flush waits for.
 */
static TWI_WORKER_UNCHECKED int owner_flush(struct twi_worker *worker, int64_t until_ns)
{
	for (;;) {
		int64_t expired =
			twi_worker_poll(worker, twi_clock_now_ns(worker->clock), 0, INT64_MAX);
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
		/*
		 * RELAXED: only the owner changes flush_done, and that is this thread. So the load
		 * is exact, and nothing ends this wait early: it is only a sleep.
		 */
		(void)twi_futex_wait(&worker->flush_done, twi_load_relaxed(&worker->flush_done),
				     again_ns);
	}
}

int twi_engine_flush(struct tw_engine *engine, int64_t until_ns)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t ticket;

	if (worker->loop && twi_engine_owned(engine))
		return owner_flush(worker, until_ns);

	/*
	 * RELAXED: a caller that has scheduled, or has seen another thread's timeout scheduled,
	 * does not read NEW here. So a caller that reads NEW knows of no accepted timeout, and has
	 * nothing to wait for.
	 */
	if (twi_load_relaxed(&worker->state) == TW_ENGINE_NEW)
		return 0;
	/* E8: the request must be stored before the wake. */
	ticket = twi_fetch_add_seq_cst(&worker->flush_wanted, 1) + 1;
	twi_park_wake(&worker->park);
	return ticket_wait(engine, ticket, until_ns);
}
