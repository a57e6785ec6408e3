/* SPDX-License-Identifier: MIT */
/*
 * Slack moves a deadline to a later one that the kind allows: the begin of the roundest tick there.
 * No other code needs to know of it. The worker is woken only for deadlines that are earlier, so it
 * is not woken for this one.
 */
#include "expiry/slack.h"

#include "base/tick.h"

TWI_COLD int64_t twi_slacken(const struct twi_worker *worker, int64_t deadline_ns,
			     uint64_t slack_ns)
{
	uint64_t since_ns = twi_since(deadline_ns, worker->epoch_ns);
	uint64_t end_ns = (uint64_t)(TW_NEVER - 1) - (uint64_t)worker->epoch_ns;
	uint64_t first, last;

	/* Slack must not reach the end of time, nor go beyond it. */
	if (since_ns > end_ns || slack_ns > end_ns - since_ns)
		return deadline_ns;
	first = twi_due_tick(since_ns, worker->tick_ns);
	last = twi_due_tick(since_ns + slack_ns, worker->tick_ns);
	/* Counted from the engine's creation, one tick after the epoch. */
	last = twi_roundest_tick(first - 1, last - 1) + 1;
	return last == first ? deadline_ns
			     : twi_absolute_ns(worker->epoch_ns,
					       twi_boundary_ns(last - 1, worker->tick_ns));
}
