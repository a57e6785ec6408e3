/* SPDX-License-Identifier: MIT */
/*
 * A group of engines: a layer above the engine, which uses the engine's public functions. Apart
 * from these it uses the options reader, the allocator, the measurements, checks of an engine's
 * state (engine/engine.h), and the calling thread's wheel.
 *
 * The engines of a group share nothing, and a group does not change after it is created. A producer
 * reads the table, and then calls the engine.
 */
#ifndef TWI_GROUP_GROUP_H
#define TWI_GROUP_GROUP_H

#include "engine/engine.h"
#include "memory/memory.h"

#include <tickwheel/group.h>

/*
 * The size of the tables of CPUs. A CPU that is not in the tables gets the engine whose number is
 * the CPU's number modulo the number of engines.
 */
enum { TWI_GROUP_CPUS = CPU_SETSIZE };

struct tw_group {
	/* [const], all. */
	uint64_t id; /* no other group ever has the same id */
	const struct tw_allocator *allocator;
	size_t bytes; /* the size of this structure, including the table of engines */
	uint32_t rule;
	uint32_t count;
	uint16_t engine_of_cpu[TWI_GROUP_CPUS];
	struct tw_engine *engine[];
};

/* The places that engines are assigned to: CPUs, or NUMA nodes as sets of CPUs. */
struct twi_group_map {
	uint32_t places;                       /* CPUs, or nodes, that the process may use */
	uint16_t place_of_cpu[TWI_GROUP_CPUS]; /* TWI_GROUP_NO_PLACE: the CPU is in none of them */
};

#define TWI_GROUP_NO_PLACE UINT16_MAX

/* map.c: reads which places the machine has, under `rule`. */
void twi_group_map_read(uint32_t rule, struct twi_group_map *ret_map);
/*
 * map.c: assigns an engine to each CPU. If there are fewer engines than places, neighbouring places
 * share an engine. Otherwise each place gets one or more engines, among which its CPUs are divided.
 */
void twi_group_map_share(const struct twi_group_map *map, uint32_t engines,
			 uint16_t *ret_engine_of_cpu);
/* map.c: adds the numbers of a list such as "0-3,8" to `set`. Returns false if it is not a list. */
bool twi_cpu_list_read(const char *list, cpu_set_t *set);

/* use.c: returns whether the caller, on any thread, is inside a callback of one of the engines. */
bool twi_group_inside(const struct tw_group *group);

#endif
