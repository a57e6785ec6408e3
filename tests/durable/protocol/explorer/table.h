/* SPDX-License-Identifier: MIT */
/*
 * The table of all states that were found. It has each state once, in the order in which the search
 * found them.
 */
#ifndef PROTOCOL_TABLE_H
#define PROTOCOL_TABLE_H

#include "state.h"

#define TABLE_NONE UINT32_MAX

struct table {
	struct packed *states;
	uint32_t *parents; /* for each state, the one from which it was found first */
	/* the places of the hash, each with the number of a state or TABLE_NONE */
	uint32_t *places;
	uint32_t count, room;
	uint64_t mask;
};

void table_init(struct table *table);
void table_free(struct table *table);
/* Returns the state's number, or TABLE_NONE. */
uint32_t table_find(const struct table *table, const struct packed *packed);
/* Adds the state if the table does not have it. */
void table_add(struct table *table, const struct packed *packed, uint32_t parent);

#endif
