/* SPDX-License-Identifier: MIT */
/* Bytes to and from a connection of hiredis that does not block. */
#ifndef TWI_DURABLE_REDIS_WIRE_H
#define TWI_DURABLE_REDIS_WIRE_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* CLOCK_BOOTTIME. */
int64_t twi_redis_now_ns(void);

/* Writes and reads as much as is possible at once. False: the connection is of no use any more. *ret_left: not
 * all was written. A write never raises SIGPIPE. */
bool twi_redis_wire_try(redisContext *connection, bool *ret_left);

/* The same, after a wait until something is possible. False, too: nothing was, for so long. */
bool twi_redis_wire(redisContext *connection, int64_t wait_ns);

#endif
