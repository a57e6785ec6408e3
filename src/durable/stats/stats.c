/* SPDX-License-Identifier: MIT */
/* Reads the counters and measurements of a set. */
#include "base/sized.h"
#include "durable/set.h"
#include "durable/stage.h"
#include "stats/histogram.h"

#include <errno.h>
#include <tickwheel/fork.h>

/* RELAXED: the flags need not be of one moment. */
static uint64_t paused_kinds(const struct tw_durable *set)
{
	uint64_t count = 0;

	for (size_t i = 0; i < set->kind_count; i++)
		count += twi_load_relaxed(&set->kinds[i].paused);
	return count;
}

/* RELAXED, all: the counters need not be of one moment. */
static uint64_t scheduled(const struct tw_durable *set)
{
	uint64_t count = 0;

	for (int i = 0; i < TWI_DURABLE_LANES; i++)
		count += twi_load_relaxed(&set->lanes[i].scheduled) +
			 twi_load_relaxed(&set->fresh_lanes[i].scheduled);
	return count;
}

/* RELAXED, all: the counters need not be of one moment. */
int tw_durable_stats_get(struct tw_durable *durable, struct tw_durable_stats *ret_stats,
			 size_t size)
{
	int error = twi_durable_check(durable);
	struct tw_durable_stats stats;

	if (error != 0)
		return error;
	if (ret_stats == NULL || size < sizeof stats)
		return -EINVAL;
	if (size > TWI_STRUCT_BYTES_MAX)
		return -E2BIG;
	stats = (struct tw_durable_stats){
		.scheduled = scheduled(durable),
		.absorbed = twi_load_relaxed(&durable->shown[TWI_SHOWN_ABSORBED]),
		.stored = twi_load_relaxed(&durable->shown[TWI_SHOWN_STORED]),
		.unknown = twi_load_relaxed(&durable->shown[TWI_SHOWN_UNKNOWN]),
		.commits = twi_load_relaxed(&durable->shown[TWI_SHOWN_COMMITS]),
		.operations = twi_load_relaxed(&durable->shown[TWI_SHOWN_OPERATIONS]),
		.runs = twi_load_relaxed(&durable->runs),
		.dead = twi_load_relaxed(&durable->shown[TWI_SHOWN_DEAD]),
		.in_memory = twi_load_relaxed(&durable->shown[TWI_SHOWN_IN_MEMORY]),
		.dead_removed = twi_load_relaxed(&durable->shown[TWI_SHOWN_DEAD_REMOVED]),
		.memory_bytes = twi_load_relaxed(&durable->shown[TWI_SHOWN_MEMORY_BYTES]),
		.overdue = twi_load_relaxed(&durable->overdue),
		.late = twi_load_relaxed(&durable->late),
		.lag_ns = twi_load_relaxed(&durable->lag_ns),
		.lag_max_ns = twi_load_relaxed(&durable->lag_max_ns),
		.log_bytes = twi_load_relaxed(&durable->shown[TWI_SHOWN_LOG_BYTES]),
		.unknown_kinds = durable->unknown_kinds,
		.paused_kinds = paused_kinds(durable),
		.claimed = twi_load_relaxed(&durable->shown[TWI_SHOWN_CLAIMED]),
		.refused_starts = twi_load_relaxed(&durable->shown[TWI_SHOWN_REFUSED]),
		.stale_ends = twi_load_relaxed(&durable->shown[TWI_SHOWN_STALE]),
		.sessions = twi_load_relaxed(&durable->shown[TWI_SHOWN_SESSIONS]),
		.clock_steps = twi_load_relaxed(&durable->shown[TWI_SHOWN_CLOCK_STEPS]),
		.state = twi_load_relaxed(&durable->state),
	};
	stats.staged_bytes = (uint64_t)(twi_load_relaxed(&durable->staged_bytes) +
					twi_load_relaxed(&durable->linger_bytes));
	twi_copy_out(ret_stats, size, &stats, sizeof stats);
	return 0;
}

int tw_durable_histogram_get(struct tw_durable *durable, uint32_t measurement,
			     struct tw_histogram *ret)
{
	int error = twi_durable_check(durable);

	if (error != 0)
		return error;
	if (measurement >= TWI_DURABLE_MEASUREMENTS || !twi_histogram_right(ret))
		return -EINVAL;
	twi_histogram_begin(ret);
	twi_measured_sum(&durable->measured[measurement], ret);
	twi_histogram_flush(ret);
	return 0;
}
