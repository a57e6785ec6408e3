/* SPDX-License-Identifier: MIT */
/* The search of all states, breadth first, so the first trace that is found is a shortest one. */
#ifndef PROTOCOL_SEARCH_H
#define PROTOCOL_SEARCH_H

#include "checks.h"
#include "explorer/table.h"
#include "steps.h"

struct found {
	enum property property; /* PROPERTY_NONE: all hold */
	uint32_t state;         /* where it broke, or from which the last step broke it */
	bool in_step;
};

/* The properties of steps, and of states in which nothing happens any more. */
void search_all(struct table *table, struct found *ret_found);
/* From each state there is a way to such a state, without faults and without users. */
void search_ends(const struct table *table, struct found *ret_found);

#endif
