/* SPDX-License-Identifier: MIT */
/* The kinds of a store, by their numbers there. */
#ifndef TWI_DURABLE_TOOL_KINDS_H
#define TWI_DURABLE_TOOL_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct twi_tool_kinds {
	char **names; /* indexed by number; NULL if there is no such kind */
	bool *paused;
	size_t count; /* one more than the greatest number */
};

/* Adds or replaces a kind. Returns 0 or -ENOMEM. */
int twi_tool_kinds_add(struct twi_tool_kinds *kinds, uint32_t number, const char *name,
		       bool paused);
void twi_tool_kinds_free(struct twi_tool_kinds *kinds);

/* Returns the name of a kind, or NULL. */
const char *twi_tool_kind(const struct twi_tool_kinds *kinds, uint32_t number);
/* Returns the number of a kind, or 0 if there is none. No kind has the number 0. */
uint32_t twi_tool_kind_number(const struct twi_tool_kinds *kinds, const char *name);
/* Returns true if the number is that of the kind `name`, or if `name` is NULL. */
bool twi_tool_wanted(const struct twi_tool_kinds *kinds, const char *name, uint32_t number);
bool twi_tool_any_paused(const struct twi_tool_kinds *kinds);

#endif
