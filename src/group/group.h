/* SPDX-License-Identifier: MIT */
/*
 * A group of engines: a layer above the engine, which uses its public functions. From the layers
 * below it uses only the reading of options, the allocator, and the question which engine the
 * calling thread is in.
 *
 * Engines of a group share nothing, and a group does not change between its begin and its end. A
 * producer reads the table and goes on to the engine.
 */
#ifndef TWI_GROUP_GROUP_H
#define TWI_GROUP_GROUP_H

#include "engine/engine.h"
#include "memory/memory.h"

#include <tickwheel/group.h>

/* CPUs beyond this are assigned by their number. */
enum { TWI_GROUP_CPUS = CPU_SETSIZE };

struct tw_group {
	/* [const], all. */
	uint64_t id; /* no other group ever has the same one */
	const struct tw_allocator *allocator;
	size_t bytes; /* of this structure, with its engines */
	uint32_t rule;
	uint32_t count;
	uint16_t engine_of_cpu[TWI_GROUP_CPUS];
	struct tw_engine *engine[];
};

/* The places that engines are assigned to: CPUs, or NUMA nodes as sets of CPUs. */
struct twi_group_map {
	uint32_t places;                       /* CPUs, or nodes, that the process may use */
	uint16_t place_of_cpu[TWI_GROUP_CPUS]; /* TWI_GROUP_NO_PLACE: in none of them */
};

#define TWI_GROUP_NO_PLACE UINT16_MAX

/* map.c: reads which places there are, by a rule. */
void twi_group_map_read(uint32_t rule, struct twi_group_map *ret_map);
/*
 * map.c: assigns an engine to each CPU. If there are fewer engines than places, places share an
 * engine. Otherwise the engines are shared out among the places and their CPUs.
 */
void twi_group_map_share(const struct twi_group_map *map, uint32_t engines,
			 uint16_t *ret_engine_of_cpu);
/* map.c: adds the numbers of a list such as "0-3,8" to `set`. Returns false if it is not a list. */
bool twi_cpu_list_read(const char *list, cpu_set_t *set);

/* use.c: whether the caller is inside a callback of one of the engines, on any thread. */
bool twi_group_inside(const struct tw_group *group);

#endif
