/* SPDX-License-Identifier: MIT */
/*
 * Uses a group: finds the engine for the calling thread, and makes calls on all engines.
 *
 * A thread caches the engine that a group gave it last. The cache is valid only for that group's
 * id, which no other group ever has. The cache also becomes invalid when the thread's wheel_of
 * changes. So a thread that becomes a worker or an owner looks up its engine again.
 */
#include "group/group.h"

#include "base/atomic.h"
#include "base/sized.h"
#include "expiry/measure.h"
#include "stats/histogram.h"
#include "thread/futex.h"

#include <errno.h>

/* The group that a thread used last, and the engine that it got. */
static _Thread_local struct {
	uint64_t id;
	const void *wheel_of;
	struct tw_engine *engine;
} known;

/*
 * Returns the engine of this group that the calling thread is the worker or the owner of, or NULL.
 */
static struct tw_engine *own_engine(const struct tw_group *group)
{
	const void *worker = twi_thread_self.wheel_of;

	for (uint32_t i = 0; worker != NULL && i < group->count; i++)
		if (worker == &group->engine[i]->worker)
			return group->engine[i];
	return NULL;
}

/* Returns the thread's number. Threads get consecutive numbers. */
static uint32_t thread_number(void)
{
	static _Atomic uint32_t dealt;
	static _Thread_local uint32_t number; /* from 1 on, or 0 if the thread has no number yet */

	if (number == 0)
		/* RELAXED: the number only chooses an engine, and publishes no data. */
		number = twi_fetch_add_relaxed(&dealt, 1) + 1;
	return number - 1;
}

static struct tw_engine *cpu_engine(const struct tw_group *group)
{
	int cpu = sched_getcpu();

	if (TWI_UNLIKELY(cpu < 0 || cpu >= TWI_GROUP_CPUS))
		return group->engine[(uint32_t)cpu % group->count];
	return group->engine[group->engine_of_cpu[cpu]];
}

static TWI_NOINLINE struct tw_engine *any_engine(const struct tw_group *group)
{
	struct tw_engine *engine = own_engine(group);

	if (engine == NULL && group->rule != TW_GROUP_BY_THREAD)
		return cpu_engine(group);
	if (engine == NULL)
		engine = group->engine[thread_number() % group->count];
	known.id = group->id;
	known.wheel_of = twi_thread_self.wheel_of;
	known.engine = engine;
	return engine;
}

static inline struct tw_engine *here(const struct tw_group *group)
{
	if (TWI_LIKELY(known.id == group->id && known.wheel_of == twi_thread_self.wheel_of))
		return known.engine;
	/* For a thread without a wheel only its present CPU counts, so the cache is not used. */
	if (group->rule != TW_GROUP_BY_THREAD && twi_thread_self.wheel_of == NULL)
		return cpu_engine(group);
	return any_engine(group);
}

struct tw_engine *tw_group_here(const struct tw_group *group)
{
	return group != NULL ? here(group) : NULL;
}

int tw_group_schedule(struct tw_group *group, int64_t delay_ns, const struct tw_kind *kind,
		      void *arg, struct tw_handle *ret_handle)
{
	return tw_schedule(tw_group_here(group), delay_ns, kind, arg, ret_handle);
}

int tw_group_schedule_at(struct tw_group *group, int64_t deadline_ns, const struct tw_kind *kind,
			 void *arg, struct tw_handle *ret_handle)
{
	return tw_schedule_at(tw_group_here(group), deadline_ns, kind, arg, ret_handle);
}

int tw_group_schedule_periodic(struct tw_group *group, const struct tw_period *period,
			       const struct tw_kind *kind, void *arg, struct tw_handle *ret_handle)
{
	return tw_schedule_periodic(tw_group_here(group), period, kind, arg, ret_handle);
}

int tw_group_engines(const struct tw_group *group)
{
	return group != NULL ? (int)group->count : -EINVAL;
}

struct tw_engine *tw_group_engine(const struct tw_group *group, uint32_t number)
{
	return group != NULL && number < group->count ? group->engine[number] : NULL;
}

bool twi_group_inside(const struct tw_group *group)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (twi_engine_inside(group->engine[i]))
			return true;
	return false;
}

/* Returns whether this is a forked child that has not taken over all of the engines. */
static bool of_parent(const struct tw_group *group)
{
	for (uint32_t i = 0; i < group->count; i++)
		if (twi_engine_of_parent(group->engine[i]))
			return true;
	return false;
}

static int64_t left_ns(int64_t until_ns)
{
	return until_ns == INT64_MAX ? TW_NEVER : until_ns - twi_monotonic_ns();
}

int tw_group_stop(struct tw_group *group, tw_unexpired_hook *on_unexpired, void *context,
		  int64_t timeout_ns)
{
	int64_t until_ns = twi_until_ns(timeout_ns);
	int result = 0;

	if (group == NULL)
		return -EINVAL;
	if (of_parent(group))
		return -ECHILD;
	if (twi_group_inside(group))
		return -EDEADLK;
	/*
	 * Every engine must begin to stop before the first wait, so that all engines stop at the
	 * same time.
	 */
	for (uint32_t i = 0; i < group->count; i++)
		(void)tw_engine_stop(group->engine[i], on_unexpired, context, 0);
	for (uint32_t i = 0; i < group->count; i++) {
		int error =
			tw_engine_stop(group->engine[i], on_unexpired, context, left_ns(until_ns));

		if (error != 0)
			result = error;
	}
	return result;
}

int64_t tw_group_pending(struct tw_group *group)
{
	int64_t sum = 0;

	if (group == NULL)
		return -EINVAL;
	for (uint32_t i = 0; i < group->count; i++) {
		int64_t pending = tw_engine_pending(group->engine[i]);

		if (pending < 0)
			return pending;
		sum += pending;
	}
	return sum;
}

static uint64_t greater(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

_Static_assert(sizeof(struct tw_stats) == 32 * 8, "each field is added up below");

static void stats_add(struct tw_stats *sum, const struct tw_stats *more)
{
	sum->scheduled += more->scheduled;
	sum->rejected += more->rejected;
	sum->expired += more->expired;
	sum->cancelled += more->cancelled;
	sum->unexpired += more->unexpired;
	sum->pending += more->pending;
	sum->transferred += more->transferred;
	sum->transfers += more->transfers;
	sum->largest_transfer = greater(sum->largest_transfer, more->largest_transfer);
	sum->turns += more->turns;
	sum->parks += more->parks;
	sum->wheel_bytes += more->wheel_bytes;
	sum->wheel_allocations += more->wheel_allocations;
	sum->check_failures += more->check_failures;
	sum->late += more->late;
	sum->latest_ns = greater(sum->latest_ns, more->latest_ns);
	sum->periodic_runs += more->periodic_runs;
	sum->slow += more->slow;
	sum->executor_rejected += more->executor_rejected;
	sum->dropped += more->dropped;
	sum->cancelled_early += more->cancelled_early;
	sum->rescheduled += more->rescheduled;
	sum->ingress += more->ingress;
	sum->unreclaimed += more->unreclaimed;
	sum->woken_by_deadline += more->woken_by_deadline;
	sum->woken_by_producer += more->woken_by_producer;
	sum->woken_by_call += more->woken_by_call;
	sum->woken_otherwise += more->woken_otherwise;
	sum->catch_up_ticks += more->catch_up_ticks;
	sum->cascaded += more->cascaded;
	sum->slab_bytes = greater(sum->slab_bytes, more->slab_bytes);
}

int tw_group_stats_get(struct tw_group *group, struct tw_stats *ret_stats)
{
	struct tw_stats sum = {.size = sizeof sum};

	if (group == NULL || ret_stats == NULL || ret_stats->size < sizeof sum ||
	    ret_stats->size > TWI_STRUCT_BYTES_MAX)
		return -EINVAL;
	for (uint32_t i = 0; i < group->count; i++) {
		struct tw_stats one = {.size = sizeof one};
		int error = tw_stats_get(group->engine[i], &one);

		if (error != 0)
			return error;
		stats_add(&sum, &one);
	}
	sum.size = ret_stats->size;
	twi_copy_out(ret_stats, sum.size, &sum, sizeof sum);
	return 0;
}

int tw_group_histogram_get(struct tw_group *group, uint32_t measurement, struct tw_histogram *ret)
{
	if (group == NULL || measurement >= TWI_MEASUREMENTS || !twi_histogram_right(ret))
		return -EINVAL;
	if (of_parent(group))
		return -ECHILD;
	/* All engines have the same options, so all of them measure or none does. */
	if (group->engine[0]->worker.measure == NULL)
		return -EINVAL;
	twi_histogram_begin(ret);
	for (uint32_t i = 0; i < group->count; i++)
		twi_measure_add(group->engine[i]->worker.measure, measurement, ret);
	twi_histogram_flush(ret);
	return 0;
}
