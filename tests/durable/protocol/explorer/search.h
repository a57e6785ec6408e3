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
	enum property property; /* the property that is broken; PROPERTY_NONE: all hold */
	/* the state in which the property is broken, or in which the step that broke it begins */
	uint32_t state;
	bool in_step;
};

/*
 * Checks the properties of all steps, and of all states of rest: from these no step happens by
 * itself.
 */
void search_all(struct table *table, struct found *ret_found);
/*
 * Checks that from each state a state of rest can be reached without faults and without steps of
 * users.
 */
void search_ends(const struct table *table, struct found *ret_found);

#endif
