/* SPDX-License-Identifier: MIT */
/*
 * The delays of the workloads that peers also run. The peers that are programs use the same delays
 * (perf/README.md).
 */
#ifndef PERF_HARNESS_SHAPE_H
#define PERF_HARNESS_SHAPE_H

#include "harness/random.h"

#define SCHEDULE_CANCEL_DELAY_NS INT64_C(30000000000)

#define LIVE_RING_FROM_US 30000000u
#define LIVE_RING_TO_US 60000000u

#define FIRE_FROM_US 1000u
#define FIRE_TO_US 1000000u
/* Long enough for the slowest peers, which take some 6 us for each of millions of timeouts. */
#define FIRE_WAIT_NS INT64_C(120000000000)

#define LIGHT_FROM_US 1000u
#define LIGHT_TO_US 50000u
#define LIGHT_PERIOD_NS INT64_C(1000000)
#define LIGHT_WAIT_NS INT64_C(10000000000)

#define LOOP_FROM_US 60000000u
#define LOOP_TO_US 3600000000u

/* A workload that clock reads would distort measures the lateness of every eighth timeout only. */
enum { SHAPE_LATENESS_EVERY = 8 };

/*
 * Of so many cancelled timeouts, one is checked: before the cancel, the harness asks the peer
 * whether the timeout is pending.
 */
enum { SHAPE_ASKED_EVERY = 64 };

static inline int64_t live_ring_delay_ns(struct random *random)
{
	return random_delay_ns(random, LIVE_RING_FROM_US, LIVE_RING_TO_US);
}

static inline int64_t fire_delay_ns(struct random *random)
{
	return random_delay_ns(random, FIRE_FROM_US, FIRE_TO_US);
}

static inline int64_t light_delay_ns(struct random *random)
{
	return random_delay_ns(random, LIGHT_FROM_US, LIGHT_TO_US);
}

static inline int64_t loop_delay_ns(struct random *random)
{
	return random_delay_ns(random, LOOP_FROM_US, LOOP_TO_US);
}

#endif
