/* SPDX-License-Identifier: MIT */
#include "worker/worker.h"

#include "base/atomic.h"

TWI_COLD void twi_lane_join(struct twi_worker *worker, uint32_t number)
{
	/* RELAXED: the worker may see it a turn late; a ticket (E8) or a grace period orders it. */
	(void)twi_fetch_or_relaxed(&worker->lanes_used, UINT64_C(1) << number);
	twi_store_relaxed(&worker->lane[number].known, true);
}
