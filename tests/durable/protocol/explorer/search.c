/* SPDX-License-Identifier: MIT */
#include "explorer/search.h"

#include "options.h"
#include "same.h"

#include <stdlib.h>

/* Adds the states that one step from a state leads to. Returns true if a step broke a property. */
static bool follow(struct table *table, uint32_t number, struct steps *steps, struct found *found)
{
	bool rests = true;

	for (int i = 0; i < steps->count; i++) {
		struct packed packed;

		if (steps->next[i].state.broken != PROPERTY_NONE) {
			*found = (struct found){(enum property)steps->next[i].state.broken, number,
						true};
			return true;
		}
		rests = rests && !step_is_sure(steps->next[i].step);
		packed = same_pack(&steps->next[i].state);
		table_add(table, &packed, number);
	}
	if (rests)
		found->property = check_rest(steps->from);
	found->state = number;
	return found->property != PROPERTY_NONE;
}

void search_all(struct table *table, struct found *ret_found)
{
	struct state state = state_first(options.faults, options.cancels);
	struct packed packed = same_pack(&state);
	static struct steps steps;

	*ret_found = (struct found){.property = PROPERTY_NONE};
	table_add(table, &packed, TABLE_NONE);
	for (uint32_t i = 0; i < table->count; i++) {
		state = state_unpack(&table->states[i]);
		steps_of(&state, &steps);
		if (follow(table, i, &steps, ret_found))
			return;
	}
}

enum known {
	KNOWN_NOT = 0,
	KNOWN_SEEN = 1, /* the state was seen in this walk */
	KNOWN_ENDS = 2,
};

struct walk {
	const struct table *table;
	uint8_t *known;
	bool changed;
};

/* Lists the states that a step which happens by itself leads to. Returns how many. */
static int sure_of(const struct table *table, uint32_t number, uint32_t *ret_numbers)
{
	static struct steps steps;
	struct state state = state_unpack(&table->states[number]);
	int count = 0;

	steps_of(&state, &steps);
	for (int i = 0; i < steps.count; i++) {
		struct packed packed;

		if (!step_is_sure(steps.next[i].step))
			continue;
		packed = same_pack(&steps.next[i].state);
		ret_numbers[count++] = table_find(table, &packed);
	}
	return count;
}

static void ends(struct walk *walk, uint32_t number)
{
	uint32_t next[STEPS_MOST];
	int count = sure_of(walk->table, number, next);
	bool found = count == 0;

	walk->known[number] = KNOWN_SEEN;
	for (int i = 0; i < count && !found; i++)
		found = walk->known[next[i]] == KNOWN_ENDS;
	for (int i = 0; i < count && !found; i++) {
		if (walk->known[next[i]] == KNOWN_NOT)
			ends(walk, next[i]);
		found = walk->known[next[i]] == KNOWN_ENDS;
	}
	if (found) {
		walk->known[number] = KNOWN_ENDS;
		walk->changed = true;
	}
}

/*
 * Marks the states from which a state of rest can be reached. If states form a circle, one walk may
 * not be enough. Returns whether it marked any state.
 */
static bool walk_all(struct walk *walk)
{
	walk->changed = false;
	for (uint32_t i = 0; i < walk->table->count; i++) {
		if (walk->known[i] == KNOWN_SEEN)
			walk->known[i] = KNOWN_NOT;
	}
	for (uint32_t i = walk->table->count; i-- > 0;) {
		if (walk->known[i] == KNOWN_NOT)
			ends(walk, i);
	}
	return walk->changed;
}

void search_ends(const struct table *table, struct found *ret_found)
{
	struct walk walk = {.table = table, .known = calloc(table->count, 1)};

	*ret_found = (struct found){.property = PROPERTY_NONE};
	if (walk.known == NULL)
		exit(2);
	while (walk_all(&walk))
		;
	for (uint32_t i = 0; i < table->count && ret_found->property == PROPERTY_NONE; i++) {
		if (walk.known[i] != KNOWN_ENDS)
			*ret_found = (struct found){.property = PROPERTY_LIVELOCK, .state = i};
	}
	free(walk.known);
}
