/* SPDX-License-Identifier: MIT */
/*
 * A client of two replicas over TCP, in one thread with an event loop: each call has a time limit, is
 * sent to the other replica too when the first one is slow (hedged), and is tried again if need be.
 * A call is a task of a queue of retries; an answer or the time limit completes its attempt, and who is
 * second is told so (-ESTALE).
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <tickwheel.h>
#include <unistd.h>

#define MS INT64_C(1000000)

enum { CALLS = 200, REPLICAS = 2 };

static struct call {
	struct tw_retry_handle attempt;
	struct tw_handle hedge, limit;
} calls[CALLS];
static struct replica {
	int listener, client;
	pthread_t thread;
} replicas[REPLICAS];
static struct tw_engine *engine;
static unsigned hedged, repeated, answered, given_up;

static void call_send(const struct call *call, unsigned other)
{
	uint64_t id = (uint64_t)(call - calls);

	(void)!send(replicas[(id + other) % REPLICAS].client, &id, sizeof(id), MSG_NOSIGNAL);
}

static void on_hedge(struct tw_handle self, void *arg)
{
	(void)self;
	hedged++;
	call_send(arg, 1);
}

static void on_limit(struct tw_handle self, void *arg)
{
	(void)self;
	tw_retry_complete(((struct call *)arg)->attempt, TW_RETRY_AGAIN);
}

static const struct tw_kind hedge = TW_KIND(on_hedge, NULL), limit = TW_KIND(on_limit, NULL);

static int call_try(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct call *call = arg;

	repeated += attempt > 1;
	call->attempt = self;
	call_send(call, 0);
	if (tw_schedule(engine, 50 * MS, &hedge, call, &call->hedge) != 0 ||
	    tw_schedule(engine, 500 * MS, &limit, call, &call->limit) != 0)
		return TW_RETRY_GIVE_UP;
	return TW_RETRY_PENDING;
}

static void call_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct call *call = arg;

	(void)attempts;
	tw_cancel(call->hedge);
	tw_cancel(call->limit);
	*(end == TW_RETRY_END_DONE ? &answered : &given_up) += 1;
}

static const struct tw_retry_schedule backoff =
	TW_RETRY_EXPONENTIAL(20 * MS, 100 * MS, 200, TW_RETRY_JITTER_EQUAL);
static const struct tw_retry_kind call_kind = TW_RETRY_KIND(call_try, call_ended, &backoff, 3);

/* The first one never answers some calls, both miss some the first time, and one call for ever. */
static void *serve(void *arg)
{
	const struct replica *self = arg;
	int client = accept(self->listener, NULL, NULL);
	unsigned heard[CALLS] = {0};
	uint64_t id;

	while (recv(client, &id, sizeof(id), MSG_WAITALL) == sizeof(id))
		if (id != CALLS - 1 && (id % 10 != 4 || self != replicas) &&
		    (id % 50 != 7 || heard[id]++ != 0))
			(void)!send(client, &id, sizeof(id), MSG_NOSIGNAL);
	close(self->listener);
	return (void *)(intptr_t)close(client);
}

static int replica_open(struct replica *self)
{
	struct sockaddr_in address = {AF_INET, 0, {htonl(INADDR_LOOPBACK)}, {0}};
	struct sockaddr *name = (struct sockaddr *)&address;
	socklen_t length = sizeof(address);

	self->listener = socket(AF_INET, SOCK_STREAM, 0);
	self->client = socket(AF_INET, SOCK_STREAM, 0);
	return bind(self->listener, name, length) != 0 || listen(self->listener, 1) != 0 ||
	       getsockname(self->listener, name, &length) != 0 ||
	       connect(self->client, name, length) != 0 ||
	       pthread_create(&self->thread, NULL, serve, self) != 0;
}

static void run(void)
{
	struct pollfd ready[] = {{replicas[0].client, POLLIN, 0},
				 {replicas[1].client, POLLIN, 0},
				 {tw_engine_fd(engine), POLLIN, 0}};
	uint64_t id;

	while (answered + given_up < CALLS && poll(ready, REPLICAS + 1, -1) > 0) {
		for (int i = 0; i < REPLICAS; i++)
			if (ready[i].revents != 0 &&
			    recv(ready[i].fd, &id, sizeof(id), MSG_WAITALL) == sizeof(id))
				tw_retry_complete(calls[id].attempt, TW_RETRY_DONE);
		if (ready[REPLICAS].revents != 0)
			tw_poll(engine, 0);
	}
}

int main(void)
{
	struct tw_options options;
	struct tw_retry *queue;

	tw_options_init(&options, sizeof(options));
	options.flags = TW_ENGINE_LOOP;
	if (tw_engine_create(&options, &engine) != 0 ||
	    tw_retry_create(engine, NULL, &queue) != 0 || replica_open(&replicas[0]) != 0 ||
	    replica_open(&replicas[1]) != 0)
		return 1;
	for (int id = 0; id < CALLS; id++)
		if (tw_retry_submit(queue, id * MS, &call_kind, &calls[id], NULL) != 0)
			return 1;
	run();
	printf("%u answered, %u given up\n", answered, given_up);
	for (int i = 0; i < REPLICAS; i++) {
		close(replicas[i].client);
		pthread_join(replicas[i].thread, NULL);
	}
	tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	return !hedged || !repeated || tw_retry_destroy(queue) != 0 || tw_engine_destroy(engine);
}
