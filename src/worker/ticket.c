/* SPDX-License-Identifier: MIT */
#include "worker/ticket.h"

#include "base/atomic.h"
#include "thread/futex.h"

void twi_settle_notify(struct twi_worker *worker)
{
	/* E13: pairs with settle's load. The change must come before this step. */
	(void)twi_fetch_add_release(&worker->settle_epoch, 1);
	twi_futex_wake(&worker->settle_epoch);
}

/* A function of its own, so that a turn without tickets needs no stack frame. */
static TWI_NOINLINE void ticket_serve(struct twi_worker *worker, uint32_t ticket)
{
	twi_tsan_release(&worker->settle_done);
	/* E13: pairs with settle's load, so that a settler sees the turn's writes. */
	twi_store_release(&worker->settle_done, ticket);
	TWI_TEST_POINT("settle:served");
	twi_settle_notify(worker);
}

void twi_settle_serve(struct twi_worker *worker, uint32_t ticket)
{
	/* RELAXED: the worker is the only writer. */
	if (twi_load_relaxed(&worker->settle_done) != ticket)
		ticket_serve(worker, ticket);
}
