/* SPDX-License-Identifier: MIT */
/* The tables and functions in the server (schema.sql). */
#ifndef TWI_DURABLE_POSTGRES_SCHEMA_H
#define TWI_DURABLE_POSTGRES_SCHEMA_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TWI_POSTGRES_VERSION = 1,
	TWI_POSTGRES_NAME_MAX = 32,
};

/* The lines of schema.sql, and NULL. embed.py makes them when the library is built. */
extern const char *const twi_postgres_schema[];

/*
 * Returns whether a name has 1 to 32 characters of a-z, 0-9 and '_'. It becomes part of SQL texts,
 * so no other characters are safe.
 */
bool twi_postgres_name_right(const char *name);

/*
 * Checks the schema. Returns 0, -ENOENT if there is none, -ENOTSUP if it has another version,
 * -EUCLEAN if it is not ours, or a code of errors.h. `wait_ns` limits each of two queries, as in
 * ask.h.
 */
int twi_postgres_schema_look(PGconn *connection, const char *name, int64_t wait_ns);

#endif
