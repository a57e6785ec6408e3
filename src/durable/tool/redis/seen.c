/* SPDX-License-Identifier: MIT */
#include "durable/tool/redis/seen.h"

#include <errno.h>
#include <stdlib.h>

enum { ROOM_FIRST = 1024 };

/*
 * The multiplier of Fibonacci hashing (D. E. Knuth, The Art of Computer Programming, volume 3,
 * section 6.4).
 */
#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

/* Returns the place of a serial in the table, or the free place where it belongs. */
static uint64_t *place_of(const struct twi_tool_seen *seen, uint64_t serial)
{
	size_t at = (size_t)((serial * GOLDEN) >> 20) & (seen->room - 1);

	while (seen->serials[at] != 0 && seen->serials[at] != serial)
		at = (at + 1) & (seen->room - 1);
	return &seen->serials[at];
}

static int grow(struct twi_tool_seen *seen)
{
	struct twi_tool_seen grown = {.room = seen->room == 0 ? ROOM_FIRST : 2 * seen->room};

	grown.serials = calloc(grown.room, sizeof *grown.serials);
	if (grown.serials == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < seen->room; i++)
		if (seen->serials[i] != 0)
			*place_of(&grown, seen->serials[i]) = seen->serials[i];
	grown.count = seen->count;
	free(seen->serials);
	*seen = grown;
	return 0;
}

int twi_tool_seen_add(struct twi_tool_seen *seen, uint64_t serial)
{
	uint64_t *place;

	if (seen->count >= seen->room / 2 && grow(seen) != 0)
		return -ENOMEM;
	place = place_of(seen, serial);
	if (*place == serial)
		return 1;
	*place = serial;
	seen->count++;
	return 0;
}

void twi_tool_seen_free(struct twi_tool_seen *seen)
{
	free(seen->serials);
}
