/* SPDX-License-Identifier: MIT */
/*
 * Which CPU belongs to which engine of a group: lists of the system, CPUs and nodes shared out, threads
 * that move from CPU to CPU, workers that are pinned.
 *
 * Seen to fail: places dealt out by their number in place of neighbours together; a worker without CPUs of its
 * own pinned to none.
 */
#include "group/group.h"
#include "probe.h"

#include <errno.h>
#include <string.h>

static bool list_is(const char *list, int count, int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	return twi_cpu_list_read(list, &set) && CPU_COUNT(&set) == count &&
	       (count == 0 || (CPU_ISSET((size_t)first, &set) && CPU_ISSET((size_t)last, &set)));
}

Test(group_map, lists)
{
	static const char *const bad[] = {"x", "-1", "1-", "3-1", "1,,2", "1;2", ",1", "1-2-3"};
	cpu_set_t set;

	check_true(list_is("0\n", 1, 0, 0));
	check_true(list_is("0-3", 4, 0, 3));
	check_true(list_is("0-1,8,10-11\n", 5, 0, 11));
	check_true(list_is("", 0, 0, 0));
	check_true(list_is("\n", 0, 0, 0));
	/* More than there can be. */
	check_true(list_is("1020-5000", 4, 1020, 1023));
	check_true(list_is("99999999999999999999", 0, 0, 0));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CPU_ZERO(&set);
		check_true(!twi_cpu_list_read(bad[i], &set));
	}
}

/* As many CPUs, from the first on; the others are none of the process's. */
static void cpus_make(struct twi_group_map *map, uint32_t count)
{
	map->places = count;
	for (uint32_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		map->place_of_cpu[cpu] = cpu < count ? (uint16_t)cpu : TWI_GROUP_NO_PLACE;
}

Test(group_map, shared_out_evenly)
{
	static const uint32_t cpus[] = {1, 2, 3, 8, 128, 1024};
	static const uint32_t engines[] = {1, 2, 3, 4, 7, 128, 1024};
	static struct twi_group_map map;
	static uint16_t engine_of_cpu[TWI_GROUP_CPUS];

	for (size_t c = 0; c < 6; c++) {
		cpus_make(&map, cpus[c]);
		for (size_t e = 0; e < 7; e++) {
			uint32_t of[TW_GROUP_MAX] = {0};

			twi_group_map_share(&map, engines[e], engine_of_cpu);
			for (uint32_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++) {
				check_true(engine_of_cpu[cpu] < engines[e]);
				of[engine_of_cpu[cpu]] += cpu < cpus[c];
				if (cpu > 0 && cpu < cpus[c])
					check_true(engine_of_cpu[cpu] >= engine_of_cpu[cpu - 1]);
			}
			for (uint32_t i = 0; i < engines[e] && engines[e] <= cpus[c]; i++) {
				check_at_least(of[i], cpus[c] / engines[e]);
				check_at_most(of[i], cpus[c] / engines[e] + 1);
			}
		}
	}
}

/* Each CPU of the process is in a place, of either kind, and no other is. */
Test(group_map, this_machine)
{
	static struct twi_group_map cpus, nodes;
	cpu_set_t allowed;

	check_int(sched_getaffinity(0, sizeof allowed, &allowed), 0);
	twi_group_map_read(TW_GROUP_BY_CPU, &cpus);
	twi_group_map_read(TW_GROUP_BY_NODE, &nodes);
	check_int(cpus.places, CPU_COUNT(&allowed));
	check_true(nodes.places >= 1 && nodes.places <= cpus.places);
	for (size_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++) {
		bool ours = CPU_ISSET(cpu, &allowed);

		check_int(cpus.place_of_cpu[cpu] != TWI_GROUP_NO_PLACE, ours);
		check_int(nodes.place_of_cpu[cpu] != TWI_GROUP_NO_PLACE, ours);
		if (ours)
			check_true(nodes.place_of_cpu[cpu] < nodes.places);
	}
}

static struct tw_group *group_open(uint32_t engines, uint32_t rule, uint32_t flags)
{
	struct tw_group_options options;
	struct tw_group *group;

	check_int(tw_group_options_init(&options, sizeof options), 0);
	options.engines = engines;
	options.rule = rule;
	options.flags = flags;
	check_int(tw_group_create(&options, &group), 0);
	return group;
}

static void group_close(struct tw_group *group)
{
	check_int(tw_group_stop(group, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_group_destroy(group), 0);
}

/* Goes from CPU to CPU, and its schedules with it. */
Test(group_map, a_thread_that_moves)
{
	struct tw_group *group = group_open(TW_GROUP_AUTO, TW_GROUP_BY_CPU, 0);
	cpu_set_t allowed, one;
	uint32_t number = 0;

	check_int(sched_getaffinity(0, sizeof allowed, &allowed), 0);
	for (size_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		check_int(sched_setaffinity(0, sizeof one, &one), 0);
		check_true(tw_group_here(group) == tw_group_engine(group, number));
		number++;
	}
	check_int(number, tw_group_engines(group));
	check_int(sched_setaffinity(0, sizeof allowed, &allowed), 0);
	group_close(group);
}

static cpu_set_t worker_set;

static void on_worker(struct tw_handle self, void *arg)
{
	(void)self;
	(void)sched_getaffinity(0, sizeof worker_set, &worker_set);
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind worker_kind = TW_KIND(on_worker, NULL);

/* The worker has the CPUs that its engine has, and no others. */
static void pinned_check(uint32_t rule, uint32_t engines)
{
	struct tw_group *group = group_open(engines, rule, TW_GROUP_PINNED);

	for (uint32_t i = 0; i < group->count; i++) {
		atomic_int done = 0;

		must_schedule(tw_group_engine(group, i), 0, &worker_kind, &done);
		check_true(wait_until_at_least(&done, 1));
		for (size_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
			if (CPU_ISSET(cpu, &worker_set))
				check_int(group->engine_of_cpu[cpu], i);
	}
	group_close(group);
}

Test(group_map, pinned_workers)
{
	pinned_check(TW_GROUP_BY_CPU, TW_GROUP_AUTO);
	pinned_check(TW_GROUP_BY_CPU, 1);
	pinned_check(TW_GROUP_BY_NODE, TW_GROUP_AUTO);
}

/* More engines than CPUs: those without one run anywhere. */
Test(group_map, more_engines_than_cpus)
{
	struct tw_group *group = group_open(67, TW_GROUP_BY_CPU, TW_GROUP_PINNED);
	atomic_int done = 0;

	for (uint32_t i = 0; i < 67; i++)
		must_schedule(tw_group_engine(group, i), 0, &count_kind, &done);
	check_true(wait_until_at_least(&done, 67));
	group_close(group);
}
