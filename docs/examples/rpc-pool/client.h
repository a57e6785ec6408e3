/* SPDX-License-Identifier: MIT */
/*
 * A client of one connection for many threads. A call ends in one of three ways, which race: its
 * answer, its time limit, or a cancel. It ends exactly once, and is freed when its last reference is
 * dropped.
 */
#ifndef RPC_POOL_CLIENT_H
#define RPC_POOL_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

struct client;
struct call;

/* On the wire, both ways. */
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

/* Takes over a connected stream socket, and reads it in a thread of its own. NULL: no memory. */
struct client *client_create(struct tw_engine *engine, int fd);

/* Cancels the calls that are left. No other thread may use the client any more. */
void client_destroy(struct client *client);

/*
 * Sends a request. Returns 0 and a reference to the call, which the caller drops by call_release.
 * On failure it returns a negative errno, and `ended` does not run.
 */
int client_call(struct client *client, uint64_t value, int64_t limit_ns, call_ended *ended,
		void *arg, struct call **ret_call);

/* True if this cancel has ended the call. Any thread that has a reference may do it. */
bool call_cancel(struct call *call);

/* Drops a reference. The call itself goes on. */
void call_release(struct call *call);

/* Calls that are not freed yet. */
int64_t calls_alive(void);

#endif
