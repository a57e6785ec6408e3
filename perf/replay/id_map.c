/* SPDX-License-Identifier: MIT */
/*
 * Numbers ids with a hash table. The table uses open addressing. When it is half full, its size is
 * doubled.
 */
#include "replay/id_map.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

enum { FIRST_ROOM = 1024 };

static struct id_map_entry *place_of(const struct id_map *map, uint64_t id)
{
	uint64_t hash = id * UINT64_C(0x9e3779b97f4a7c15);
	uint32_t place = (uint32_t)(hash >> 32) & (map->room - 1);

	while (map->entries[place].number_plus_1 && map->entries[place].id != id)
		place = (place + 1) & (map->room - 1);
	return &map->entries[place];
}

static int grow(struct id_map *map)
{
	struct id_map bigger = {.room = map->room ? map->room * 2 : FIRST_ROOM,
				.count = map->count};

	if (bigger.room == 0)
		return -ENOMEM;
	bigger.entries = calloc(bigger.room, sizeof(*bigger.entries));
	if (!bigger.entries)
		return -ENOMEM;
	for (uint32_t i = 0; i < map->room; i++)
		if (map->entries[i].number_plus_1)
			*place_of(&bigger, map->entries[i].id) = map->entries[i];
	free(map->entries);
	*map = bigger;
	return 0;
}

int id_map_number(struct id_map *map, uint64_t id, uint32_t *ret_number)
{
	struct id_map_entry *entry;

	if (map->count >= map->room / 2) {
		int error = grow(map);

		if (error)
			return error;
	}
	entry = place_of(map, id);
	if (!entry->number_plus_1)
		*entry = (struct id_map_entry){.id = id, .number_plus_1 = ++map->count};
	*ret_number = entry->number_plus_1 - 1;
	return 0;
}

void id_map_done(struct id_map *map)
{
	free(map->entries);
}
