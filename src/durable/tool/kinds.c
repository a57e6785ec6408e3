/* SPDX-License-Identifier: MIT */
#include "durable/tool/kinds.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Makes space for numbers below `count`. */
static int kinds_grow(struct twi_tool_kinds *kinds, size_t count)
{
	char **names = realloc(kinds->names, count * sizeof(*names));
	bool *paused = realloc(kinds->paused, count * sizeof(*paused));

	if (names != NULL)
		kinds->names = names;
	if (paused != NULL)
		kinds->paused = paused;
	if (names == NULL || paused == NULL)
		return -ENOMEM;
	for (; kinds->count < count; kinds->count++) {
		names[kinds->count] = NULL;
		paused[kinds->count] = false;
	}
	return 0;
}

int twi_tool_kinds_add(struct twi_tool_kinds *kinds, uint32_t number, const char *name, bool paused)
{
	size_t count = (size_t)number + 1;

	if (count > kinds->count && kinds_grow(kinds, count) != 0)
		return -ENOMEM;
	free(kinds->names[number]);
	kinds->names[number] = strdup(name);
	kinds->paused[number] = paused;
	return kinds->names[number] == NULL ? -ENOMEM : 0;
}

void twi_tool_kinds_free(struct twi_tool_kinds *kinds)
{
	for (size_t i = 0; i < kinds->count; i++)
		free(kinds->names[i]);
	free(kinds->names);
	free(kinds->paused);
	*kinds = (struct twi_tool_kinds){.names = NULL};
}

const char *twi_tool_kind(const struct twi_tool_kinds *kinds, uint32_t number)
{
	return number < kinds->count ? kinds->names[number] : NULL;
}

uint32_t twi_tool_kind_number(const struct twi_tool_kinds *kinds, const char *name)
{
	for (uint32_t i = 1; i < kinds->count; i++)
		if (kinds->names[i] != NULL && strcmp(kinds->names[i], name) == 0)
			return i;
	return 0;
}

bool twi_tool_wanted(const struct twi_tool_kinds *kinds, const char *name, uint32_t number)
{
	const char *is = twi_tool_kind(kinds, number);

	return name == NULL || (is != NULL && strcmp(is, name) == 0);
}

bool twi_tool_any_paused(const struct twi_tool_kinds *kinds)
{
	return kinds->count > 0 && memchr(kinds->paused, true, kinds->count) != NULL;
}
