/* SPDX-License-Identifier: MIT */
/* Who is at the other end of a connection. */
#ifndef TWI_DURABLE_SHARED_PEER_H
#define TWI_DURABLE_SHARED_PEER_H

#include <stdbool.h>

/*
 * Whether a connection may leave the machine: it is by TCP, and its other end is not 127.0.0.1 or ::1.
 * What passes there must be encrypted, and the server verified. False for what is no socket.
 */
bool twi_peer_is_remote(int socket);

#endif
