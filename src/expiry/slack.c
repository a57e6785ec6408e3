/* SPDX-License-Identifier: MIT */
/*
 * Moves a deadline to a later one that the slack of its kind allows: the beginning of the roundest
 * tick in that range. Timeouts with slack then often share a tick and a wake-up. The rest of the
 * code sees only the new deadline, so the worker is not woken for the old one.
 */
#include "expiry/slack.h"

#include "base/tick.h"

TWI_COLD int64_t twi_slacken(const struct twi_worker *worker, int64_t deadline_ns,
			     uint64_t slack_ns)
{
	uint64_t since_ns = twi_since(deadline_ns, worker->epoch_ns);
	uint64_t end_ns = (uint64_t)(TW_NEVER - 1) - (uint64_t)worker->epoch_ns;
	uint64_t first, last;

	/* The new deadline must stay below TW_NEVER. */
	if (since_ns > end_ns || slack_ns > end_ns - since_ns)
		return deadline_ns;
	first = twi_due_tick(since_ns, worker->tick_ns);
	last = twi_due_tick(since_ns + slack_ns, worker->tick_ns);
	/* Ticks are counted from the engine's creation, which is one tick after the epoch. */
	last = twi_roundest_tick(first - 1, last - 1) + 1;
	return last == first ? deadline_ns
			     : twi_absolute_ns(worker->epoch_ns,
					       twi_boundary_ns(last - 1, worker->tick_ns));
}
