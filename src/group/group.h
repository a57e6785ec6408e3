/* SPDX-License-Identifier: MIT */
/*
 * A group of engines: a layer above the engine, on its public functions. Of what is below these it has
 * the reading of options, the allocator, and the question which engine the calling thread is in.
 *
 * Nothing is shared between engines of a group, and nothing of a group changes between its begin and its
 * end: whoever schedules reads the table and goes on to the engine.
 */
#ifndef TWI_GROUP_GROUP_H
#define TWI_GROUP_GROUP_H

#include "engine/engine.h"
#include "mech/memory.h"

#include <tickwheel/group.h>

/* CPUs beyond that are dealt out by their number. */
enum { TWI_GROUP_CPUS = CPU_SETSIZE };

struct tw_group {
	/* [const], all. */
	uint64_t id; /* never again that of another group */
	const struct tw_allocator *allocator;
	size_t bytes; /* of this, with its engines */
	uint32_t rule;
	uint32_t count;
	uint16_t engine_of_cpu[TWI_GROUP_CPUS];
	struct tw_engine *engine[];
};

/* What tells engines apart: CPUs, or nodes as sets of CPUs. */
struct twi_group_map {
	uint32_t places;                       /* CPUs, or nodes, that the process may use */
	uint16_t place_of_cpu[TWI_GROUP_CPUS]; /* TWI_GROUP_NO_PLACE: none of them */
};

#define TWI_GROUP_NO_PLACE UINT16_MAX

/* map.c: which places there are, by a rule. */
void twi_group_map_read(uint32_t rule, struct twi_group_map *ret_map);
/* map.c: the engine of each CPU, where the places are shared out among so many engines, or these among
 * the places and their CPUs. */
void twi_group_map_share(const struct twi_group_map *map, uint32_t engines,
			 uint16_t *ret_engine_of_cpu);
/* map.c: adds to `set` what a list of numbers names, as in "0-3,8". False: it is none. */
bool twi_cpu_list_read(const char *list, cpu_set_t *set);

/* use.c: inside a callback of one of its engines, wherever it runs. */
bool twi_group_inside(const struct tw_group *group);

#endif
