/* SPDX-License-Identifier: MIT */
/*
 * Time arithmetic that cannot wrap.
 *
 * An int64_t time counts nanoseconds of the engine's clock. A uint64_t time counts nanoseconds from
 * the engine's epoch, which is one tick before the engine's creation. Tick k ends at boundary k *
 * tick_ns.
 */
#ifndef TWI_BASE_TICK_H
#define TWI_BASE_TICK_H

#include <stdint.h>

#define TWI_NS_PER_S INT64_C(1000000000)

/* Stands for every negative deadline, because no clock reads less than 0. */
#define TWI_LONG_PAST_NS INT64_C(-1)

/*
 * Returns now + delay, at most INT64_MAX. `now_ns` must not be negative. A negative delay counts as
 * 0.
 */
static inline int64_t twi_deadline_after(int64_t now_ns, int64_t delay_ns)
{
	int64_t sum_ns;

	if (delay_ns <= 0)
		return now_ns;
	return __builtin_add_overflow(now_ns, delay_ns, &sum_ns) ? INT64_MAX : sum_ns;
}

/* Returns a - b, or 0 if b is later. A reading of a coarse clock may be before the epoch. */
static inline uint64_t twi_since(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? (uint64_t)a_ns - (uint64_t)b_ns : 0;
}

/*
 * Returns the tick with the first boundary after `since_ns`. A deadline exactly on a boundary waits
 * for the next boundary. The reason: a deadline is counted from a clock reading, which is rounded
 * down to a nanosecond. So the deadline may be too early by a fraction of a nanosecond.
 */
static inline uint64_t twi_due_tick(uint64_t since_ns, uint64_t tick_ns)
{
	return since_ns / tick_ns + 1;
}

/*
 * Returns the tick in [first, last] that is divisible by the greatest power of two. So callers with
 * overlapping ranges often get the same tick.
 */
static inline uint64_t twi_roundest_tick(uint64_t first, uint64_t last)
{
	uint64_t differ = (first - 1) ^ last;

	return last & ~((UINT64_C(1) << (63 - __builtin_clzll(differ))) - 1);
}

/* Returns the time of boundary `tick`, in nanoseconds since the epoch, at most UINT64_MAX. */
static inline uint64_t twi_boundary_ns(uint64_t tick, uint64_t tick_ns)
{
	uint64_t boundary_ns;

	return __builtin_mul_overflow(tick, tick_ns, &boundary_ns) ? UINT64_MAX : boundary_ns;
}

/* Returns epoch + since, at most INT64_MAX. */
static inline int64_t twi_absolute_ns(int64_t epoch_ns, uint64_t since_ns)
{
	uint64_t room_ns = (uint64_t)INT64_MAX - (uint64_t)epoch_ns;

	return since_ns > room_ns ? INT64_MAX : (int64_t)((uint64_t)epoch_ns + since_ns);
}

#endif
