/* SPDX-License-Identifier: MIT */
/*
 * An engine's counters: sums of the counters of all lanes, and counters that only the worker
 * writes.
 *
 * A collect is one pass that reads all counters which make up `pending`. For each lane it reads the
 * number of timeouts that began and the number that ended as one pair, which is exact for one
 * moment (E90). So if a thread schedules one timeout at a time and cancels it, each reading shows
 * one pending timeout or none. If a timeout begins in one lane and ends in another, or expires, the
 * collect reads the two counters at different moments. The error is at most the number of timeouts
 * that began or ended in between. A collect that took too long is repeated, and the last result is
 * used.
 *
 * At every moment, ended <= begun, and begun <= ended + limit if the engine has a pending limit.
 * Because the lanes are read at different moments, the sums may break this rule. Then the sum of
 * begun timeouts is moved into that range. The corrected sum is still between the true sums at the
 * start and at the end of the collect. No counter ever falls from one reading to the next. In each
 * reading, scheduled = expired + cancelled + unexpired + pending.
 *
 * RELAXED, all loads except those of the lanes' pairs: each counter is one number, and no other
 * data is read because of its value.
 */
#include "base/atomic.h"
#include "base/sized.h"
#include "engine/misuse.h"
#include "expiry/measure.h"
#include "expiry/slow.h"
#include "ingress/far.h"
#include "memory/slab.h"
#include "stats/histogram.h"
#include "thread/futex.h"

#include <errno.h>
#include <tickwheel/stats.h>

enum {
	/*
	 * A collect that takes longer is repeated. Reading 64 lanes takes far less time, so the
	 * thread must have been preempted.
	 */
	COLLECT_MAX_NS = 20000,
	/*
	 * After this many collects the last result is used, because the machine seems too busy for
	 * an undisturbed collect.
	 */
	COLLECTS_MAX = 9,
};

static uint64_t less(uint64_t count, uint64_t gone)
{
	return count > gone ? count - gone : 0;
}

/*
 * Returns whether no timeout ever began or ended in the lane. If so, the caller does not read the
 * pair, because a 128-bit read is a locked instruction, and would write to a cache line that the
 * producer has never touched.
 */
static bool lane_unused(const struct twi_lane *lane)
{
	return twi_load_relaxed(&lane->scheduled_count) == 0 &&
	       twi_load_relaxed(&lane->ended_count) == 0;
}

/*
 * Adds a lane's counters to the sums. Reads the two counters that are subtracted (cancelled_count
 * and stopped_count) after the pair. A cancel adds to them before it counts the end (E90). So the
 * difference (ended - cancelled - stopped) never exceeds the number of timeouts that were cancelled
 * in a ring.
 */
static void lane_read(const struct twi_lane *lane, struct tw_stats *stats)
{
	struct twi_pair pair = twi_load_pair_acquire(&lane->scheduled_count); /* E90: see above. */
	uint64_t queued, stopped;

	TWI_TEST_POINT("stats:pair");
	queued = twi_load_relaxed(&lane->cancelled_count);
	stopped = twi_load_relaxed(&lane->stopped_count);
	stats->scheduled += pair.half[0];
	stats->cancelled += pair.half[1];
	stats->cancelled_early += less(pair.half[1], queued + stopped);
	stats->unreclaimed += queued;
}

static void block_read(const struct twi_lane_block *block, struct tw_stats *stats)
{
	for (uint32_t number = 0; number < TWI_LANES; number++) {
		const struct twi_lane *lane = &block->lane[number];

		if (!lane_unused(lane))
			lane_read(lane, stats);
		stats->rejected += twi_load_relaxed(&lane->rejected_count);
		stats->rescheduled += twi_load_relaxed(&lane->rescheduled_count);
	}
}

/*
 * Reads how many timeouts have ended on the worker or in executors. Must be called after the lanes
 * are read. If an executor rejects a timeout, it is no longer counted as expired, and may then be
 * cancelled. If these counters were read before the lanes, such a timeout could count as ended
 * twice.
 */
static void worker_ends_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	stats->expired = twi_load_relaxed(&worker->expired_count) +
			 twi_load_relaxed(&worker->chain_expired_count);
	stats->unexpired = twi_load_relaxed(&worker->unexpired_count);
}

static void direct_read(const struct twi_worker *worker, struct tw_stats *stats)
{
	/*
	 * RELAXED: a pair is read in one step anyway, and no other data is read because of its
	 * value.
	 */
	struct twi_pair pair = twi_load_pair_relaxed(&worker->direct_scheduled_count);

	stats->scheduled += pair.half[0];
	stats->cancelled += pair.half[1];
	stats->transferred += pair.half[0];
}

static void lanes_read(struct twi_worker *worker, struct tw_stats *stats)
{
	for (uint32_t number = 0; (number = twi_lane_block_next(worker, number)) < TWI_BLOCKS;
	     number++)
		block_read(twi_lane_block_at(worker, number), stats);
}

static struct tw_stats collect(struct twi_worker *worker)
{
	/*
	 * These three counters of the worker must be read before the lanes' counters. If they were
	 * read later, they could include timeouts that the lanes' counters do not include.
	 */
	uint64_t reclaimed = twi_load_relaxed(&worker->reclaimed_count);
	struct tw_stats stats = {
		.size = sizeof stats,
		.transferred = twi_load_relaxed(&worker->transferred_count),
		.cancelled_early = twi_load_relaxed(&worker->unlinked_count),
	};

	lanes_read(worker, &stats);
	TWI_TEST_POINT("stats:lanes");
	direct_read(worker, &stats);
	worker_ends_read(worker, &stats);
	stats.unreclaimed = less(stats.unreclaimed, reclaimed);
	return stats;
}

/* Corrects the sums by the bounds at the head of this file, and computes `pending`. */
static void pending_reckon(const struct twi_worker *worker, struct tw_stats *stats)
{
	uint64_t ended = stats->expired + stats->unexpired + stats->cancelled;

	if (stats->scheduled < ended)
		stats->scheduled = ended;
	if (worker->pending_limit != 0 && stats->scheduled - ended > worker->pending_limit)
		stats->scheduled = ended + worker->pending_limit;
	stats->pending = stats->scheduled - ended;
}

static struct tw_stats timeouts_read(struct twi_worker *worker)
{
	struct tw_stats stats;
	int64_t begin_ns;
	int64_t end_ns = twi_monotonic_ns();
	int collects = 0;

	do {
		begin_ns = end_ns;
		stats = collect(worker);
		end_ns = twi_monotonic_ns();
	} while (end_ns - begin_ns > COLLECT_MAX_NS && ++collects < COLLECTS_MAX);
	pending_reckon(worker, &stats);
	return stats;
}

/*
 * Makes the count of early cancels (before the timeout reached the wheel) monotonic. If timeouts
 * are cancelled in the wheel during the collect, the computed count is too low, and could be lower
 * than an earlier reading. So this function never returns less than it has returned before. The
 * result may be too low, but is never too high.
 */
static uint64_t early_report(struct twi_worker *worker, uint64_t early)
{
	/* RELAXED: one number, and no other data is read because of its value. */
	uint64_t reported = twi_load_relaxed(&worker->early_reported);

	while (reported < early && !twi_cas_relaxed(&worker->early_reported, &reported, early))
		;
	return reported > early ? reported : early;
}

/*
 * Computes how many timeouts wait for the worker: all that were pushed, minus those that the worker
 * has taken.
 */
static void waiting_read(struct twi_worker *worker, struct tw_stats *stats)
{
	/*
	 * The worker may count a cancelled timeout before its canceller counts the cancel, so
	 * `cancelled_early` could exceed `cancelled`.
	 */
	if (stats->cancelled_early > stats->cancelled)
		stats->cancelled_early = stats->cancelled;
	stats->cancelled_early = early_report(worker, stats->cancelled_early);
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
	stats->transfers = twi_load_relaxed(&worker->transfer_count);
	stats->largest_transfer = twi_load_relaxed(&worker->largest_transfer);
	stats->periodic_runs = twi_load_relaxed(&worker->periodic_run_count);
	stats->turns = twi_load_relaxed(&worker->turn_count);
	stats->parks = twi_load_relaxed(&worker->park_count);
	stats->wheel_bytes = twi_load_relaxed(&worker->wheel_bytes);
	stats->wheel_allocations = twi_load_relaxed(&worker->wheel_block_count);
	stats->late = twi_load_relaxed(&worker->late_count);
	stats->latest_ns = (uint64_t)twi_load_relaxed(&worker->latest_ns);
	stats->executor_rejected = twi_load_relaxed(&worker->executor_rejected_count);
	stats->dropped = twi_load_relaxed(&worker->dropped_count);
	stats->slow = twi_watch_count(worker);
	stats->catch_up_ticks = twi_load_relaxed(&worker->catch_up_tick_count);
	stats->cascaded = twi_load_relaxed(&worker->cascaded_count);
	stats->check_failures = twi_load_relaxed(&worker->check_failure_count);
}

int tw_stats_get(struct tw_engine *engine, struct tw_stats *ret_stats)
{
	struct tw_stats stats;

	if (engine == NULL || ret_stats == NULL || ret_stats->size < sizeof stats ||
	    ret_stats->size > TWI_STRUCT_BYTES_MAX)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	if (engine->worker.watch != NULL)
		(void)twi_watch_look(&engine->worker);
	stats = timeouts_read(&engine->worker);
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
	if (engine == NULL)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	return (int64_t)timeouts_read(&engine->worker).pending;
}

int tw_histogram_get(struct tw_engine *engine, uint32_t measurement, struct tw_histogram *ret)
{
	if (engine == NULL || measurement >= TWI_MEASUREMENTS || !twi_histogram_right(ret))
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	if (engine->worker.measure == NULL)
		return -EINVAL;
	twi_histogram_begin(ret);
	twi_measure_add(engine->worker.measure, measurement, ret);
	twi_histogram_flush(ret);
	return 0;
}
