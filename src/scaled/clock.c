/* SPDX-License-Identifier: MIT */
/*
 * The clock of a scaled kind's queue. It shows the time of the engine's clock. No thread sleeps by
 * this clock, because the driver polls the queue when it is needed.
 */
#include "scaled/clock.h"

static struct tw_clock *front_of(struct tw_clock *clock)
{
	return TWI_CONTAINER_OF(clock, struct twi_clock_follow, clock)->front;
}

static int64_t follow_now_ns(struct tw_clock *clock)
{
	return twi_clock_now_ns(front_of(clock));
}

static int64_t follow_futex_until_ns(struct tw_clock *clock, int64_t until_ns)
{
	(void)clock;
	return until_ns;
}

static enum tw_clock_type follow_type(struct tw_clock *clock)
{
	struct tw_clock *front = front_of(clock);

	return front->ops->type(front);
}

static const struct twi_clock_ops follow_ops = {
	.now_ns = follow_now_ns,
	.futex_until_ns = follow_futex_until_ns,
	.type = follow_type,
};

void twi_clock_follow_init(struct twi_clock_follow *clock, struct tw_clock *front)
{
	clock->clock = (struct tw_clock){
		.ops = &follow_ops, .lag_ns = front->lag_ns, .resolution_ns = front->resolution_ns};
	clock->front = front;
}
