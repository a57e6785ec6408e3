/* SPDX-License-Identifier: MIT */
/*
 * The cost of reading the library's clocks, in a loop. For the clock of the time stamp counter, the
 * cost includes the samples that this clock takes, one every 10 us.
 */
#include "harness/measure.h"
#include "harness/probe.h"

#include <math.h>
#include <tickwheel.h>

/* Returns NAN if the system has no such clock, or if the library has fallen back to another one. */
double probe_tw_clock(const struct probe *probe)
{
	enum tw_clock_type type = *(const enum tw_clock_type *)probe->parameter;
	struct tw_clock *clock = NULL;
	double ns = NAN;

	if (tw_clock_create(type, &clock) != 0)
		return NAN;
	if (tw_clock_type(clock) == (int)type) {
		int64_t started_ns = measure_now_ns();

		for (int i = 0; i < PROBE_OPS; i++)
			(void)tw_clock_now(clock);
		ns = (double)(measure_now_ns() - started_ns) / PROBE_OPS;
	}
	(void)tw_clock_destroy(clock);
	return ns;
}
