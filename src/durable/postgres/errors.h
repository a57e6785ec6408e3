/* SPDX-License-Identifier: MIT */
/* What the server and the connection say, as negative errno values. */
#ifndef TWI_DURABLE_POSTGRES_ERRORS_H
#define TWI_DURABLE_POSTGRES_ERRORS_H

#include <libpq-fe.h>

/* Tells people what has happened. `context` and the function are the user's. */
struct twi_postgres_notice {
	void (*function)(void *context, const char *text);
	void *context;
};

/* Why there is no connection: -ECONNREFUSED nobody listens; -EAGAIN the server starts or ends; -EACCES
 * it answers, and rejects the user, the password or the database. */
int twi_postgres_connect_error(const char *address);

/*
 * The code of a failed statement. -ECONNRESET: the connection is lost, and nobody knows whether it was
 * done. -ESTALE: the session is over. -EAGAIN: it was not done, and may be done again. Not done, too:
 * -ENOSPC, -EACCES, -EROFS, -EUCLEAN (the tables are not as they must be), -ENOENT (the schema or the
 * database is gone). -EIO: anything else.
 */
int twi_postgres_error(const PGconn *connection, const PGresult *result);

void twi_postgres_notify(const struct twi_postgres_notice *notice, const PGconn *connection);

#endif
