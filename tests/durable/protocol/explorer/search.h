/* SPDX-License-Identifier: MIT */
/*
 * The search of all states. It is breadth first, so the first trace that it finds is a shortest
 * one.
 */
#ifndef PROTOCOL_SEARCH_H
#define PROTOCOL_SEARCH_H

#include "checks.h"
#include "explorer/table.h"
#include "steps.h"

struct found {
	enum property property; /* PROPERTY_NONE: all properties hold */
	/* the state in which it broke, or from which the last step broke it */
	uint32_t state;
	bool in_step;
};

/* Checks the properties of all steps, and of all states in which nothing more happens. */
void search_all(struct table *table, struct found *ret_found);
/* Checks that such a state can be reached from each state, without faults and without users. */
void search_ends(const struct table *table, struct found *ret_found);

#endif
