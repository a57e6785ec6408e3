/* SPDX-License-Identifier: MIT */
/* Calls inside the user's own transactions. Each is one statement on the user's connection. */
#include "durable/postgres/errors.h"
#include "durable/postgres/schema.h"
#include "durable/postgres/text.h"
#include "durable/postgres/values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_postgres.h>

enum {
	KIND_MAX = 63,
	KEY_MAX = 255,
	PAYLOAD_MAX = 1 << 20,
};

static int arguments_right(const struct pg_conn *connection, const char *schema)
{
	return connection != NULL && twi_postgres_name_right(schema) ? 0 : -EINVAL;
}

/*
 * Waits for all replies, and returns the last one. PQgetResult waits even if the user's connection
 * is in non-blocking mode.
 */
static PGresult *replies(PGconn *connection)
{
	PGresult *result = NULL, *next;

	while ((next = PQgetResult(connection)) != NULL) {
		PQclear(result);
		result = next;
	}
	return result;
}

/* Runs a function of the schema. Its result is the only value of the only row. */
static int call(PGconn *connection, const char *schema, const char *text, struct twi_values *values,
		PGresult **ret)
{
	char *sql = twi_postgres_text(text, schema);
	int error = sql == NULL ? -ENOMEM : twi_values_send(values, connection, sql);
	PGresult *result;

	free(sql);
	twi_values_free(values);
	if (error != 0)
		return error;
	result = replies(connection);
	if (PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1) {
		*ret = result;
		return 0;
	}
	error = twi_postgres_error(connection, result);
	PQclear(result);
	return error;
}

static bool kind_right(const char *kind)
{
	size_t length = kind == NULL ? 0 : strnlen(kind, KIND_MAX + 1);

	return length >= 1 && length <= KIND_MAX &&
	       strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

static int spec_check(const struct tw_durable_postgres_spec *spec)
{
	if (spec == NULL || spec->size < sizeof *spec || !kind_right(spec->kind) ||
	    (spec->payload == NULL && spec->payload_bytes != 0) ||
	    (spec->key == NULL) != (spec->key_bytes == 0) || spec->due_ns == TW_NEVER ||
	    spec->due_ns == INT64_MIN)
		return -EINVAL;
	return spec->key_bytes > KEY_MAX || spec->payload_bytes > PAYLOAD_MAX ? -EMSGSIZE : 0;
}

/* Reads an id from its text "place-serial". */
static int id_read(const char *text, struct tw_durable_id *ret)
{
	const char *dash = text[0] == '\0' ? NULL : strchr(text + 1, '-');

	if (dash == NULL)
		return -EUCLEAN;
	ret->place = (uint64_t)strtoll(text, NULL, 10);
	ret->serial = strtoull(dash + 1, NULL, 10);
	return 0;
}

int tw_durable_postgres_schedule_in(struct pg_conn *connection, const char *schema,
				    const struct tw_durable_postgres_spec *spec,
				    struct tw_durable_id *ret_id)
{
	struct twi_values values = {.count = 0};
	struct tw_durable_id id = {0, 0};
	PGresult *result = NULL;
	int error = arguments_right(connection, schema);

	if (error == 0)
		error = spec_check(spec);
	if (error != 0)
		return error;
	twi_values_bytes(&values, TWI_TYPE_TEXT, spec->kind, strlen(spec->kind));
	twi_values_int8(&values, spec->due_ns);
	twi_values_bytes(&values, TWI_TYPE_BYTEA, spec->payload, spec->payload_bytes);
	twi_values_bytes(&values, TWI_TYPE_BYTEA, spec->key, spec->key_bytes);
	twi_values_int8(&values, spec->version);
	error = call(connection, schema, "SELECT @.schedule_ns($1, $2, $3, $4, $5)", &values,
		     &result);
	if (error != 0)
		return error;
	error = id_read(PQgetvalue(result, 0, 0), &id);
	PQclear(result);
	if (error == 0 && ret_id != NULL)
		*ret_id = id;
	return error;
}

static int number_call(PGconn *connection, const char *schema, const char *text,
		       struct twi_values *values)
{
	PGresult *result = NULL;
	int error = call(connection, schema, text, values, &result), number;

	if (error != 0)
		return error;
	number = twi_value_int4(result, 0, 0);
	PQclear(result);
	return number;
}

int tw_durable_postgres_cancel_in(struct pg_conn *connection, const char *schema,
				  struct tw_durable_id id)
{
	struct twi_values values = {.count = 0};

	if (arguments_right(connection, schema) != 0 || id.serial == 0)
		return -EINVAL;
	/* The server has no such serials. */
	if (id.serial > INT64_MAX)
		return TW_DURABLE_ABSENT;
	twi_values_int8(&values, (int64_t)id.place);
	twi_values_int8(&values, (int64_t)id.serial);
	return number_call(connection, schema, "SELECT @.cancel(concat($1, '-', $2))", &values);
}

int tw_durable_postgres_cancel_key_in(struct pg_conn *connection, const char *schema,
				      const void *key, size_t bytes)
{
	struct twi_values values = {.count = 0};

	if (arguments_right(connection, schema) != 0 || key == NULL || bytes == 0)
		return -EINVAL;
	if (bytes > KEY_MAX)
		return -EMSGSIZE;
	twi_values_bytes(&values, TWI_TYPE_BYTEA, key, bytes);
	return number_call(connection, schema, "SELECT @.cancel_key($1)", &values);
}

int tw_durable_postgres_finish_in(struct pg_conn *connection, const char *schema,
				  const struct tw_durable_self *self)
{
	struct twi_values values = {.count = 0};
	int done;

	if (arguments_right(connection, schema) != 0 || self == NULL || self->id.serial == 0)
		return -EINVAL;
	twi_values_int8(&values, (int64_t)self->id.place);
	twi_values_int8(&values, (int64_t)self->id.serial);
	twi_values_int8(&values, (int64_t)self->fence);
	twi_values_int8(&values, (int64_t)self->attempt);
	done = number_call(connection, schema, "SELECT @.finish($1, $2, $3, $4)::integer", &values);
	return done < 0 ? done : done == 1 ? 0 : -ESTALE;
}
