/* SPDX-License-Identifier: MIT */
/* Reads the names of all exported functions from the linker's list (TESTS_MAP). */
#ifndef TESTS_EXPORTED_H
#define TESTS_EXPORTED_H

#include "check.h"

#include <stdio.h>
#include <string.h>

/* Asserts that `known` is true for each function. Returns the number of functions. */
static inline int exported_check(bool (*known)(const char *name))
{
	FILE *map = fopen(TESTS_MAP, "r");
	char line[128];
	int functions = 0;

	check_true(map != NULL);
	while (fgets(line, sizeof line, map) != NULL) {
		char name[128];

		if (sscanf(line, " tw_%100[a-z_0-9];", name + 3) != 1)
			continue;
		memcpy(name, "tw_", 3);
		cr_assert(known(name), "nothing for %s", name);
		functions++;
	}
	check_int(fclose(map), 0);
	return functions;
}

#endif
