/* SPDX-License-Identifier: MIT */
/*
 * Up to three stores of one place for timers. Each test has a place of its own. bench_server
 * describes the kind of store.
 */
#ifndef TESTS_DURABLE_SHARED_BENCH_H
#define TESTS_DURABLE_SHARED_BENCH_H

#include "check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable.h>

enum { BENCH_STORES = 3, BENCH_ROWS = 4096 };

#define SECOND INT64_C(1000000000)

/* The rows that bench_server.count() can count. */
enum bench_what {
	BENCH_TIMERS,
	BENCH_CLAIMED,
	BENCH_STARTED,
	BENCH_TOUCHED, /* rows that are claimed, or of which an attempt has begun */
	BENCH_DEAD,
	BENCH_SESSIONS,
};

/*
 * A kind of store, and functions that break it. Their argument `store` is the store's own data, the
 * first argument of its functions.
 */
struct bench_server {
	/* Creates an empty place for timers, on the server that with_server.py has started. */
	void (*make)(void);
	void (*end)(void);
	/*
	 * Creates a store that looks for new timers at this interval; 0 stands for the default
	 * interval.
	 */
	void (*store)(int64_t poll_ns, struct tw_durable_store *ret_store);
	/*
	 * Returns the server's time. If `stand` is true, also stops the time: from then on only
	 * `pass` moves it.
	 */
	int64_t (*now)(bool stand);
	void (*pass)(int64_t ns);
	int64_t (*count)(enum bench_what what);
	/* Pauses or resumes all kinds. */
	void (*pause)(bool paused);
	/* Breaks the store's connection for statements. */
	void (*cut)(void *store);
	/*
	 * lose_reply makes the state in which the last batch reached the server, but its reply was
	 * lost with the connection. lose_request makes the state in which the batch did not reach
	 * the server.
	 */
	void (*lose_reply)(void *store);
	void (*lose_request)(void *store);
	/* Lets the store make its next connection without a delay. */
	void (*connect_now)(void *store);
	/*
	 * beats turns the heartbeats on or off. beat_due returns whether a heartbeat must be sent
	 * now.
	 */
	void (*beats)(void *store, bool sent);
	bool (*beat_due)(void *store);
	/* Makes the store read its rows again after the next connection. */
	void (*unread)(void *store);
	/*
	 * Sends a claim with the number of the store's last batch plus `after`. Returns the number
	 * of rows, or -1 if the server refused it.
	 */
	int (*claim_by_hand)(void *store, int64_t after);
	/* Makes the state after a crash in which the server lost the last claim. */
	void (*forget_claim)(void *store);
};

extern const struct bench_server bench_server;

/* A row that a store has returned. */
struct bench_row {
	struct tw_durable_row row;
	char key[256], payload[64];
};

struct bench {
	struct tw_durable_store stores[BENCH_STORES];
	struct tw_durable_session sessions[BENCH_STORES];
	/* The rows that the store returned last. */
	struct bench_row rows[BENCH_ROWS];
	size_t count;
	int answer; /* what the receiver of rows returns */
};

extern struct bench bench;

void bench_make(void);
void bench_end(void);

/* Opens store `number` with the kinds "mail" and "call". */
void bench_open(int number);
int bench_try_open(int number, const char *const *kinds, size_t count);
void bench_close(int number);
/* Sends heartbeats until one is accepted. */
void bench_beat(int number);

/* Returns the server's time. The first call stops it; from then on only bench_pass() moves it. */
int64_t bench_now(void);
void bench_pass(int64_t ns);

/* Returns an operation for the timer `serial`, due in this time. */
struct tw_durable_op bench_op(enum tw_durable_op_type type, uint64_t serial, int64_t due_in_ns);
/* Commits one operation. Returns its outcome, or the commit's code if that is not -EAGAIN. */
int bench_do(int number, struct tw_durable_op *op);
int bench_put(int number, uint64_t serial, int64_t due_in_ns);
/*
 * Claims timers that are due soon. Returns how many. Puts them into `rows`, with those that the
 * session already had.
 */
int bench_claim(int number);
int bench_claim_most(int number, size_t most);
/* Receives a row from the store, and adds it to `rows`. */
int bench_take(void *to, const struct tw_durable_row *row);
/* Finds a timer or a dead letter. Returns the store's code. */
int bench_find(int number, uint64_t serial);

/*
 * bench_put_claimed puts a timer that store `number` has claimed. The next two functions start it,
 * and end its run, under that store's session.
 */
void bench_put_claimed(int number, uint64_t serial, int64_t due_in_ns);
int bench_start(int number, uint64_t serial, uint64_t attempt);
int bench_end_run(int number, enum tw_durable_op_type type, uint64_t serial);
int bench_cancel(int number, uint64_t serial);
/* Ends the session of store `number`: the store sends no heartbeat. */
void bench_session_ends(int number);

#endif
