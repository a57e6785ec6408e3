/* SPDX-License-Identifier: MIT */
/* Writes and reads bytes of a hiredis connection that does not block. */
#ifndef TWI_DURABLE_REDIS_WIRE_H
#define TWI_DURABLE_REDIS_WIRE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* Returns the time of CLOCK_BOOTTIME. */
int64_t twi_redis_now_ns(void);

/*
 * Writes and reads as much as is possible at once. Returns false if the connection must be closed.
 * *ret_left: whether bytes are left to write. A write never raises SIGPIPE.
 */
bool twi_redis_wire_try(redisContext *connection, bool *ret_left);

/*
 * Waits until a read or a write is possible, then does the same as twi_redis_wire_try. Also returns
 * false if neither was possible in time.
 */
bool twi_redis_wire(redisContext *connection, int64_t wait_ns);

#endif
