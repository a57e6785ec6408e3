/* SPDX-License-Identifier: MIT */
/*
 * The clock of an engine whose options name none. The engine gets a clock of its own that reads the
 * time stamp counter, on three conditions: the counter is trusted, its lag is small compared with a
 * tick, and the worker does not spin. Otherwise the engine gets CLOCK_MONOTONIC. Both clocks count
 * the same time.
 */
#ifndef TWI_CLOCK_AUTO_H
#define TWI_CLOCK_AUTO_H

#include "clock/tsc.h"

#include <stdint.h>

/*
 * The counter is used only if a tick is at least this long. The counter's lag, 8 us, is less than a
 * tenth of this.
 */
#define TWI_CLOCK_AUTO_TICK_NS UINT64_C(100000)

/*
 * Returns `own`, set up to read the counter, or the clock CLOCK_MONOTONIC. `own` must be zeroed,
 * and belong to the engine. The first call of the process measures the counter for a millisecond.
 */
struct tw_clock *twi_clock_auto(struct twi_clock_tsc *own, uint64_t tick_ns, uint64_t spin_ns);

#endif
