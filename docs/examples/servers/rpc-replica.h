/* SPDX-License-Identifier: MIT */
/*
 * The server side of rpc-client.c: a replica with a thread and a connection. Each replica is slow
 * in a different way.
 */
#ifndef RPC_REPLICA_H
#define RPC_REPLICA_H

#include <arpa/inet.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CALLS = 200, REPLICAS = 2, REQUEST = 1, DROP = 2 };

/* A request or an answer. An answer repeats its request. */
struct message {
	uint32_t call, what;
};

struct replica {
	unsigned number;
	int listener, client;
	unsigned heard[CALLS];
	bool held[CALLS]; /* requests that have not been answered */
	pthread_t thread;
};

/* The first replica never answers some calls. Both ignore some calls the first time, and one call
 * for ever. */
static bool replica_is_slow(struct replica *self, uint32_t id)
{
	return id == CALLS - 1 || (id % 10 == 4 && self->number == 0) ||
	       (id % 50 == 7 && self->heard[id]++ == 0);
}

static void *replica_main(void *arg)
{
	struct replica *self = arg;
	int client = accept(self->listener, NULL, NULL);
	struct message message;

	while (recv(client, &message, sizeof(message), MSG_WAITALL) == sizeof(message) &&
	       message.call < CALLS) {
		bool asked = message.what == REQUEST;

		self->held[message.call] = asked && replica_is_slow(self, message.call);
		if (asked && !self->held[message.call] &&
		    send(client, &message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
			break;
	}
	close(client);
	return NULL;
}

/* Starts the replica's thread, and connects a client to it. */
static bool replica_open(struct replica *self)
{
	struct sockaddr_in address = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
	struct sockaddr *name = (struct sockaddr *)&address;
	socklen_t length = sizeof(address);

	self->listener = socket(AF_INET, SOCK_STREAM, 0);
	self->client = socket(AF_INET, SOCK_STREAM, 0);
	return self->listener >= 0 && self->client >= 0 &&
	       bind(self->listener, name, length) == 0 && listen(self->listener, 1) == 0 &&
	       getsockname(self->listener, name, &length) == 0 &&
	       connect(self->client, name, length) == 0 &&
	       pthread_create(&self->thread, NULL, replica_main, self) == 0;
}

/* Ends the replica. Returns how many calls it still holds for the client. */
static unsigned replica_close(struct replica *self)
{
	unsigned left = 0;

	shutdown(self->client, SHUT_WR);
	pthread_join(self->thread, NULL);
	close(self->client);
	close(self->listener);
	for (int id = 0; id < CALLS; id++)
		left += self->held[id];
	return left;
}

#endif
