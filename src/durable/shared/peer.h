/* SPDX-License-Identifier: MIT */
/* Finds out which machine is at the other end of a connection. */
#ifndef TWI_DURABLE_SHARED_PEER_H
#define TWI_DURABLE_SHARED_PEER_H

#include <stdbool.h>

/*
 * Returns whether a connection may leave the machine: it uses TCP, and its other end is not
 * 127.0.0.1 or ::1. The bytes on such a connection must be encrypted, and the server verified.
 * Returns false if the descriptor is not a socket.
 */
bool twi_peer_is_remote(int socket);

#endif
