/* SPDX-License-Identifier: MIT */
#include "explorer/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1 << 16 };

static void *resize(void *memory, size_t count, size_t bytes)
{
	void *ret = realloc(memory, count * bytes);

	if (ret == NULL) {
		fprintf(stderr, "no memory for %zu states\n", count);
		exit(2);
	}
	return ret;
}

static uint64_t hash(const struct packed *packed)
{
	uint64_t ret = 0;

	for (int i = 0; i < STATE_WORDS; i++) {
		ret = (ret ^ packed->word[i]) * UINT64_C(0x9e3779b97f4a7c15);
		ret ^= ret >> 32;
	}
	return ret * UINT64_C(0xbf58476d1ce4e5b9) >> 16;
}

/* Returns the place in the hash that has the state or, if none has it, a free place. */
static uint64_t place_of(const struct table *table, const struct packed *packed)
{
	uint64_t place = hash(packed) & table->mask;

	while (table->places[place] != TABLE_NONE &&
	       memcmp(&table->states[table->places[place]], packed, sizeof(*packed)) != 0)
		place = (place + 1) & table->mask;
	return place;
}

/* Grows the table so that at least half of the hash's places are free. */
static void grow(struct table *table, uint32_t room)
{
	table->room = room;
	table->mask = (uint64_t)room * 2 - 1;
	table->states = resize(table->states, room, sizeof(*table->states));
	table->parents = resize(table->parents, room, sizeof(*table->parents));
	table->places = resize(table->places, (size_t)room * 2, sizeof(*table->places));
	memset(table->places, 0xff, (size_t)room * 2 * sizeof(*table->places));
	for (uint32_t i = 0; i < table->count; i++)
		table->places[place_of(table, &table->states[i])] = i;
}

void table_init(struct table *table)
{
	*table = (struct table){.states = NULL};
	grow(table, FIRST_ROOM);
}

void table_free(struct table *table)
{
	free(table->states);
	free(table->parents);
	free(table->places);
}

uint32_t table_find(const struct table *table, const struct packed *packed)
{
	return table->places[place_of(table, packed)];
}

void table_add(struct table *table, const struct packed *packed, uint32_t parent)
{
	uint64_t place = place_of(table, packed);

	if (table->places[place] != TABLE_NONE)
		return;
	if (table->count == table->room) {
		grow(table, table->room * 2);
		place = place_of(table, packed);
	}
	table->states[table->count] = *packed;
	table->parents[table->count] = parent;
	table->places[place] = table->count++;
}
