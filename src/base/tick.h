/* SPDX-License-Identifier: MIT */
/*
 * Time arithmetic that cannot wrap.
 *
 * Times are int64_t nanoseconds of the engine's clock; inside the engine they count from the
 * engine's creation (its epoch) as uint64_t. Tick k ends at boundary k × tick_ns.
 */
#ifndef TWI_BASE_TICK_H
#define TWI_BASE_TICK_H

#include <stdint.h>

#define TWI_NS_PER_S INT64_C(1000000000)

/* now + delay, held at INT64_MAX; `now` is not negative, a negative delay is none. */
static inline int64_t twi_deadline_after(int64_t now_ns, int64_t delay_ns)
{
	int64_t sum_ns;

	if (delay_ns <= 0)
		return now_ns;
	return __builtin_add_overflow(now_ns, delay_ns, &sum_ns) ? INT64_MAX : sum_ns;
}

/* a − b, or 0 where b is later: a coarse clock may read before the epoch. */
static inline uint64_t twi_since(int64_t a_ns, int64_t b_ns)
{
	return a_ns > b_ns ? (uint64_t)a_ns - (uint64_t)b_ns : 0;
}

/*
 * The tick whose boundary is the first one after `since_ns`: a deadline exactly on a boundary waits
 * for the next, so that no reading of the clock inside a tick can make a timeout early.
 */
static inline uint64_t twi_due_tick(uint64_t since_ns, uint64_t tick_ns)
{
	return since_ns / tick_ns + 1;
}

/*
 * Of the ticks first to last, the one that is divisible by the greatest power of two: whoever has to
 * choose in the same neighbourhood chooses the same.
 */
static inline uint64_t twi_roundest_tick(uint64_t first, uint64_t last)
{
	uint64_t differ = (first - 1) ^ last;

	return last & ~((UINT64_C(1) << (63 - __builtin_clzll(differ))) - 1);
}

/* When boundary `tick` is, in nanoseconds since the epoch; held at UINT64_MAX. */
static inline uint64_t twi_boundary_ns(uint64_t tick, uint64_t tick_ns)
{
	uint64_t boundary_ns;

	return __builtin_mul_overflow(tick, tick_ns, &boundary_ns) ? UINT64_MAX : boundary_ns;
}

/* epoch + since, held at INT64_MAX. */
static inline int64_t twi_absolute_ns(int64_t epoch_ns, uint64_t since_ns)
{
	uint64_t room_ns = (uint64_t)(INT64_MAX - epoch_ns);

	return since_ns > room_ns ? INT64_MAX : epoch_ns + (int64_t)since_ns;
}

#endif
