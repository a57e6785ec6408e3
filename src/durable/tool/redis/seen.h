/* SPDX-License-Identifier: MIT */
/*
 * The set of serials that a dump has written. If a timer is moved during the dump, the dump may
 * find it again, and must not write it twice.
 */
#ifndef TWI_DURABLE_TOOL_REDIS_SEEN_H
#define TWI_DURABLE_TOOL_REDIS_SEEN_H

#include <stddef.h>
#include <stdint.h>

/* A hash table with open addressing. A place with 0 is free, because no serial is 0. */
struct twi_tool_seen {
	uint64_t *serials;
	size_t count, room;
};

/* Adds a serial. Returns 0 if it is new, 1 if the set has it already, or -ENOMEM. */
int twi_tool_seen_add(struct twi_tool_seen *seen, uint64_t serial);
void twi_tool_seen_free(struct twi_tool_seen *seen);

#endif
