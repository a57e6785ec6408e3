/* SPDX-License-Identifier: MIT */
/*
 * The factor of an engine's scaled kinds (protocol: scaled.h). A change stores the new factor, and
 * makes each kind take a turn. This turn computes anew when the next turn is due.
 */
#include "base/atomic.h"
#include "base/test_point.h"
#include "engine/misuse.h"
#include "scaled/scaled.h"

#include <errno.h>
#include <string.h>

static uint64_t double_bits(double value)
{
	uint64_t bits;

	memcpy(&bits, &value, sizeof bits);
	return bits;
}

/*
 * Packs a factor into the engine's field. The engine's memory starts as zeros, and its first factor
 * must be 1. So the bits are stored XORed with those of 1.0.
 */
static uint64_t factor_pack(double factor)
{
	return double_bits(factor) ^ double_bits(1.0);
}

static double factor_unpack(uint64_t word)
{
	uint64_t bits = word ^ double_bits(1.0);
	double factor;

	memcpy(&factor, &bits, sizeof factor);
	return factor;
}

static int engine_check(const struct tw_engine *engine)
{
	if (engine == NULL)
		return -EINVAL;
	return twi_engine_of_parent(engine) ? twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD) : 0;
}

static void kinds_drive(struct tw_engine *engine)
{
	/* E151: acquires the links of the list of seats. */
	struct twi_seat *seat = twi_load_acquire(&engine->seats);

	for (; seat != NULL; seat = seat->next)
		/*
		 * RELAXED: if the owner has left the seat meanwhile, the drive does nothing,
		 * because the seat's handles then name ended timeouts.
		 */
		if (twi_load_relaxed(&seat->owner) != NULL)
			twi_seat_drive(seat);
}

int tw_scaled_factor_set(struct tw_engine *engine, double factor)
{
	int error = engine_check(engine);

	if (error != 0)
		return error;
	if (factor != factor)
		return -EINVAL;
	if (factor < 0 || factor > 1)
		return -ERANGE;
	/*
	 * The linearization point of a change. E151: must come before the walk over the seats;
	 * pairs with timers_make. Adding 0.0 turns -0.0 into 0.0.
	 */
	(void)twi_exchange_acq_rel(&engine->factor, factor_pack(factor + 0.0));
	TWI_TEST_POINT("scaled:factor");
	kinds_drive(engine);
	return 0;
}

int tw_scaled_factor_get(struct tw_engine *engine, double *ret_factor)
{
	int error = ret_factor != NULL ? engine_check(engine) : -EINVAL;

	if (error != 0)
		return error;
	/* RELAXED: this thread reads nothing that was published with the factor. */
	*ret_factor = factor_unpack(twi_load_relaxed(&engine->factor));
	return 0;
}

/*
 * Returns factor * range: never more than `range_ns` and never less than 0, however the product is
 * rounded.
 */
static int64_t part_ns(int64_t range_ns, double factor)
{
	int64_t part_ns;

	if (factor >= 1)
		return range_ns;
	part_ns = (int64_t)(factor * (double)range_ns);
	return part_ns < range_ns ? part_ns : range_ns;
}

int64_t twi_scaled_ahead_ns(const struct tw_scaled *scaled)
{
	int64_t range_ns = scaled->most_ns - scaled->least_ns;
	/*
	 * RELAXED: a turn calls this after it has swapped `asked`, which orders this load (E150).
	 * tw_scaled_deadline needs no order.
	 */
	double factor = factor_unpack(twi_load_relaxed(&scaled->engine->factor));

	return range_ns - part_ns(range_ns, factor);
}
