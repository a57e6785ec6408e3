/* SPDX-License-Identifier: MIT */
/**
 * @file stats.h
 * What an engine has done so far.
 */
#ifndef TICKWHEEL_STATS_H
#define TICKWHEEL_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/**
 * Counters since creation.
 *
 * In each reading scheduled = expired + cancelled + handed_back + pending, and no counter is less than in an
 * earlier reading (but for `expired` and `periodic_runs` with TW_REFUSAL_REQUEUE). Whenever no call is
 * under way and nothing expires, each field is exact.
 */
struct tw_stats {
	/** Set by the caller to sizeof(struct tw_stats). */
	size_t size;
	/** Timeouts accepted. */
	uint64_t scheduled;
	/** Timeouts refused: limit, memory, shut down. */
	uint64_t refused;
	/** Timeouts that expired; a running callback counts. One that the executor refuses, and that is
	 * pending again therefore (TW_REFUSAL_REQUEUE), is taken back. */
	uint64_t expired;
	/** Timeouts cancelled. */
	uint64_t cancelled;
	/** Timeouts that stop handed back. */
	uint64_t handed_back;
	/** Timeouts neither expired, cancelled nor handed back; as exact as tw_engine_pending. */
	uint64_t pending;
	/** Timeouts that went into the wheel: from ingress, or straight from the worker's own thread. */
	uint64_t transferred;
	/** Transfer batches that were not empty. */
	uint64_t transfers;
	/** The most that one batch took from rings and ingress, cancelled ones included: both those
	 * cancelled on the way, and those that come to be taken out of the wheel. */
	uint64_t largest_transfer;
	/** Turns of the worker. */
	uint64_t turns;
	/** Times the worker slept. */
	uint64_t parks;
	/** Bytes of this engine's wheel, slot entries included; the timeouts' own:
	 * tw_memory_slab_bytes. */
	uint64_t wheel_bytes;
	/** System or hook allocations made by this engine's worker. */
	uint64_t wheel_allocations;
	/** Checks of the wheel that failed (option `check`). */
	uint64_t check_failures;
	/** Timeouts that began to run later than the option `late_ns` allows; 0 without it. */
	uint64_t late;
	/** The longest, in nanoseconds, that a batch of expiries began after the deadline of its
	 * first timeout. A deadline that was past when it was given counts, too. */
	uint64_t latest_ns;
	/** Runs of periodic timeouts that have begun. `expired` counts such a timeout once, when it has
	 * run as often as it was to. */
	uint64_t periodic_runs;
	/** Runs that took longer than the option `slow_ns` allows, noticed so far; 0 without it. Reading
	 * the counters notices those that run now. */
	uint64_t slow;
	/** Times that the dispatch hook refused a timeout, or a run of a periodic one. */
	uint64_t executor_refused;
	/** Timeouts, and runs of periodic ones, that went to the drop hook; `expired` and `periodic_runs`
	 * count them too. */
	uint64_t dropped;
	/** Of `cancelled`, those that never reached the wheel: cancelled in a ring, or in a queue, of which
	 * the worker counts them when it comes to them. */
	uint64_t cancelled_early;
	/** Times that a timeout got another deadline (tw_reschedule and all that is built on it). */
	uint64_t rescheduled;
	/** Timeouts on their way to the wheel now: in rings, and in queues (the cancelled ones among
	 * these, too). */
	uint64_t ingress;
	/** Timeouts that are cancelled, and whose memory waits for the worker now. */
	uint64_t unreclaimed;
	/** Of `parks`, those that ended because their time had come. */
	uint64_t woken_by_deadline;
	/** Of `parks`, those that a schedule, reschedule or cancel ended, which could not wait. */
	uint64_t woken_by_producer;
	/** Of `parks`, those that settle, stop, a dump, or a virtual clock that was moved ended. */
	uint64_t woken_by_call;
	/** The other parks: for a second look at a push under way, or without a reason. */
	uint64_t woken_otherwise;
	/** Ticks by which turns came too late: from the first tick that something was due at to that of
	 * the turn. */
	uint64_t catch_up_ticks;
	/** Moves of timeouts to a lower level of the hierarchical wheel. */
	uint64_t cascaded;
	/** Bytes of the process's timeouts (tw_memory_slab_bytes); the same for all its engines. */
	uint64_t slab_bytes;
};

/**
 * Reads the counters of an engine.
 *
 * The fields that `pending` is made of are read together, and bounded as tw_engine_pending describes. The others are
 * whole values, each of its own moment.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (sums the lanes, at most nine times); readers at the same time may try again, once for
 *   each other reader, to note the greatest `cancelled_early`.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, `size` too small to be a tw_stats or over 4,096); -ECHILD. A larger
 *   `size` up to that is accepted and the tail zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_stats_get(struct tw_engine *engine, struct tw_stats *ret_stats);

TW_END_DECLS

#endif
