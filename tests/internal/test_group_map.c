/* SPDX-License-Identifier: MIT */
/*
 * Tests which CPU belongs to which engine of a group. The tests cover the system's lists of CPUs,
 * the distribution of CPUs and nodes over engines, threads that move between CPUs, and pinned
 * workers.
 *
 * Seen to fail with these defects:
 * - CPUs are assigned to the engines in turn, so that neighbours are separated;
 * - a worker without CPUs of its own is pinned to an empty set;
 * - threads use only the first of a node's engines;
 * - if the system has more possible CPUs than a cpu_set_t can hold, it is treated as one that does
 *   not answer;
 * - if the system does not answer, the map has no CPU at all;
 * - the number of a CPU is used without a check.
 */
#include "group/group.h"
#include "probe.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Replaces the system's answers about CPUs. */
static enum { TRUTH, MANY_CPUS, NOT_TOLD, BEYOND_THE_SET } affinity;
/* the number that the test returns for the current CPU; -2: the real one */
static int cpu_told = -2;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	static const size_t many_bytes = 4096 / 8;
	long copied;

	if (affinity == NOT_TOLD || (affinity != TRUTH && bytes < many_bytes)) {
		errno = affinity == NOT_TOLD ? EPERM : EINVAL;
		return -1;
	}
	memset(set, 0, bytes);
	if (affinity == BEYOND_THE_SET) {
		CPU_SET_S((size_t)2000, bytes, set);
		return 0;
	}
	copied = syscall(SYS_sched_getaffinity, pid, bytes, set);
	return copied < 0 ? -1 : 0;
}

int sched_getcpu(void)
{
	unsigned int cpu = 0;

	if (cpu_told != -2)
		return cpu_told;
	return syscall(SYS_getcpu, &cpu, NULL, NULL) == 0 ? (int)cpu : -1;
}

static bool list_is(const char *list, int count, int first, int last)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	return twi_cpu_list_read(list, &set) && CPU_COUNT(&set) == count &&
	       (count == 0 || (CPU_ISSET((size_t)first, &set) && CPU_ISSET((size_t)last, &set)));
}

Test(group_map, cpu_lists_are_read_and_bad_ones_rejected)
{
	static const char *const bad[] = {"x", "-1", "1-", "3-1", "1,,2", "1;2", ",1", "1-2-3"};
	cpu_set_t set;

	check_true(list_is("0\n", 1, 0, 0));
	check_true(list_is("0-3", 4, 0, 3));
	check_true(list_is("0-1,8,10-11\n", 5, 0, 11));
	check_true(list_is("", 0, 0, 0));
	check_true(list_is("\n", 0, 0, 0));
	/* The lists contain CPUs beyond the largest possible number. */
	check_true(list_is("1020-5000", 4, 1020, 1023));
	check_true(list_is("99999999999999999999", 0, 0, 0));
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		CPU_ZERO(&set);
		check_true(!twi_cpu_list_read(bad[i], &set));
	}
}

/* Makes a map in which the first `count` CPUs belong to the process and the others do not. */
static void cpus_make(struct twi_group_map *map, uint32_t count)
{
	map->places = count;
	for (uint32_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		map->place_of_cpu[cpu] = cpu < count ? (uint16_t)cpu : TWI_GROUP_NO_PLACE;
}

Test(group_map, cpus_are_shared_out_evenly)
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

/* Makes a map of two nodes. The first `count` CPUs belong to them in turn. */
static void nodes_make(struct twi_group_map *map, uint32_t count)
{
	cpus_make(map, count);
	map->places = 2;
	for (uint32_t cpu = 0; cpu < count; cpu++)
		map->place_of_cpu[cpu] = cpu % 2;
}

/* With more engines than nodes, each engine must get a share of the CPUs of one node only. */
Test(group_map, engines_of_a_node_share_its_cpus)
{
	static const uint16_t of_four[] = {0, 2, 0, 2, 1, 3, 1, 3};
	static const uint16_t of_three[] = {0, 1, 0, 1, 0, 2, 0, 2};
	static uint16_t engine_of_cpu[TWI_GROUP_CPUS];
	static struct twi_group_map map;

	nodes_make(&map, 8);
	twi_group_map_share(&map, 4, engine_of_cpu);
	for (uint32_t cpu = 0; cpu < 8; cpu++)
		check_int(engine_of_cpu[cpu], of_four[cpu]);
	twi_group_map_share(&map, 3, engine_of_cpu);
	for (uint32_t cpu = 0; cpu < 8; cpu++)
		check_int(engine_of_cpu[cpu], of_three[cpu]);
	/* With as many engines as CPUs, each engine must get one CPU. */
	twi_group_map_share(&map, 8, engine_of_cpu);
	for (uint32_t cpu = 0; cpu < 8; cpu++)
		check_int(engine_of_cpu[cpu], cpu % 2 * 4 + cpu / 2);
	/* With more engines than CPUs, each node must use its own half of the engines. */
	twi_group_map_share(&map, 1000, engine_of_cpu);
	for (uint32_t cpu = 0; cpu < 8; cpu++)
		check_int(engine_of_cpu[cpu] / 500, cpu % 2);
}

/*
 * Tests three systems: a kernel that was built for thousands of CPUs, a kernel that does not
 * answer, and one whose process runs on CPUs that a cpu_set_t cannot hold.
 */
Test(group_map, map_follows_the_systems_answer_about_cpus)
{
	static struct twi_group_map truth, told;
	static uint16_t engine_of_cpu[TWI_GROUP_CPUS];

	twi_group_map_read(TW_GROUP_BY_CPU, &truth);
	affinity = MANY_CPUS;
	twi_group_map_read(TW_GROUP_BY_CPU, &told);
	check_int(memcmp(&told, &truth, sizeof told), 0);
	/* Without an answer, the map must have all CPUs of the machine, including those of this
	 * process. */
	affinity = NOT_TOLD;
	twi_group_map_read(TW_GROUP_BY_CPU, &told);
	check_at_least(told.places, truth.places);
	for (uint32_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		check_true(truth.place_of_cpu[cpu] == TWI_GROUP_NO_PLACE ||
			   told.place_of_cpu[cpu] != TWI_GROUP_NO_PLACE);
	affinity = BEYOND_THE_SET;
	for (uint32_t rule = TW_GROUP_BY_CPU; rule <= TW_GROUP_BY_NODE; rule++) {
		twi_group_map_read(rule, &told);
		check_int(told.places, 0);
		twi_group_map_share(&told, 3, engine_of_cpu);
		check_int(engine_of_cpu[5], 2);
	}
	affinity = TRUTH;
}

/* With either rule, exactly the CPUs of the process must have a place. */
Test(group_map, each_cpu_of_the_process_has_a_place)
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

/* When the thread moves to another CPU, its schedules must go to the engine of that CPU. */
Test(group_map, moved_thread_gets_the_engine_of_its_cpu)
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

/*
 * In this test, the system does not report the current CPU, or reports one that is unknown or not
 * the process's.
 */
Test(group_map, unknown_cpu_gets_an_engine_of_the_group)
{
	static const int told[] = {-1, TWI_GROUP_CPUS - 1, TWI_GROUP_CPUS, 4 * TWI_GROUP_CPUS};
	struct tw_group *group;
	atomic_int done = 0;

	for (uint32_t rule = TW_GROUP_BY_CPU; rule <= TW_GROUP_BY_NODE; rule++) {
		group = group_open(3, rule, 0);
		for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
			const struct tw_engine *here;

			cpu_told = told[i];
			here = tw_group_here(group);
			check_true(here == group->engine[0] || here == group->engine[1] ||
				   here == group->engine[2]);
			check_int(tw_group_schedule(group, 1, &count_kind, &done, NULL), 0);
		}
		cpu_told = -2;
		check_true(wait_until_at_least(&done, 4));
		done = 0;
		group_close(group);
	}
	/*
	 * If no CPU is known at creation either, the group must have one engine, or as many as were
	 * asked for.
	 */
	affinity = BEYOND_THE_SET;
	group = group_open(TW_GROUP_AUTO, TW_GROUP_BY_CPU, TW_GROUP_PINNED);
	affinity = TRUTH;
	check_int(group->count, 1);
	check_int(tw_group_schedule(group, 1, &count_kind, &done, NULL), 0);
	check_true(wait_until_at_least(&done, 1));
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

/* Checks that each pinned worker is allowed on exactly the CPUs of its engine. */
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

Test(group_map, pinned_workers_run_on_the_cpus_of_their_engine)
{
	pinned_check(TW_GROUP_BY_CPU, TW_GROUP_AUTO);
	pinned_check(TW_GROUP_BY_CPU, 1);
	pinned_check(TW_GROUP_BY_NODE, TW_GROUP_AUTO);
}

/* With more engines than CPUs, a worker without a CPU of its own must run on any CPU. */
Test(group_map, more_engines_than_cpus_all_run)
{
	struct tw_group *group = group_open(67, TW_GROUP_BY_CPU, TW_GROUP_PINNED);
	atomic_int done = 0;

	for (uint32_t i = 0; i < 67; i++)
		must_schedule(tw_group_engine(group, i), 0, &count_kind, &done);
	check_true(wait_until_at_least(&done, 67));
	group_close(group);
}
