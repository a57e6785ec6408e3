/* SPDX-License-Identifier: MIT */
/*
 * The deadline of a delay. A delay of 0 or less means the worker's next turn. The deadline is then
 * the last moment before the present tick. So it lies in a tick that is over, and by the usual
 * rules the timeout is due and the worker is woken.
 *
 * Tick 0 is over when the engine is created (engine/create.c), so there is always a moment before
 * the present tick.
 */
#ifndef TWI_WORKER_AT_ONCE_H
#define TWI_WORKER_AT_ONCE_H

#include "base/compiler.h"
#include "worker/worker.h"

static inline int64_t twi_at_once_ns(const struct twi_worker *worker)
{
	uint64_t since_ns = twi_since(twi_clock_now_ns(worker->clock), worker->epoch_ns);

	return worker->epoch_ns + (int64_t)(since_ns - since_ns % worker->tick_ns) - 1;
}

static inline int64_t twi_deadline_ns(const struct twi_worker *worker, int64_t delay_ns)
{
	return TWI_LIKELY(delay_ns > 0) ? twi_clock_after_ns(worker->clock, delay_ns)
					: twi_at_once_ns(worker);
}

#endif
