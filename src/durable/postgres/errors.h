/* SPDX-License-Identifier: MIT */
/* Converts errors of the server and the connection to negative errno values. */
#ifndef TWI_DURABLE_POSTGRES_ERRORS_H
#define TWI_DURABLE_POSTGRES_ERRORS_H

#include <libpq-fe.h>

/* The user's function for messages about failures, and its context. */
struct twi_postgres_notice {
	void (*function)(void *context, const char *text);
	void *context;
};

/*
 * Returns why there is no connection: -ECONNREFUSED if no server listens; -EAGAIN if the server is
 * starting or ending; -EACCES if it rejects the user, the password or the database; -EINVAL if the
 * address is wrong.
 */
int twi_postgres_connect_error(const char *address);

/*
 * Returns the code of a failed statement:
 *
 *     -ECONNRESET  the connection is lost; the statement may have been done
 *     -ESTALE      the session is over
 *     -EAGAIN      a passing cause, such as a deadlock; the statement may be tried again
 *     -ENOSPC      the server's disk is full
 *     -EMSGSIZE    an array or a row is too large
 *     -EACCES      no permission
 *     -EROFS       the transaction may only read
 *     -EUCLEAN     the tables have the wrong form
 *     -ENOENT      the schema or the database is gone
 *     -ENOTSUP     the schema has a version that does not serve this library
 *     -EIO         anything else
 *
 * After -EAGAIN, -ENOSPC, -EMSGSIZE, -EACCES and -EROFS the statement was not done.
 */
int twi_postgres_error(const PGconn *connection, const PGresult *result);

void twi_postgres_notify(const struct twi_postgres_notice *notice, const PGconn *connection);

#endif
