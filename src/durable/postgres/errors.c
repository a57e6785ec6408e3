/* SPDX-License-Identifier: MIT */
#include "durable/postgres/errors.h"

#include <errno.h>
#include <string.h>

int twi_postgres_connect_error(const char *address)
{
	static const char *const names[] = {"connect_timeout", "dbname", NULL};
	const char *const values[] = {"2", address, NULL};

	switch (PQpingParams(names, values, 1)) {
	case PQPING_OK:
		return -EACCES;
	case PQPING_REJECT:
		return -EAGAIN;
	case PQPING_NO_ATTEMPT:
		return -EINVAL;
	default:
		return -ECONNREFUSED;
	}
}

/* SQL states, or their first characters. The first entry that fits counts. */
static const struct code {
	const char *state;
	int error;
} codes[] = {
	{"TW001", -ESTALE},   /* the session is over */
	{"TW002", -ENOTSUP},  /* the schema has another version */
	{"3D", -ENOENT},      /* no such database */
	{"3F", -ENOENT},      /* no such schema */
	{"40", -EAGAIN},      /* a deadlock, or transactions that cannot be serialized */
	{"55P03", -EAGAIN},   /* a lock was not available */
	{"57014", -EAGAIN},   /* a statement took too long */
	{"53100", -ENOSPC},   /* the disk is full */
	{"53", -EAGAIN},      /* no memory, or too many connections */
	{"54", -EMSGSIZE},    /* an array or a row that is too large */
	{"25006", -EROFS},    /* a transaction that may only read */
	{"42501", -EACCES},   /* no permission */
	{"42", -EUCLEAN},     /* no such table, column or function */
	{"22", -EUCLEAN},     /* values that a column cannot hold */
	{"23", -EUCLEAN},     /* a constraint that is not ours */
	{"XX001", -EUCLEAN},  /* a damaged page */
	{"XX002", -EUCLEAN},  /* a damaged index */
	{"57P", -ECONNRESET}, /* the server ends */
	{"08", -ECONNRESET},
};

int twi_postgres_error(const PGconn *connection, const PGresult *result)
{
	const char *state = result == NULL ? NULL : PQresultErrorField(result, PG_DIAG_SQLSTATE);

	for (size_t i = 0; state != NULL && i < sizeof codes / sizeof codes[0]; i++)
		if (strncmp(state, codes[i].state, strlen(codes[i].state)) == 0)
			return codes[i].error;
	return state == NULL || PQstatus(connection) != CONNECTION_OK ? -ECONNRESET : -EIO;
}

void twi_postgres_notify(const struct twi_postgres_notice *notice, const PGconn *connection)
{
	const char *text = PQerrorMessage(connection);

	if (notice->function != NULL && text != NULL && text[0] != '\0')
		notice->function(notice->context, text);
}
