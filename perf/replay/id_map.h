/* SPDX-License-Identifier: MIT */
/*
 * Numbers 64-bit ids from 0 on, in the order of their first appearance.
 */
#ifndef PERF_REPLAY_ID_MAP_H
#define PERF_REPLAY_ID_MAP_H

#include <stdint.h>

struct id_map_entry {
	uint64_t id;
	/* The id's number plus 1. 0: the entry is free. */
	uint32_t number_plus_1;
};

/* A zeroed map is empty. */
struct id_map {
	struct id_map_entry *entries;
	uint32_t room;
	uint32_t count;
};

/* Returns 0 and the id's number, or -ENOMEM. */
int id_map_number(struct id_map *map, uint64_t id, uint32_t *ret_number);

void id_map_done(struct id_map *map);

#endif
