/* SPDX-License-Identifier: MIT */
/*
 * The limit of pending timeouts. Each of them holds a slot of the limit. The slot is taken before
 * the push, and given back at most once, by the thread that ends the timeout. Only engines with a
 * limit call these functions.
 *
 * A caller that is rejected never holds a slot, not even briefly, so it cannot make another caller
 * fail. A running callback holds its timeout's slot, and the first timeout that it schedules takes
 * the slot over. A chain passes its slot on only in its last run. A timeout that stop hands back
 * keeps its slot, because nothing can be scheduled afterwards.
 */
#include "expiry/limit.h"

#include "base/atomic.h"
#include "worker/role.h"

/* Takes a slot. RELAXED, load and swap: a count that publishes nothing. */
bool twi_limit_take(struct twi_worker *worker, struct twi_thread *thread)
{
	struct twi_run *run = twi_run_of(thread, worker);
	uint64_t taken;

	if (run != NULL && (run->marks & TWI_RUN_OWNS_SLOT) != 0) {
		run->marks &= (uint8_t)~TWI_RUN_OWNS_SLOT;
		return true;
	}
	taken = twi_load_relaxed(&worker->slots_taken);
	do {
		if (taken >= worker->pending_limit) {
			TWI_TEST_POINT("limit:full");
			return false;
		}
	} while (!twi_cas_relaxed(&worker->slots_taken, &taken, taken + 1));
	return true;
}

void twi_limit_give(struct twi_worker *worker)
{
	twi_limit_give_many(worker, 1);
}

void twi_limit_give_many(struct twi_worker *worker, uint64_t count)
{
	/* RELAXED: a count, which publishes nothing. */
	(void)twi_fetch_sub_relaxed(&worker->slots_taken, count);
}
