/* SPDX-License-Identifier: MIT */
/* Stores of one schema, which each test has for itself, on the server of with_server.py. */
#ifndef TESTS_DURABLE_POSTGRES_BENCH_H
#define TESTS_DURABLE_POSTGRES_BENCH_H

#include "check.h"

#include "durable/postgres/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_postgres.h>

enum { BENCH_STORES = 3, BENCH_ROWS = 4096 };

#define SECOND INT64_C(1000000000)

/* A row as a store gave it. */
struct bench_row {
	struct tw_durable_row row;
	char key[256], payload[64];
};

struct bench {
	char schema[32];
	PGconn *connection; /* of the test itself */
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

/* Runs SQL; '@' is the schema. The first number of its answer, or 0. */
int64_t bench_sql(const char *text);
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
