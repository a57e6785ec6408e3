/* SPDX-License-Identifier: MIT */
/*
 * A client that many threads share, with one connection. A call ends by its answer, by its time
 * limit, or by a cancel; these three race. Each call ends exactly once, and is freed when its last
 * reference is dropped.
 */
#ifndef RPC_POOL_CLIENT_H
#define RPC_POOL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

struct client;
struct call;

/* A request or an answer on the connection. */
struct message {
	uint64_t id;
	uint64_t value;
};

enum outcome { CALL_PENDING, CALL_ANSWERED, CALL_TIMED_OUT, CALL_CANCELLED };

/*
 * Runs once for each call: in the reader's thread, in the engine's worker, or in the thread that
 * cancels. `answer` is 0 unless the outcome is CALL_ANSWERED.
 */
typedef void call_ended(void *arg, enum outcome outcome, uint64_t answer);

/* Takes over a connected stream socket, and creates a thread that reads it. Returns NULL if there
 * is no memory. */
struct client *client_create(struct tw_engine *engine, int fd);

/* Cancels the calls that are left. No other thread may use the client any more. */
void client_destroy(struct client *client);

/*
 * Sends a request. Returns 0 and a reference to the call, which the caller drops by call_release.
 * On failure it returns a negative errno, and `ended` does not run.
 */
int client_call(struct client *client, uint64_t value, int64_t limit_ns, call_ended *ended,
		void *arg, struct call **ret_call);

/* Returns true if this cancel has ended the call. Any thread that has a reference may call it. */
bool call_cancel(struct call *call);

/* Drops a reference. The call itself continues. */
void call_release(struct call *call);

/* Returns the number of calls that are not freed yet. */
int64_t calls_alive(void);

#endif
