/* SPDX-License-Identifier: MIT */
/*
 * The clock of mutex-heap and mutex-wheel (the rivals): the cheapest clock with which no timeout is
 * early. The peers named `-monotonic` read CLOCK_MONOTONIC instead, so that tickwheel can be
 * compared with its rivals by either clock.
 *
 * CLOCK_MONOTONIC_COARSE is the time that the kernel noted at its last tick. A reading costs a
 * quarter of a reading of CLOCK_MONOTONIC. The kernel notes whole steps, so a reading is up to two
 * steps behind, and more if a tick comes late. Therefore three steps are added to each deadline, as
 * for tickwheel's own coarse clock. The workers read CLOCK_MONOTONIC. In `light`, which measures
 * lateness, the producers read it too.
 */
#ifndef PERF_PEER_RIVAL_CLOCK_H
#define PERF_PEER_RIVAL_CLOCK_H

#include "peer/peer.h"
#include "workload/workload.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

enum { RIVAL_LAG_STEPS = 3 };
#define RIVAL_NS_PER_S INT64_C(1000000000)

static struct {
	bool monotonic;
	clockid_t id;
	int64_t lag_ns;
} rival_clock;

static inline int64_t rival_ns(struct timespec time)
{
	return (int64_t)time.tv_sec * RIVAL_NS_PER_S + time.tv_nsec;
}

static int rival_clock_open(const struct peer_task *task)
{
	struct timespec step;

	rival_clock.id = CLOCK_MONOTONIC;
	if (rival_clock.monotonic || task->workload->kind == WORKLOAD_KIND_LIGHT)
		return 0;
	if (clock_getres(CLOCK_MONOTONIC_COARSE, &step))
		return -errno;
	rival_clock.id = CLOCK_MONOTONIC_COARSE;
	rival_clock.lag_ns = RIVAL_LAG_STEPS * rival_ns(step);
	return 0;
}

static inline int64_t rival_deadline_ns(int64_t delay_ns)
{
	struct timespec now;

	clock_gettime(rival_clock.id, &now);
	return rival_ns(now) + rival_clock.lag_ns + delay_ns;
}

#endif
