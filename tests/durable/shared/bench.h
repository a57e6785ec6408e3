/* SPDX-License-Identifier: MIT */
/* Shared stores of one place, which each test has for itself. The kind of store is bench_server. */
#ifndef TESTS_DURABLE_SHARED_BENCH_H
#define TESTS_DURABLE_SHARED_BENCH_H

#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable.h>

enum { BENCH_STORES = 3, BENCH_ROWS = 4096 };

#define SECOND INT64_C(1000000000)

/* What there is to count. */
enum bench_what {
	BENCH_TIMERS,
	BENCH_CLAIMED,
	BENCH_STARTED,
	BENCH_TOUCHED, /* claimed, or an attempt of it began */
	BENCH_DEAD,
	BENCH_SESSIONS,
};

/* A kind of store, and how to break it. `store` is the first argument of its functions. */
struct bench_server {
	/* An empty place for timers, on the server that with_server.py has started. */
	void (*make)(void);
	void (*end)(void);
	/* A store that looks for timers so often; 0: as by default. */
	void (*store)(int64_t poll_ns, struct tw_durable_store *ret_store);
	/* The server's time. `stand`: from then on it stands, and goes on by `pass` alone. */
	int64_t (*now)(bool stand);
	void (*pass)(int64_t ns);
	int64_t (*count)(enum bench_what what);
	/* All kinds. */
	void (*pause)(bool paused);
	/* The connection for statements is cut. */
	void (*cut)(void *store);
	/* As if the last batch had been sent, and its reply had been lost with the connection; and as if it
	 * had not come to the server, either. */
	void (*lose_reply)(void *store);
	void (*lose_request)(void *store);
	/* The next connection is made at once. */
	void (*connect_now)(void *store);
	/* Heartbeats are sent or not; whether one is to be sent at once. */
	void (*beats)(void *store, bool sent);
	bool (*beat_due)(void *store);
	/* After the next connection rows are read. */
	void (*unread)(void *store);
	/* A claim with the number of the store's last batch plus this. Returns how many; -1: refused. */
	int (*claim_by_hand)(void *store, int64_t after);
	/* As after a crash of the server which has lost the last claim. */
	void (*forget_claim)(void *store);
};

extern const struct bench_server bench_server;

/* A row as a store gave it. */
struct bench_row {
	struct tw_durable_row row;
	char key[256], payload[64];
};

struct bench {
	struct tw_durable_store stores[BENCH_STORES];
	struct tw_durable_session sessions[BENCH_STORES];
	/* What was given last. */
	struct bench_row rows[BENCH_ROWS];
	size_t count;
	int answer; /* of the receiver */
};

extern struct bench bench;

void bench_make(void);
void bench_end(void);

/* Opens store `number` with the kinds "mail" and "call". */
void bench_open(int number);
int bench_try_open(int number, const char *const *kinds, size_t count);
void bench_close(int number);
/* A heartbeat, until it is accepted. */
void bench_beat(int number);

/* The server's time. It stands, and goes on by bench_pass() alone, from the first call on. */
int64_t bench_now(void);
void bench_pass(int64_t ns);

/* The timer `serial`, due in so long. */
struct tw_durable_op bench_op(enum tw_durable_op_type type, uint64_t serial, int64_t due_in_ns);
/* Commits one operation, and returns its outcome, or a code but -EAGAIN. */
int bench_do(int number, struct tw_durable_op *op);
int bench_put(int number, uint64_t serial, int64_t due_in_ns);
/* Claims what is due soon. Returns how many; `rows` has them, and those that the session had before. */
int bench_claim(int number);
int bench_claim_most(int number, size_t most);
/* A receiver of rows. */
int bench_take(void *to, const struct tw_durable_row *row);
/* Finds a timer or a dead letter. */
int bench_find(int number, uint64_t serial);

/* A timer that store `number` has claimed; its start; the end of its run, under the session of the store. */
void bench_put_claimed(int number, uint64_t serial, int64_t due_in_ns);
int bench_start(int number, uint64_t serial, uint64_t attempt);
int bench_end_run(int number, enum tw_durable_op_type type, uint64_t serial);
int bench_cancel(int number, uint64_t serial);
/* Store `number` does not beat, and its session ends. */
void bench_session_ends(int number);

#endif
