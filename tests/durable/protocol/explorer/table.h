/* SPDX-License-Identifier: MIT */
/* All states that were found, in the order of their finding, each once. */
#ifndef PROTOCOL_TABLE_H
#define PROTOCOL_TABLE_H

#include "state.h"

#define TABLE_NONE UINT32_MAX

struct table {
	struct packed *states;
	uint32_t *parents; /* from which each was found first */
	uint32_t *places;  /* of the hash: a number of a state, or TABLE_NONE */
	uint32_t count, room;
	uint64_t mask;
};

void table_init(struct table *table);
void table_free(struct table *table);
/* TABLE_NONE: it is not there. */
uint32_t table_find(const struct table *table, const struct packed *packed);
/* Adds it if it is not there. */
void table_add(struct table *table, const struct packed *packed, uint32_t parent);

#endif
