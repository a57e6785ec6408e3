/* SPDX-License-Identifier: MIT */
/**
 * @file group.h
 * Groups: several engines behind one object, each with a worker of its own.
 *
 * A schedule through a group goes to the calling thread's engine. The group's rule decides which
 * engine that is; the rule is set when the group is created. tw_cancel, tw_reschedule and all other
 * calls that take a handle work as usual, from any thread, because the library finds the engine by
 * the handle. A call that takes an engine also works on an engine of a group: tw_group_here returns
 * the calling thread's, tw_group_engine any of them. docs/groups.md says when a group is worth its
 * cost.
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

/** A group of engines, made by tw_group_create and freed by tw_group_destroy. */
struct tw_group;

/** The most engines of a group. */
#define TW_GROUP_MAX 1024u
/** One engine for each CPU that the calling thread may use. With TW_GROUP_BY_NODE, one engine for
 * each NUMA node of these CPUs. */
#define TW_GROUP_AUTO UINT32_MAX

/** How a group assigns an engine to a thread. Whatever the rule, the worker (or owner) of an engine
 * of the group always uses that engine. */
enum tw_group_rule {
	/** Each thread keeps one engine. Engines are assigned round-robin, by a number that a
	 * thread has for all groups. Timeouts that one thread schedules keep their order. */
	TW_GROUP_BY_THREAD = 0,
	/** A thread uses the engine of the CPU on which it runs at the call. If there are fewer
	 * engines than CPUs, neighbouring CPUs share one. If there are more, some engines belong to
	 * no CPU. */
	TW_GROUP_BY_CPU = 1,
	/** A thread uses the engine of the NUMA node on which it runs at the call. If there are
	 * fewer engines than nodes, neighbouring nodes share one. If there are more, the CPUs of a
	 * node are divided among its engines. */
	TW_GROUP_BY_NODE = 2,
};

/** Bits of the option `flags`. */
enum tw_group_flags {
	/** Each worker may run only on the CPUs of its engine. Allowed with TW_GROUP_BY_CPU and
	 * TW_GROUP_BY_NODE, but not in loop mode, and not if `engine` sets a CPU set or a thread
	 * hook. */
	TW_GROUP_PINNED = 1,
	/** tw_group_create does not start the engines. The first schedule to an engine starts
	 * it. */
	TW_GROUP_LAZY = 2,
};

/** Options of a group. tw_group_options_init fills in the defaults; change what you need. */
struct tw_group_options {
	/** sizeof(struct tw_group_options), set by tw_group_options_init. */
	size_t size;
	/** The number of engines, 1 to TW_GROUP_MAX, or TW_GROUP_AUTO. Default TW_GROUP_AUTO. */
	uint32_t engines;
	/** An enum tw_group_rule. Default TW_GROUP_BY_THREAD. */
	uint32_t rule;
	/** Bits of enum tw_group_flags. Default 0. */
	uint32_t flags;
	/** Must be 0. */
	uint32_t reserved;
	/**
	 * The options of each engine; NULL: the defaults. Limits and hooks apply to each engine
	 * separately. If `thread_name` is not set, the names of the workers are numbered. The
	 * struct is copied. Default NULL.
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
 * Creates a group and starts its engines. With TW_GROUP_LAZY, and in loop mode, the call does not
 * start them: a schedule or, in loop mode, a poll does. The call creates all engines or none: if
 * one cannot be created or started, those before it are stopped and freed.
 *
 * Units: see the struct.
 * Threads: any.
 * In callback: yes.
 * Progress: allocates and creates threads; with TW_GROUP_BY_NODE it also reads /sys. If an engine
 *   cannot be created or started, the call waits for the workers created before, as tw_engine_stop
 *   does.
 * Lifetime: until tw_group_destroy. `options` is copied; NULL: all defaults.
 * Returns: 0 and `*ret_group`; -EINVAL (NULL, engines 0 or above TW_GROUP_MAX, an unknown rule,
 *   unknown bits, `reserved`, TW_GROUP_PINNED if it is not allowed); -E2BIG (fields of a newer
 *   header set, `size` over 4,096); -ENOMEM; the codes that tw_engine_create and
 *   tw_engine_start return (-EBUSY for a second engine of one virtual clock).
 * Since: 0.1.0.
 */
TW_API TW_CHECKED int tw_group_create(const struct tw_group_options *options,
				      struct tw_group **ret_group);

/**
 * Stops all engines of a group at once, each as tw_engine_stop does. Therefore `on_unexpired` may
 * run on several workers at the same time. If an engine was stopped separately before, the hook of
 * that stop counts.
 *
 * Units: `timeout_ns`, the longest time to wait for all engines together; TW_NEVER: without bound;
 *   0 or less: begin to stop, and do not wait. If the caller must do the work of a stop itself (see
 *   tw_engine_stop), `timeout_ns` does not bound that work.
 * Threads: any, concurrently.
 * In callback: no (-EDEADLK in a callback of any engine of the group; then no engine begins to
 *   stop).
 * Progress: as tw_engine_stop.
 * Lifetime: as tw_engine_stop.
 * Returns: 0: all engines are stopped; -ETIMEDOUT: stopping continues, call again; -EDEADLK;
 *   -EINVAL; -ECHILD (in a forked child that has not taken over each of the engines: then no engine
 *   begins to stop).
 * Since: 0.1.0.
 */
TW_API int tw_group_stop(struct tw_group *group, tw_unexpired_hook *on_unexpired, void *context,
			 int64_t timeout_ns);

/**
 * Frees a group and its engines, if all engines may be destroyed: each is stopped or was never
 * started, as tw_engine_destroy requires. NULL is accepted.
 *
 * Units: none.
 * Threads: any, once; no thread may use the group or its engines any more. Handles stay safe.
 * In callback: no (-EDEADLK) in a callback of one of its engines; in another engine's callback,
 *   yes.
 * Progress: for each engine as tw_engine_destroy.
 * Lifetime: the group and its engines exist until the call returns 0.
 * Returns: 0; -EBUSY: an engine is not stopped, and the call has changed none; -EDEADLK. In a
 *   forked child the parent's engines cause no -EBUSY: the call frees everything that it can.
 * Since: 0.1.0.
 */
TW_API int tw_group_destroy(struct tw_group *group);

/**
 * Returns how many engines a group has.
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
 * Returns an engine of a group, by its number. It may be used like any engine, except for
 * tw_engine_destroy.
 *
 * Units: `number` from 0 on.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the group's.
 * Returns: the engine; NULL if the group is NULL or has no engine of this number.
 * Since: 0.1.0.
 */
TW_API struct tw_engine *tw_group_engine(const struct tw_group *group, uint32_t number);

/**
 * Returns the calling thread's engine, by the group's rule, for calls that take an engine (batches,
 * retries).
 *
 * Units: none.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the group's.
 * Returns: the engine; NULL if the group is NULL.
 * Since: 0.1.0.
 */
TW_API struct tw_engine *tw_group_here(const struct tw_group *group);

/**
 * Calls tw_schedule for the calling thread's engine. As with tw_schedule, `*ret_handle` is written
 * before the callback can run.
 *
 * Units: as tw_schedule.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule; -EINVAL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_group_schedule(struct tw_group *group, int64_t delay_ns,
						 const struct tw_kind *kind, void *arg,
						 struct tw_handle *ret_handle);

/**
 * Calls tw_schedule_at for the calling thread's engine. A deadline means the same in each engine of
 * a group: the engines share the clock that the options give, or each has a default clock, and all
 * default clocks count the same time. As with tw_schedule, `*ret_handle` is written before the
 * callback can run.
 *
 * Units: as tw_schedule_at.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule.
 * Returns: as tw_schedule_at; -EINVAL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_group_schedule_at(struct tw_group *group, int64_t deadline_ns,
						    const struct tw_kind *kind, void *arg,
						    struct tw_handle *ret_handle);

/**
 * Calls tw_schedule_periodic for the calling thread's engine. All runs of the chain stay on that
 * engine. As with tw_schedule_periodic, `*ret_handle` is written before the first run can begin.
 *
 * Units: as tw_schedule_periodic.
 * Threads: any.
 * In callback: yes, as tw_schedule.
 * Progress: as tw_schedule.
 * Lifetime: as tw_schedule_periodic.
 * Returns: as tw_schedule_periodic; -EINVAL for a group of NULL.
 * Since: 0.1.0.
 */
TW_API TW_CHECKED_SCHEDULE int tw_group_schedule_periodic(struct tw_group *group,
							  const struct tw_period *period,
							  const struct tw_kind *kind, void *arg,
							  struct tw_handle *ret_handle);

/**
 * Returns how many timeouts are pending in all engines of a group together. The errors of
 * tw_engine_pending for each engine add up.
 *
 * Units: timeouts.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free (sums the lanes of each engine).
 * Lifetime: none.
 * Returns: 0 or more; -EINVAL for NULL; -ECHILD (one of the engines still belongs to the parent).
 * Since: 0.1.0.
 */
TW_API int64_t tw_group_pending(struct tw_group *group);

/**
 * Reads the counters of all engines of a group: their sums, and the maximum of `largest_transfer`
 * and of `latest_ns`.
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
