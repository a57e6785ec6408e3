/* SPDX-License-Identifier: MIT */
/*
 * Each call has up to four references. This list says who drops each reference:
 *
 *     the caller's      call_release
 *     the table's       the end of the call, which takes it out of the table
 *     the timeout's     its finaliser, which runs exactly once, however the timeout ends
 *     the reader's      the reader, when it has passed on the answer
 *
 * A call ends by one compare-and-swap of its outcome. The thread whose swap succeeds does
 * everything else: it cancels the timeout, takes the call out of the table, and runs the hook. The
 * other threads only drop their references.
 */
#include "client.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BUCKETS = 1024 };

struct call {
	struct client *client;
	struct call *next; /* the next call in its bucket */
	uint64_t id;
	struct tw_handle limit;
	call_ended *ended;
	void *arg;
	atomic_int outcome;
	atomic_uint references;
};

struct client {
	struct tw_engine *engine;
	int fd;
	pthread_t reader;
	pthread_mutex_t send_lock, table_lock;
	struct call *table[BUCKETS]; /* calls that have not ended; under table_lock */
	uint64_t last_id;            /* under table_lock */
};

static _Atomic int64_t alive;

int64_t calls_alive(void)
{
	return alive;
}

/* Adds a reference. The thread must have a reference itself, or hold the table's lock while the
 * table has one. */
static void call_hold(struct call *call)
{
	atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
}

void call_release(struct call *call)
{
	/* Release: the last thread sees what this thread did with the call. Acquire: this thread,
	 * if it is the last, sees what all others did. Only then may it free the call. */
	if (atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) == 1) {
		alive--;
		free(call);
	}
}

static void table_add(struct client *client, struct call *call)
{
	pthread_mutex_lock(&client->table_lock);
	call->id = ++client->last_id;
	call->next = client->table[call->id % BUCKETS];
	client->table[call->id % BUCKETS] = call;
	pthread_mutex_unlock(&client->table_lock);
}

static void table_remove(struct client *client, struct call *call)
{
	struct call **at;

	pthread_mutex_lock(&client->table_lock);
	at = &client->table[call->id % BUCKETS];
	while (*at != call)
		at = &(*at)->next;
	*at = call->next;
	pthread_mutex_unlock(&client->table_lock);
}

/* Returns a reference to the call with this id, or NULL if the call has ended. */
static struct call *table_find(struct client *client, uint64_t id)
{
	struct call *call;

	pthread_mutex_lock(&client->table_lock);
	call = client->table[id % BUCKETS];
	while (call != NULL && call->id != id)
		call = call->next;
	if (call != NULL)
		call_hold(call);
	pthread_mutex_unlock(&client->table_lock);
	return call;
}

/* Ends a call; the caller must have a reference to it. Returns true if this caller has ended it. */
static bool call_end(struct call *call, enum outcome outcome, uint64_t answer)
{
	int pending = CALL_PENDING;

	if (!atomic_compare_exchange_strong(&call->outcome, &pending, (int)outcome))
		return false;
	/*
	 * The cancel need not wait for the callback. If the callback runs now, it has lost the swap
	 * or is the caller of this function.
	 */
	tw_cancel(call->limit);
	table_remove(call->client, call);
	call->ended(call->arg, outcome, answer);
	call_release(call); /* the table's */
	return true;
}

bool call_cancel(struct call *call)
{
	return call_end(call, CALL_CANCELLED, 0);
}

static void on_limit(struct tw_handle self, void *arg)
{
	(void)self;
	call_end(arg, CALL_TIMED_OUT, 0);
}

static void on_limit_end(void *arg, enum tw_end end)
{
	(void)end;
	call_release(arg);
}

static const struct tw_kind limit = TW_KIND(on_limit, on_limit_end);

static int request_send(struct client *client, const struct call *call, uint64_t value)
{
	struct message message = {call->id, value};
	ssize_t sent;

	pthread_mutex_lock(&client->send_lock);
	sent = send(client->fd, &message, sizeof(message), MSG_NOSIGNAL);
	pthread_mutex_unlock(&client->send_lock);
	return sent == sizeof(message) ? 0 : -EPIPE;
}

int client_call(struct client *client, uint64_t value, int64_t limit_ns, call_ended *ended,
		void *arg, struct call **ret_call)
{
	struct call *call = calloc(1, sizeof(*call));
	int error;

	if (call == NULL)
		return -ENOMEM;
	alive++;
	call->client = client;
	call->ended = ended;
	call->arg = arg;
	call->references = 3; /* the caller's, the table's, the timeout's */
	table_add(client, call);
	/*
	 * Schedules the timeout before the request is sent, so no answer can come before the handle
	 * is set. The timeout may expire before tw_schedule returns, but the handle is written
	 * before its callback runs.
	 */
	error = tw_schedule(client->engine, limit_ns, &limit, call, &call->limit);
	if (error != 0) {
		table_remove(client, call);
		call->references = 1;
		call_release(call);
		return error;
	}
	/* If the send fails, no answer comes, and the time limit ends the call. */
	request_send(client, call, value);
	*ret_call = call;
	return 0;
}

/* The reader's thread: runs until the other end closes the connection. */
static void *client_read(void *arg)
{
	struct client *client = arg;
	struct message answer;

	while (recv(client->fd, &answer, sizeof(answer), MSG_WAITALL) == sizeof(answer)) {
		struct call *call = table_find(client, answer.id);

		if (call == NULL)
			continue; /* the answer is too late, because the call has ended */
		call_end(call, CALL_ANSWERED, answer.value);
		call_release(call);
	}
	return NULL;
}

struct client *client_create(struct tw_engine *engine, int fd)
{
	struct client *client = calloc(1, sizeof(*client));

	if (client == NULL)
		return NULL;
	client->engine = engine;
	client->fd = fd;
	pthread_mutex_init(&client->send_lock, NULL);
	pthread_mutex_init(&client->table_lock, NULL);
	if (pthread_create(&client->reader, NULL, client_read, client) == 0)
		return client;
	free(client);
	return NULL;
}

/* Returns a reference to any call that has not ended, or NULL. */
static struct call *table_any(struct client *client)
{
	struct call *call = NULL;

	pthread_mutex_lock(&client->table_lock);
	for (int i = 0; i < BUCKETS && call == NULL; i++)
		call = client->table[i];
	if (call != NULL)
		call_hold(call);
	pthread_mutex_unlock(&client->table_lock);
	return call;
}

void client_destroy(struct client *client)
{
	struct call *call;

	shutdown(client->fd, SHUT_RDWR);
	pthread_join(client->reader, NULL);
	/* The worker may be ending one of the calls at this moment. It then takes that call out of
	 * the table. */
	while ((call = table_any(client)) != NULL) {
		call_cancel(call);
		call_release(call);
	}
	/* No call is in the table any more, but the callback of a timeout may not have returned
	 * yet. */
	tw_engine_flush(client->engine, TW_NEVER);
	close(client->fd);
	pthread_mutex_destroy(&client->send_lock);
	pthread_mutex_destroy(&client->table_lock);
	free(client);
}
