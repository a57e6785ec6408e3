/* SPDX-License-Identifier: MIT */
/* A question with a bound on the time, where libpq's own would wait for as long as the network is silent. */
#ifndef TWI_DURABLE_POSTGRES_ASK_H
#define TWI_DURABLE_POSTGRES_ASK_H

#include <libpq-fe.h>
#include <stdint.h>

#define TWI_POSTGRES_NEVER INT64_MAX

/* The reply to a text of SQL, as PQexec gives it; NULL: it did not come in time, and the connection is of
 * no use any more. `wait_ns`: TWI_POSTGRES_NEVER waits without end. */
PGresult *twi_postgres_ask(PGconn *connection, const char *text, int64_t wait_ns);

#endif
