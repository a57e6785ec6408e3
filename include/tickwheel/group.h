/* SPDX-License-Identifier: MIT */
/**
 * @file group.h
 * Groups: several engines behind one object, each with a worker of its own.
 *
 * A schedule through a group goes to the engine of the calling thread, by a rule that the group was made
 * with. Handles know their engine, so tw_cancel, tw_reschedule and all else that takes a handle work as
 * ever, from anywhere. Everything that takes an engine works on a group's too: tw_group_here has the calling
 * thread's, tw_group_engine each. docs/groups.md says when a group pays.
 */
#ifndef TICKWHEEL_GROUP_H
#define TICKWHEEL_GROUP_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/engine.h>
#include <tickwheel/export.h>
#include <tickwheel/periodic.h>
#include <tickwheel/stats.h>
#include <tickwheel/timeout.h>

TW_BEGIN_DECLS

struct tw_group;

/** The most engines of a group. */
#define TW_GROUP_MAX 1024u
/** As many engines as there are CPUs that the calling thread may use, or, by node, nodes of these. */
#define TW_GROUP_AUTO UINT32_MAX

/** Which engine is a thread's. Whatever the rule, on a worker (or owner) of the group it is its own. */
enum tw_group_rule {
	/** Each thread keeps one; they are dealt out in turn, by a number that a thread has for all groups.
	 * What a thread schedules keeps its order. */
	TW_GROUP_BY_THREAD = 0,
	/** That of the CPU which the thread runs on at the call. With fewer engines than CPUs neighbours share
	 * one; with more, some are nobody's. */
	TW_GROUP_BY_CPU = 1,
	/** That of the NUMA node of this CPU. With fewer engines than nodes neighbours share one; with more, a
	 * node's CPUs are shared out among its engines. */
	TW_GROUP_BY_NODE = 2,
};

/** Bits of `flags`. */
enum tw_group_flags {
	/** Each worker may run only on the CPUs whose engine it is. By CPU or node; not in loop mode, nor
	 * with a CPU set or a thread hook in `engine`. */
	TW_GROUP_PINNED = 1,
	/** Engines are started by the first schedule to each, and not by tw_group_create. */
	TW_GROUP_LAZY = 2,
};

/** Options of a group. tw_group_options_init fills in the defaults; change what you need. */
struct tw_group_options {
	/** sizeof(struct tw_group_options), set by tw_group_options_init. */
	size_t size;
	/** How many, 1 to TW_GROUP_MAX, or TW_GROUP_AUTO. Default TW_GROUP_AUTO. */
	uint32_t engines;
	/** An enum tw_group_rule. Default TW_GROUP_BY_THREAD. */
	uint32_t rule;
	/** Bits of enum tw_group_flags. Default 0. */
	uint32_t flags;
	/** Must be 0. */
	uint32_t reserved;
	/**
	 * The options of each engine; NULL: the defaults. Limits and hooks are each engine's; where no
	 * name is given the workers are numbered. Copied. Default NULL.
	 */
	const struct tw_options *engine;
};

/**
 * Fills in the default options.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL (NULL, `size` too small); -E2BIG (`size` over 4,096). Call as
 *   tw_group_options_init(&options, sizeof(options)).
 * Since: 0.1.0.
 */
TW_API int tw_group_options_init(struct tw_group_options *ret_options, size_t size);

/**
 * Creates a group, and starts its engines (but with TW_GROUP_LAZY, and in loop mode, where each is started
 * by who polls it). All of them or none: where one fails, those before it are stopped and freed.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates, makes threads; reads /sys by node; where one fails it waits for the workers made
 *   before, as tw_engine_stop does.
 * Lifetime: until tw_group_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_group`; -EINVAL (NULL, engines 0 or above TW_GROUP_MAX, an unknown rule, unknown bits,
 *   `reserved`, TW_GROUP_PINNED where it is not allowed); -E2BIG (fields of a newer header set, `size` over
 *   4,096); -ENOMEM; -ECHILD; what tw_engine_create and tw_engine_start return (-EBUSY for a second
 *   engine of one virtual clock).
 * Since: 0.1.0.
 */
TW_API int tw_group_create(const struct tw_group_options *options, struct tw_group **ret_group);

/**
 * Stops all engines of a group, at once, as tw_engine_stop does each; `hand_back` may then run on several
 * workers at the same time. Of an engine that was stopped alone before, the hook of that stop counts.
 *
 * Units: `timeout_ns`, how long to wait at most, for all of them together; TW_NEVER: without bound; 0 or
 *   less: begin only. Where an engine's stop has to do the work itself (tw_engine_stop), it does not bound
 *   that.
 * Threads: any, concurrently.
 * In callback: no (-EDEADLK: in one of any engine of the group, and then none begins to stop).
 * Progress: as tw_engine_stop.
 * Lifetime: as tw_engine_stop.
 * Returns: 0: all have ended; -ETIMEDOUT: stopping goes on, call again; -EDEADLK; -EINVAL; -ECHILD (in a
 *   forked child that has not taken over each of them: none begins to stop).
 * Since: 0.1.0.
 */
TW_API int tw_group_stop(struct tw_group *group, tw_hand_back *hand_back, void *context,
			 int64_t timeout_ns);

/**
 * Frees a group whose engines may all be destroyed: they are stopped, or were never started, as
 * tw_engine_destroy has it. NULL is accepted.
 *
 * Units: none.
 * Threads: any, once; nobody may use the group or its engines any more, handles stay safe.
 * In callback: no (-EDEADLK in one of its engines', else allowed).
 * Progress: as tw_engine_destroy, for each.
 * Lifetime: ends.
 * Returns: 0; -EBUSY: one is not stopped, and all are as they were; -EDEADLK. In a forked child what is
 *   the parent's hinders nothing: it frees what it can.
 * Since: 0.1.0.
 */
TW_API int tw_group_destroy(struct tw_group *group);

/**
 * How many engines a group has.
 *
 * Units: engines.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 1 or more; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_API int tw_group_engines(const struct tw_group *group);

/**
 * An engine of a group, by its number. It may be used as any, but for tw_engine_destroy.
 *
 * Units: `number` from 0 on.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the group's.
 * Returns: the engine; NULL for a group of NULL or a number that it does not have.
 * Since: 0.1.0.
 */
TW_API struct tw_engine *tw_group_engine(const struct tw_group *group, uint32_t number);

/**
 * The calling thread's engine, by the group's rule: for whatever takes an engine (batches, retries).
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the group's.
 * Returns: the engine; NULL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API struct tw_engine *tw_group_here(const struct tw_group *group);

/**
 * tw_schedule to the calling thread's engine. `*ret_handle` is written before the callback can run, as
 * there.
 *
 * Units: as tw_schedule.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule; -EINVAL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API int tw_group_schedule(struct tw_group *group, int64_t delay_ns, const struct tw_kind *kind,
			     void *arg, struct tw_handle *ret_handle);

/**
 * tw_schedule_at to the calling thread's engine. Engines of a group have the same clock, if the options
 * give one, or clocks of the same time: a deadline means the same in each. `*ret_handle` is written before
 * the callback can run, as by tw_schedule.
 *
 * Units: as tw_schedule_at.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule_at; -EINVAL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API int tw_group_schedule_at(struct tw_group *group, int64_t deadline_ns,
				const struct tw_kind *kind, void *arg,
				struct tw_handle *ret_handle);

/**
 * tw_schedule_periodic to the calling thread's engine, where the chain stays. `*ret_handle` is written
 * before the first run can begin, as there.
 *
 * Units: as tw_schedule_periodic.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule_periodic.
 * Returns: as tw_schedule_periodic; -EINVAL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API int tw_group_schedule_periodic(struct tw_group *group, const struct tw_period *period,
				      const struct tw_kind *kind, void *arg,
				      struct tw_handle *ret_handle);

/**
 * How many timeouts are pending in all engines of a group: the sum of tw_engine_pending, and of its errors.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (sums the lanes of each engine).
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL; -ECHILD (one of them is a parent's still).
 * Since: 0.1.0.
 */
TW_API int64_t tw_group_pending(struct tw_group *group);

/**
 * The counters of all engines of a group: their sums, and of `largest_transfer` and `latest_ns` the
 * greatest.
 *
 * Units: see struct tw_stats.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (sums the lanes of each engine).
 * Lifetime: none.
 * Returns: as tw_stats_get.
 * Since: 0.1.0.
 */
TW_API int tw_group_stats_get(struct tw_group *group, struct tw_stats *ret_stats);

TW_END_DECLS

#endif
