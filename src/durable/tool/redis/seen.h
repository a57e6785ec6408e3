/* SPDX-License-Identifier: MIT */
/* Serials that a dump has written. A timer that was moved meanwhile comes again. */
#ifndef TWI_DURABLE_TOOL_REDIS_SEEN_H
#define TWI_DURABLE_TOOL_REDIS_SEEN_H

#include <stddef.h>
#include <stdint.h>

/* A hash table with open addressing; 0 is no serial. */
struct twi_tool_seen {
	uint64_t *serials;
	size_t count, room;
};

/* 0: it is new; 1: it was there; -ENOMEM. */
int twi_tool_seen_add(struct twi_tool_seen *seen, uint64_t serial);
void twi_tool_seen_free(struct twi_tool_seen *seen);

#endif
