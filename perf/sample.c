/* SPDX-License-Identifier: MIT */
/*
 * What one repeat of a workload has measured: nothing, to begin with.
 */
#include "sample.h"

#include <math.h>

struct sample sample_empty(void)
{
	return (struct sample){
		.ns_per_op = NAN,
		.cpu_ns_per_op = NAN,
		.clock_reads_per_op = NAN,
		.accounted_bytes_per_pending = NAN,
		.rss_bytes_per_pending = NAN,
		.wakeups_per_s = NAN,
		.cpu_ms_per_s = NAN,
		.wall_s = NAN,
	};
}
