/* SPDX-License-Identifier: MIT */
#include "worker/ticket.h"

#include "base/atomic.h"
#include "thread/futex.h"

void twi_flush_notify(struct twi_worker *worker)
{
	/*
	 * E13: pairs with flush's load. The change that the flusher waits for must come before this
	 * addition.
	 */
	(void)twi_fetch_add_release(&worker->flush_epoch, 1);
	twi_futex_wake(&worker->flush_epoch);
}

/*
 * Serves the tickets up to `ticket`. This is a function of its own, so that a turn without tickets
 * needs no stack frame.
 */
static TWI_NOINLINE void ticket_serve(struct twi_worker *worker, uint32_t ticket)
{
	twi_tsan_release(&worker->flush_done);
	/* E13: pairs with flush's load, so that a flusher sees the turn's writes. */
	twi_store_release(&worker->flush_done, ticket);
	TWI_TEST_POINT("flush:served");
	twi_flush_notify(worker);
}

void twi_flush_serve(struct twi_worker *worker, uint32_t ticket)
{
	/* RELAXED: the worker is the only writer. */
	if (twi_load_relaxed(&worker->flush_done) != ticket)
		ticket_serve(worker, ticket);
}
