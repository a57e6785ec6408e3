/* SPDX-License-Identifier: MIT */
#include "durable/shared/peer.h"

#include <netinet/in.h>
#include <sys/socket.h>

bool twi_peer_is_remote(int socket)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
		struct sockaddr_storage room;
	} peer;
	socklen_t bytes = sizeof peer;

	if (getpeername(socket, &peer.any, &bytes) != 0)
		return false;
	if (peer.any.sa_family == AF_INET)
		return peer.in.sin_addr.s_addr != htonl(INADDR_LOOPBACK);
	return peer.any.sa_family == AF_INET6 && !IN6_IS_ADDR_LOOPBACK(&peer.in6.sin6_addr);
}
