/* SPDX-License-Identifier: MIT */
/* Queries with a time limit. libpq's own calls would wait as long as the network is silent. */
#ifndef TWI_DURABLE_POSTGRES_ASK_H
#define TWI_DURABLE_POSTGRES_ASK_H

#include <libpq-fe.h>
#include <stdint.h>

#define TWI_POSTGRES_NEVER INT64_MAX

/*
 * Runs a text of SQL, and returns the reply, like PQexec. Returns NULL if the reply did not come in
 * time; then the connection must be closed. With TWI_POSTGRES_NEVER there is no limit.
 */
PGresult *twi_postgres_ask(PGconn *connection, const char *text, int64_t wait_ns);

#endif
