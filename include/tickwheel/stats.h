/* SPDX-License-Identifier: MIT */
/**
 * @file stats.h
 * Counters of an engine's work since its creation.
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
 * In each reading scheduled = expired + cancelled + unexpired + pending. No counter is less than
 * in an earlier reading, except for `expired` and `periodic_runs` with TW_REJECTION_REQUEUE. Each
 * field is exact when no call is under way and no timeout expires.
 */
struct tw_stats {
	/** Set by the caller to sizeof(struct tw_stats). */
	size_t size;
	/** Timeouts accepted. */
	uint64_t scheduled;
	/** Timeouts that were rejected: the limit was reached, there was no memory, or the engine
	 * was stopped. */
	uint64_t rejected;
	/** Timeouts that expired; a timeout counts as soon as its callback begins. If the executor
	 * rejects a timeout and it is therefore pending again (TW_REJECTION_REQUEUE), it is
	 * subtracted again. */
	uint64_t expired;
	/** Timeouts cancelled. */
	uint64_t cancelled;
	/** Timeouts that stop handed back. */
	uint64_t unexpired;
	/** Timeouts that have neither expired nor been cancelled nor handed back; as exact as
	 * tw_engine_pending. */
	uint64_t pending;
	/** Timeouts that went into the wheel: from the queues of the lanes, or directly, if the
	 * worker's own thread scheduled them. */
	uint64_t transferred;
	/** Transfer batches that were not empty. */
	uint64_t transfers;
	/** The most timeouts that one transfer batch took from the queues of the lanes. The number
	 * includes timeouts that were cancelled on their way to the wheel, and cancelled ones that
	 * must be taken out of the wheel. */
	uint64_t largest_transfer;
	/** Turns of the worker. */
	uint64_t turns;
	/** Times the worker slept. */
	uint64_t parks;
	/** Bytes of this engine's wheel, including slot entries. For the memory of the timeouts
	 * themselves see tw_memory_slab_bytes. */
	uint64_t wheel_bytes;
	/** Allocations that this engine's worker made, from the system or from the allocator
	 * hook. */
	uint64_t wheel_allocations;
	/** Checks of the wheel that failed (option `check`). */
	uint64_t check_failures;
	/** Timeouts that began to run later than the option `late_ns` allows; 0 without this
	 * option. */
	uint64_t late;
	/** The longest time, in nanoseconds, from the deadline of a batch's first timeout to the
	 * beginning of the batch. Deadlines that were already past when they were given count,
	 * too. */
	uint64_t latest_ns;
	/** Runs of periodic timeouts that have begun. `expired` counts such a timeout once, when it
	 * has completed all its runs. */
	uint64_t periodic_runs;
	/** Runs that took longer than the option `slow_ns` allows; 0 without this option. A run
	 * counts when a thread has noticed it. A reading of the counters itself notices slow runs
	 * that are under way. */
	uint64_t slow;
	/** How often the dispatch hook rejected a timeout, or a run of a periodic one. */
	uint64_t executor_rejected;
	/** Timeouts, and runs of periodic ones, that went to the drop hook. `expired` and
	 * `periodic_runs` count them, too. */
	uint64_t dropped;
	/** The part of `cancelled` that never reached the wheel: timeouts that were cancelled in a
	 * ring or in a link queue (the queues of a lane). Those in a link queue count when the
	 * worker reaches them. */
	uint64_t cancelled_early;
	/** How often a timeout got another deadline (tw_reschedule and all calls built on it). */
	uint64_t rescheduled;
	/** Timeouts that are now on their way to the wheel, in rings and in link queues. Cancelled
	 * ones in link queues are included. */
	uint64_t ingress;
	/** Timeouts that are cancelled, and whose memory the worker has not yet reclaimed. */
	uint64_t unreclaimed;
	/** The part of `parks` that ended because the next deadline had come. */
	uint64_t woken_by_deadline;
	/** The part of `parks` that ended because a schedule, reschedule or cancel could not
	 * wait. */
	uint64_t woken_by_producer;
	/** The part of `parks` that ended because of flush, stop, a dump, or a virtual clock that
	 * was moved. */
	uint64_t woken_by_call;
	/** All other parks: those that ended because the worker had to check again for a push that
	 * was under way, and spurious wake-ups. */
	uint64_t woken_otherwise;
	/** The sum of the ticks by which turns came too late. For each turn, these are the ticks
	 * from the first tick at which a timeout was due to the tick of the turn. */
	uint64_t catch_up_ticks;
	/** Moves of timeouts to a lower level of the hierarchical wheel. */
	uint64_t cascaded;
	/** Bytes of the process's timeouts (tw_memory_slab_bytes), the same for all its engines. */
	uint64_t slab_bytes;
};

/**
 * Reads the counters of an engine.
 *
 * The fields that make up `pending` are read together, with the error bounds that tw_engine_pending
 * describes. Each other field is read atomically, but the fields are read one after another.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (sums the lanes, at most nine times). If several threads read at the same
 *   time, a reader may retry once for each other reader, to record the greatest `cancelled_early`.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, `size` too small to be a tw_stats or over 4,096); -ECHILD. If `size`
 *   is larger than this library's, up to 4,096, it is accepted and the tail is zeroed.
 * Since: 0.1.0.
 */
TW_API int tw_stats_get(struct tw_engine *engine, struct tw_stats *ret_stats);

TW_END_DECLS

#endif
