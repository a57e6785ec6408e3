/* SPDX-License-Identifier: MIT */
/*
 * Calls on all engines of a group at once: the time limit of a stop, the sums of the counters, and
 * when a group can be destroyed.
 *
 * Seen to fail with these defects: a stop gives each engine the whole time, or gives the last one
 * none; counters are not added up; a sum is reported where the greatest value is required; a group
 * cannot be destroyed because one of its engines was never started.
 */
#include "asleep.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { FOUR = 4, FIELDS = sizeof(struct tw_stats) / sizeof(uint64_t) };

static struct tw_group *group_open(uint32_t flags, const struct tw_options *engine)
{
	struct tw_group_options options;
	struct tw_group *group;

	check_int(tw_group_options_init(&options, sizeof options), 0);
	options.engines = FOUR;
	options.flags = flags;
	options.engine = engine;
	check_int(tw_group_create(&options, &group), 0);
	return group;
}

static void group_close(struct tw_group *group)
{
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_group_destroy(group), 0);
}

/* Returns how long a stop with this time limit takes. It must time out. */
static int64_t stop_takes_ns(struct tw_group *group, int64_t timeout_ns)
{
	int64_t before_ns = monotonic_ns();

	check_int(tw_group_stop(group, NULL, NULL, timeout_ns), -ETIMEDOUT);
	return monotonic_ns() - before_ns;
}

/* All engines are held by callbacks. The caller's time limit must apply to all of them together,
 * not to each. */
Test(group_ends, time_limit_applies_to_all_engines_together)
{
	enum { GIVEN_NS = 50 * NS_PER_MS };
	struct tw_group *group = group_open(0, NULL);
	struct gate gate[FOUR];
	int64_t least_ns = INT64_MAX;

	for (uint32_t i = 0; i < FOUR; i++) {
		gate_init(&gate[i]);
		must_schedule(tw_group_engine(group, i), 0, &gate_kind, &gate[i]);
		gate_await(&gate[i]);
	}
	/* One of several stops must be in time. The others may be late if the machine is busy. */
	for (int try = 0; try < 10 && least_ns >= 2 * GIVEN_NS; try++) {
		int64_t ns = stop_takes_ns(group, GIVEN_NS);

		check_at_least(ns, GIVEN_NS);
		if (ns < least_ns)
			least_ns = ns;
	}
	check_at_most(least_ns, 2 * GIVEN_NS);
	/* Without time to wait, a stop closes the engines and returns. */
	check_int(tw_group_stop(group, NULL, NULL, 0), -ETIMEDOUT);
	check_int(tw_group_stop(group, NULL, NULL, INT64_MIN), -ETIMEDOUT);
	for (uint32_t i = 0; i < FOUR; i++)
		gate_open(&gate[i]);
	group_close(group);
}

/* All engines except the last have ended, so the last one must get all of the time. */
Test(group_ends, last_engine_gets_all_of_the_time_left)
{
	struct tw_group *group = group_open(0, NULL);
	struct gate gate;

	gate_init(&gate);
	must_schedule(tw_group_engine(group, FOUR - 1), 0, &gate_kind, &gate);
	gate_await(&gate);
	check_int(tw_group_stop(group, NULL, NULL, 0), -ETIMEDOUT);
	for (uint32_t i = 0; i < FOUR - 1; i++)
		check_true(engine_state_await(tw_group_engine(group, i), TW_ENGINE_STOPPED));
	check_at_least(stop_takes_ns(group, 20 * NS_PER_MS), 20 * NS_PER_MS);
	gate_open(&gate);
	group_close(group);
}

static void *stop_for_ever(void *argument)
{
	return tw_group_stop(argument, NULL, NULL, TW_NEVER) == 0 ? argument : NULL;
}

/*
 * One engine's callback does not end. The stop must not wait for it before it stops the other
 * engines.
 */
Test(group_ends, stop_does_not_wait_for_one_engine_before_it_stops_the_others)
{
	struct tw_group *group = group_open(0, NULL);
	struct gate gate;
	pthread_t thread;
	void *result;

	gate_init(&gate);
	must_schedule(tw_group_engine(group, 0), 0, &gate_kind, &gate);
	gate_await(&gate);
	check_int(pthread_create(&thread, NULL, stop_for_ever, group), 0);
	check_true(engine_state_await(tw_group_engine(group, 3), TW_ENGINE_STOPPED));
	check_int(tw_engine_state(tw_group_engine(group, 0)), TW_ENGINE_STOPPING);
	check_int(tw_group_stop(group, NULL, NULL, NS_PER_MS), -ETIMEDOUT);
	check_int(tw_group_destroy(group), -EBUSY);
	gate_open(&gate);
	check_int(pthread_join(thread, &result), 0);
	check_true(result == group);
	group_close(group);
}

/* Accepts nothing, so that the drop hook is called for each timeout. */
static size_t reject(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	(void)batch;
	(void)count;
	return 0;
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)self;
	(void)kind;
	(void)arg;
	atomic_fetch_add((atomic_int *)context, 1);
}

static void on_slow(struct tw_handle self, void *arg)
{
	(void)self;
	sleep_ns(2 * NS_PER_MS);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static uint64_t field_of(const struct tw_stats *stats, size_t number)
{
	uint64_t field;

	memcpy(&field, (const char *)stats + number * sizeof field, sizeof field);
	return field;
}

/* Returns whether a group reports the greatest value of its engines for this field, not the sum. */
static bool field_is_greatest(size_t number)
{
	size_t at = number * sizeof(uint64_t);

	return at == offsetof(struct tw_stats, largest_transfer) ||
	       at == offsetof(struct tw_stats, latest_ns) ||
	       at == offsetof(struct tw_stats, slab_bytes);
}

/* Checks the group's counters against those of its engines. All fields of the struct have eight
 * bytes, and the first is its size. */
static void sums_check(struct tw_group *group, const struct tw_stats *sum)
{
	struct tw_stats one[FOUR];

	for (uint32_t i = 0; i < FOUR; i++) {
		one[i] = (struct tw_stats){.size = sizeof one[i]};
		check_int(tw_stats_get(tw_group_engine(group, i), &one[i]), 0);
	}
	for (size_t field = 1; field < FIELDS; field++) {
		uint64_t expected = 0, greatest = 0;

		for (uint32_t i = 0; i < FOUR; i++) {
			uint64_t value = field_of(&one[i], field);

			expected += value;
			greatest = value > greatest ? value : greatest;
		}
		if (field_is_greatest(field))
			expected = greatest;
		check_int(field_of(sum, field), expected);
	}
}

Test(group_ends, each_field_of_the_counters_is_added_up)
{
	static const struct tw_kind slow_kind = TW_KIND_INLINE(on_slow, NULL);
	struct tw_stats sum = {.size = sizeof sum};
	struct tw_options options;
	struct tw_handle handle;
	struct tw_group *group;
	atomic_int dropped = 0;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.dispatch = reject;
	options.rejection = TW_REJECTION_DROP;
	options.on_drop = on_drop;
	options.drop_context = &dropped;
	options.slow_ns = NS_PER_MS;
	options.pending_limit = 4;
	group = group_open(0, &options);
	for (uint32_t i = 0; i < FOUR; i++) {
		struct tw_engine *engine = tw_group_engine(group, i);

		must_schedule(engine, 1, &count_kind, &dropped);
		must_schedule(engine, 1, &slow_kind, &dropped);
		must_schedule(engine, TW_NEVER, &count_kind, &dropped);
		handle = must_schedule(engine, TW_NEVER, &count_kind, &dropped);
		check_int(tw_reschedule(handle, TW_NEVER), TW_RESCHEDULE_DONE);
		check_int(tw_cancel(handle), TW_CANCEL_DONE);
	}
	check_true(wait_until_at_least(&dropped, 2 * FOUR));
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_group_stats_get(group, &sum), 0);
	check_int(sum.dropped, FOUR);
	check_int(sum.executor_rejected, FOUR);
	check_int(sum.slow, FOUR);
	check_int(sum.unexpired, FOUR);
	check_int(sum.cancelled, FOUR);
	check_int(sum.rescheduled, FOUR);
	sums_check(group, &sum);
	check_int(tw_group_destroy(group), 0);
}

static int failing_hook(void *context, void *(*body)(void *arg), void *arg)
{
	(void)context;
	(void)body;
	(void)arg;
	return EPERM;
}

/*
 * If an engine could not be started and has no timeouts, it counts as not started. That must hold
 * in a group as well, so the group can be destroyed.
 */
Test(group_ends, unstarted_engines_do_not_block_destroy)
{
	struct tw_options options;
	struct tw_group *group;
	atomic_int runs = 0;

	check_int(tw_options_init(&options, sizeof options), 0);
	options.thread = failing_hook;
	group = group_open(TW_GROUP_LAZY, &options);
	check_int(tw_group_schedule(group, 1, &count_kind, &runs, NULL), -EPERM);
	check_int(tw_engine_state(tw_group_here(group)), TW_ENGINE_STALLED);
	check_int(tw_group_destroy(group), 0);
	check_int(runs, 0);
}
