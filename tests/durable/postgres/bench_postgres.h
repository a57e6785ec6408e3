/* SPDX-License-Identifier: MIT */
/* PostgreSQL as the store of the tests in ../shared. */
#ifndef TESTS_DURABLE_POSTGRES_BENCH_POSTGRES_H
#define TESTS_DURABLE_POSTGRES_BENCH_POSTGRES_H

#include "bench.h"

#include "durable/postgres/store.h"

#include <tickwheel/durable_postgres.h>

struct bench_postgres {
	char schema[32];
	PGconn *connection; /* the test's own connection */
};

extern struct bench_postgres bench_postgres;

/* Runs SQL, with '@' replaced by the schema. Returns the first number of the answer, or 0. */
int64_t bench_sql(const char *text);

#endif
