/* SPDX-License-Identifier: MIT */
/*
 * Slack: a later deadline within what the kind allows, the begin of the roundest tick there. Everybody
 * else need know nothing of it, and a worker that is woken for earlier deadlines only is not woken for
 * it.
 */
#include "worker/worker.h"

#include "base/tick.h"

TWI_COLD int64_t twi_slacken(const struct twi_worker *worker, int64_t deadline_ns,
			     uint64_t slack_ns)
{
	uint64_t since_ns = twi_since(deadline_ns, worker->epoch_ns);
	uint64_t first, last;

	first = twi_due_tick(since_ns, worker->tick_ns);
	last = twi_due_tick(since_ns + slack_ns, worker->tick_ns);
	/* The end of time is not to be reached by slack, and is past it. */
	if (first == last || since_ns + slack_ns > (uint64_t)(TW_NEVER - 1 - worker->epoch_ns))
		return deadline_ns;
	last = twi_roundest_tick(first, last);
	return last == first ? deadline_ns
			     : twi_absolute_ns(worker->epoch_ns,
					       twi_boundary_ns(last - 1, worker->tick_ns));
}
