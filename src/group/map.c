/* SPDX-License-Identifier: MIT */
/*
 * Decides which CPU belongs to which engine. A place is a CPU, or a NUMA node with its CPUs. If
 * there are fewer engines than places, neighbouring places share an engine. If there are more, the
 * CPUs of a node are shared out among several engines.
 *
 * The map is made once, with the group. If the process later uses other CPUs, or CPUs are added or
 * removed, some schedules go to another engine. Nothing else changes.
 */
#include "group/group.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Reads a number and moves *list behind it. Returns a negative number if there is none. */
static long number_read(const char **list)
{
	char *end;
	long number;

	if (**list < '0' || **list > '9')
		return -1;
	number = strtol(*list, &end, 10);
	*list = end;
	return number;
}

static bool range_read(const char **list, cpu_set_t *set)
{
	long first = number_read(list);
	long last = first;

	if (first >= 0 && **list == '-') {
		(*list)++;
		last = number_read(list);
	}
	if (first < 0 || last < first)
		return false;
	for (long number = first; number <= last && number < TWI_GROUP_CPUS; number++)
		CPU_SET((size_t)number, set);
	return true;
}

bool twi_cpu_list_read(const char *list, cpu_set_t *set)
{
	/* If a node has no CPU, its list is empty. */
	if (*list == '\0' || *list == '\n')
		return true;
	while (range_read(&list, set)) {
		if (*list == '\0' || *list == '\n')
			return true;
		if (*list++ != ',')
			return false;
	}
	return false;
}

/*
 * Reads the list in a file of the system. Returns false if there is no such file, or no list in it.
 */
static bool file_read(const char *path, cpu_set_t *set)
{
	char list[4096];
	FILE *file = fopen(path, "re");
	bool read;

	if (file == NULL)
		return false;
	read = fgets(list, sizeof list, file) != NULL && twi_cpu_list_read(list, set);
	(void)fclose(file);
	return read;
}

/*
 * Reads the calling thread's CPUs. The system requires a buffer that is large enough for every CPU
 * that the machine could have.
 */
static bool affinity_read(cpu_set_t *ret_set)
{
	cpu_set_t sets[8];

	if (sched_getaffinity(0, sizeof sets, sets) != 0)
		return false;
	*ret_set = sets[0];
	return true;
}

/*
 * Reads the calling thread's CPUs. If the system does not report them, uses the first CPUs, as many
 * as are online.
 */
static void allowed_read(cpu_set_t *ret_set)
{
	long count = sysconf(_SC_NPROCESSORS_ONLN);

	CPU_ZERO(ret_set);
	if (affinity_read(ret_set))
		return;
	for (long cpu = 0; cpu < count && cpu < TWI_GROUP_CPUS; cpu++)
		CPU_SET((size_t)cpu, ret_set);
}

static void places_clear(struct twi_group_map *map)
{
	map->places = 0;
	for (int cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		map->place_of_cpu[cpu] = TWI_GROUP_NO_PLACE;
}

/* Adds the next place: all CPUs of `set` that have no place yet. */
static void place_add(struct twi_group_map *map, const cpu_set_t *set)
{
	bool any = false;

	for (size_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++) {
		if (!CPU_ISSET(cpu, set) || map->place_of_cpu[cpu] != TWI_GROUP_NO_PLACE)
			continue;
		map->place_of_cpu[cpu] = (uint16_t)map->places;
		any = true;
	}
	map->places += any;
}

static void cpus_read(const cpu_set_t *allowed, struct twi_group_map *map)
{
	for (size_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		if (CPU_ISSET(cpu, allowed))
			map->place_of_cpu[cpu] = (uint16_t)map->places++;
}

/*
 * Adds the NUMA nodes to the map. Reads a list of nodes with the same function as a list of CPUs.
 */
static void nodes_read(const cpu_set_t *allowed, struct twi_group_map *map)
{
	cpu_set_t nodes, cpus;
	char path[64];

	CPU_ZERO(&nodes);
	(void)file_read("/sys/devices/system/node/online", &nodes);
	for (size_t node = 0; node < TWI_GROUP_CPUS; node++) {
		if (!CPU_ISSET(node, &nodes))
			continue;
		CPU_ZERO(&cpus);
		(void)snprintf(path, sizeof path, "/sys/devices/system/node/node%zu/cpulist", node);
		(void)file_read(path, &cpus);
		CPU_AND(&cpus, &cpus, allowed);
		place_add(map, &cpus);
	}
	/* If the system does not report nodes, all CPUs are one node. */
	place_add(map, allowed);
}

void twi_group_map_read(uint32_t rule, struct twi_group_map *ret_map)
{
	cpu_set_t allowed;
	int cancel_state;

	/* The library's calls must not be cancellation points, but calls on files are. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	allowed_read(&allowed);
	places_clear(ret_map);
	if (rule == TW_GROUP_BY_NODE)
		nodes_read(&allowed, ret_map);
	else
		cpus_read(&allowed, ret_map);
	(void)pthread_setcancelstate(cancel_state, NULL);
}

/*
 * Returns the engine of a CPU, which is number `rank` of the `cpus` in its place. A place may have
 * several engines.
 */
static uint32_t engine_of(const struct twi_group_map *map, uint32_t place, uint32_t rank,
			  uint32_t cpus, uint32_t engines)
{
	uint32_t first = place * engines / map->places;
	uint32_t own = (place + 1) * engines / map->places - first;

	return first + (own > 1 ? rank * own / cpus : 0);
}

void twi_group_map_share(const struct twi_group_map *map, uint32_t engines,
			 uint16_t *ret_engine_of_cpu)
{
	uint32_t cpus[TWI_GROUP_CPUS] = {0}; /* how many CPUs each place has */
	uint32_t seen[TWI_GROUP_CPUS] = {0};

	for (uint32_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++)
		if (map->place_of_cpu[cpu] != TWI_GROUP_NO_PLACE)
			cpus[map->place_of_cpu[cpu]]++;
	for (uint32_t cpu = 0; cpu < TWI_GROUP_CPUS; cpu++) {
		uint32_t place = map->place_of_cpu[cpu];
		uint32_t engine = cpu % engines;

		if (place != TWI_GROUP_NO_PLACE)
			engine = engine_of(map, place, seen[place]++, cpus[place], engines);
		ret_engine_of_cpu[cpu] = (uint16_t)engine;
	}
}
