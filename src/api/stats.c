/* SPDX-License-Identifier: MIT */
/*
 * Counters: sums over the lanes, and the worker's own.
 *
 * RELAXED, all loads: each counter has whole values; together they are exact when nothing runs.
 * Ends are read before beginnings, so that pending never comes out negative.
 */
#include "base/atomic.h"
#include "base/sized.h"
#include "engine/misuse.h"
#include "mech/slab.h"
#include "worker/watch.h"

#include <errno.h>
#include <tickwheel/stats.h>

/* Of those cancelled, who had not reached the wheel, and whose memory the worker is to free. */
static void lane_ends_read(const struct twi_lane *lane, struct tw_stats *stats)
{
	uint64_t queued = twi_load_relaxed(&lane->cancelled_count);
	uint64_t withdrawn = twi_load_relaxed(&lane->withdrawn_count);

	stats->cancelled_early += withdrawn;
	stats->cancelled += queued + withdrawn + twi_load_relaxed(&lane->stopped_count);
	stats->unreclaimed += queued;
}

static void ends_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	stats->expired = twi_load_relaxed(&worker->expired_count) +
			 twi_load_relaxed(&worker->chain_expired_count);
	stats->handed_back = twi_load_relaxed(&worker->handed_back_count);
	stats->cancelled = twi_load_relaxed(&worker->direct_cancelled_count);
	stats->cancelled_early = twi_load_relaxed(&worker->unlinked_count);
	for (uint32_t number = 0; number < TWI_LANES; number++)
		lane_ends_read(&worker->lane[number], stats);
}

static void begins_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	stats->scheduled = twi_load_relaxed(&worker->direct_scheduled_count);
	for (uint32_t number = 0; number < TWI_LANES; number++) {
		stats->scheduled += twi_load_relaxed(&worker->lane[number].scheduled_count);
		stats->refused += twi_load_relaxed(&worker->lane[number].refused_count);
		stats->rescheduled += twi_load_relaxed(&worker->lane[number].rescheduled_count);
	}
}

static uint64_t less(uint64_t count, uint64_t gone)
{
	return count > gone ? count - gone : 0;
}

static void timeouts_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	ends_read(worker, stats);
	begins_read(worker, stats);
	stats->pending =
		less(stats->scheduled, stats->expired + stats->handed_back + stats->cancelled);
}

/* What waits for the worker: what came, less what it has taken. */
static void waiting_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	stats->unreclaimed = less(stats->unreclaimed, twi_load_relaxed(&worker->reclaimed_count));
	stats->ingress = less(stats->scheduled, stats->transferred + stats->cancelled_early);
}

static void wakes_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	stats->woken_by_deadline = twi_load_relaxed(&worker->wake_count[TWI_WAKE_DEADLINE]);
	stats->woken_by_producer = twi_load_relaxed(&worker->wake_count[TWI_WAKE_PRODUCER]);
	stats->woken_by_call = twi_load_relaxed(&worker->wake_count[TWI_WAKE_CALL]);
	stats->woken_otherwise = twi_load_relaxed(&worker->wake_count[TWI_WAKE_OTHER]);
}

static void worker_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	stats->transferred = twi_load_relaxed(&worker->transferred_count) +
			     twi_load_relaxed(&worker->direct_scheduled_count);
	stats->transfers = twi_load_relaxed(&worker->transfer_count);
	stats->largest_transfer = twi_load_relaxed(&worker->largest_transfer);
	stats->periodic_runs = twi_load_relaxed(&worker->periodic_run_count);
	stats->turns = twi_load_relaxed(&worker->turn_count);
	stats->parks = twi_load_relaxed(&worker->park_count);
	stats->wheel_bytes = twi_load_relaxed(&worker->wheel_bytes);
	stats->wheel_allocations = twi_load_relaxed(&worker->wheel_block_count);
	stats->late = twi_load_relaxed(&worker->late_count);
	stats->latest_ns = (uint64_t)twi_load_relaxed(&worker->latest_ns);
	stats->executor_refused = twi_load_relaxed(&worker->executor_refused_count);
	stats->dropped = twi_load_relaxed(&worker->dropped_count);
	stats->slow = twi_watch_count(worker);
	stats->catch_up_ticks = twi_load_relaxed(&worker->catch_up_tick_count);
	stats->cascaded = twi_load_relaxed(&worker->cascaded_count);
	stats->check_failures = twi_load_relaxed(&worker->check_failure_count);
}

int tw_stats_get(struct tw_engine *engine, struct tw_stats *ret_stats)
{
	struct tw_stats stats = {.size = sizeof stats};

	if (engine == NULL || ret_stats == NULL || ret_stats->size < sizeof stats ||
	    ret_stats->size > TWI_STRUCT_BYTES_MAX)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	if (engine->worker.watch != NULL)
		(void)twi_watch_look(&engine->worker);
	timeouts_read(&engine->worker, &stats);
	worker_read(&engine->worker, &stats);
	waiting_read(&engine->worker, &stats);
	wakes_read(&engine->worker, &stats);
	stats.slab_bytes = twi_slab_bytes();
	stats.size = ret_stats->size;
	twi_copy_out(ret_stats, stats.size, &stats, sizeof stats);
	return 0;
}

int64_t tw_engine_pending(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof stats};

	if (engine == NULL)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	timeouts_read(&engine->worker, &stats);
	return (int64_t)stats.pending;
}
