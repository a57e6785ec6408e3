/* SPDX-License-Identifier: MIT */
/*
 * A group's counters: each is the sum of its engines', or of two of them the greatest; the struct is
 * compared as a whole, so that one that is added to it is not forgotten here.
 *
 * Seen to fail: slow, executor_refused and dropped left out of the sum.
 */
#include "probe.h"

#include <errno.h>
#include <string.h>

enum { ENGINES = 2, COUNTERS = sizeof(struct tw_stats) / sizeof(uint64_t) - 1 };

#define GREATEST(counter) (offsetof(struct tw_stats, counter) / sizeof(uint64_t) - 1)

/* As numbers, the size left out. */
static void numbers_of(const struct tw_stats *stats, uint64_t ret_numbers[COUNTERS])
{
	memcpy(ret_numbers, &stats->scheduled, COUNTERS * sizeof(uint64_t));
}

static size_t take_half(void *context, const struct tw_due *due, size_t count)
{
	size_t accepted = 0;

	(void)context;
	while (accepted < count / 2 && tw_due_run(&due[accepted]) == 0)
		accepted++;
	return accepted;
}

static atomic_int ends;

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)context;
	(void)self;
	(void)kind;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static void on_run(struct tw_handle self, void *arg)
{
	(void)self;
	sleep_ns(NS_PER_MS);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind slow_kind = TW_KIND(on_run, NULL);

static struct tw_group *group_open(void)
{
	struct tw_group_options options;
	struct tw_group *group = NULL;
	struct tw_options engine;

	check_int(tw_options_init(&engine, sizeof engine), 0);
	engine.slow_ns = 1;
	engine.tick_ns = 100000;
	engine.late_ns = engine.tick_ns;
	engine.pending_limit = 10;
	engine.dispatch = take_half;
	engine.refusal = TW_REFUSAL_DROP;
	engine.drop = on_drop;
	check_int(tw_group_options_init(&options, sizeof options), 0);
	options.engines = ENGINES;
	options.engine = &engine;
	check_int(tw_group_create(&options, &group), 0);
	return group;
}

/* Ten due at once, all that its limit takes, of which the first half runs. */
static void engine_use(struct tw_engine *engine)
{
	struct tw_item items[10];

	for (int i = 0; i < 10; i++)
		items[i] = (struct tw_item){20 * NS_PER_MS, &slow_kind, &ends};
	check_int(tw_schedule_many(engine, items, 10, NULL, NULL), 10);
	check_int(tw_schedule(engine, 0, &slow_kind, &ends, NULL), -EAGAIN);
}

static void check_sums(struct tw_group *group)
{
	struct tw_stats all = {.size = sizeof all};
	uint64_t sum[COUNTERS] = {0}, one[COUNTERS], numbers[COUNTERS];

	for (uint32_t i = 0; i < ENGINES; i++) {
		struct tw_stats stats = stats_of(tw_group_engine(group, i));

		numbers_of(&stats, one);
		for (size_t at = 0; at < COUNTERS; at++) {
			if (at != GREATEST(largest_transfer) && at != GREATEST(latest_ns))
				sum[at] += one[at];
			else if (one[at] > sum[at])
				sum[at] = one[at];
		}
	}
	check_int(tw_group_stats_get(group, &all), 0);
	numbers_of(&all, numbers);
	for (size_t at = 0; at < COUNTERS; at++)
		cr_assert(numbers[at] == sum[at], "counter %zu is %llu, its sum %llu", at,
			  (unsigned long long)numbers[at], (unsigned long long)sum[at]);
	check_at_least(all.slow, ENGINES);
	check_at_least(all.executor_refused, ENGINES);
	check_int(all.dropped, all.executor_refused);
	check_at_least(all.refused, ENGINES);
	check_at_least(all.late, ENGINES);
	check_int(all.expired, 10 * ENGINES);
}

Test(group_stats, each_counter_is_there)
{
	struct tw_group *group = group_open();

	for (uint32_t i = 0; i < ENGINES; i++)
		engine_use(tw_group_engine(group, i));
	check_true(wait_until_at_least(&ends, 10 * ENGINES));
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	check_sums(group);
	check_int(tw_group_destroy(group), 0);
}
