/* SPDX-License-Identifier: MIT */
/* The tables and functions in the server (schema.sql, functions.sql). */
#ifndef TWI_DURABLE_POSTGRES_SCHEMA_H
#define TWI_DURABLE_POSTGRES_SCHEMA_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>

enum {
	TWI_POSTGRES_VERSION = 2,
	TWI_POSTGRES_NAME_MAX = 32,
};

/*
 * The lines of the .sql files with these names, and NULL at the end. The build makes the arrays
 * (embed.py).
 */
extern const char *const twi_postgres_schema[];
extern const char *const twi_postgres_functions[];
extern const char *const twi_postgres_upgrade_1[];

/*
 * Returns whether a name has 1 to 32 characters of a-z, 0-9 and '_'. The name becomes part of SQL
 * texts, so no other characters are safe.
 */
bool twi_postgres_name_right(const char *name);

/*
 * Reads the version of the schema. Returns 0, -ENOENT if there is no schema, -EUCLEAN if it was not
 * made by this library, or a code of errors.h. `wait_ns` limits each of two queries, as in ask.h.
 */
int twi_postgres_schema_version(PGconn *connection, const char *name, int64_t wait_ns, int *ret);

/*
 * Checks that this library can use the schema: the schema has the library's version, or a later
 * version that serves this library. Returns 0, -ENOTSUP, or a code of twi_postgres_schema_version.
 * `wait_ns` limits each of three queries.
 */
int twi_postgres_schema_look(PGconn *connection, const char *name, int64_t wait_ns);

#endif
