/* SPDX-License-Identifier: MIT */
/* The functions that read timers and dead letters, and the trim of dead letters. */
#include "durable/postgres/store.h"

#include <errno.h>

/* The columns of a row, in the order of the table. */
enum column {
	SERIAL,
	PLACE,
	DUE,
	ATTEMPT,
	SESSION,
	VERSION,
	KIND,
	STARTED,
	KEY,
	PAYLOAD,
};

void twi_postgres_row(const struct twi_postgres *store, const PGresult *result, int at,
		      struct tw_durable_row *ret)
{
	int32_t kind = twi_value_int4(result, at, KIND);

	*ret = (struct tw_durable_row){
		.id = {(uint64_t)twi_value_int8(result, at, PLACE),
		       (uint64_t)twi_value_int8(result, at, SERIAL)},
		.due_ns = twi_value_int8(result, at, DUE),
		.attempt = (uint64_t)twi_value_int8(result, at, ATTEMPT),
		.session = (uint64_t)twi_value_int8(result, at, SESSION),
		.version = (uint32_t)twi_value_int8(result, at, VERSION),
		.kind = kind >= 0 && (size_t)kind < store->number_count ? store->from_server[kind]
									: UINT32_MAX,
		.started = twi_value_bool(result, at, STARTED),
		.key_bytes = (uint32_t)PQgetlength(result, at, KEY),
		.key = PQgetvalue(result, at, KEY),
		.payload_bytes = (uint32_t)PQgetlength(result, at, PAYLOAD),
		.payload = PQgetvalue(result, at, PAYLOAD),
	};
}

/*
 * Returns -EAGAIN for a lost connection or missing memory, because the caller may ask again.
 * Returns other errors as they are.
 */
static int softened(struct twi_postgres *store, int error)
{
	(void)store;
	return error == -ECONNRESET || error == -ENOMEM ? -EAGAIN : error;
}

/*
 * Runs a query, and passes its rows to `give`. `dead`: the rows are dead letters. Returns 1 if
 * there is no row, 0 if there are some, or an error.
 */
static int rows_give(struct twi_postgres *store, enum twi_postgres_sql sql, bool dead,
		     tw_durable_give *give, void *to)
{
	PGresult *result = NULL;
	int error = twi_link_run(&store->link, store->texts[sql], &result), count;

	if (error != 0)
		return softened(store, error);
	count = PQntuples(result);
	for (int i = 0; i < count && error == 0; i++) {
		struct tw_durable_row row;

		twi_postgres_row(store, result, i, &row);
		row.dead = dead;
		/*
		 * A query for a list finds only kinds that the caller has. A query by id or key
		 * also finds other kinds, because its caller must learn that the row exists.
		 */
		error = give(to, &row);
	}
	PQclear(result);
	if (error < 0)
		return error;
	return count == 0;
}

static int one_give(struct twi_postgres *store, enum twi_postgres_sql sql, bool dead,
		    tw_durable_give *give, void *to)
{
	int error = rows_give(store, sql, dead, give, to);

	return error == 1 ? -ENOENT : error;
}

void twi_postgres_kinds_argument(const struct twi_postgres *store, struct twi_values *values)
{
	int array = twi_values_array(values, TWI_TYPE_ARRAY_INT4);

	for (size_t i = 0; i < store->kind_count; i++)
		twi_array_int4(values, array, store->to_server[i]);
}

int twi_postgres_near(void *to_store, const struct tw_durable_row *after, int64_t until_ns,
		      size_t max, tw_durable_give *give, void *to)
{
	struct twi_postgres *store = to_store;
	struct twi_values *values = &store->link.values;
	int error;

	twi_values_begin(values);
	twi_values_int8(values, after == NULL ? INT64_MIN : after->due_ns);
	twi_values_int8(values, after == NULL ? INT64_MIN : (int64_t)after->id.place);
	twi_values_int8(values, after == NULL ? 0 : (int64_t)after->id.serial);
	twi_values_int8(values, until_ns);
	twi_values_int8(values, (int64_t)max);
	twi_postgres_kinds_argument(store, values);
	error = rows_give(store, TWI_POSTGRES_NEAR, false, give, to);
	return error == 1 ? 0 : error;
}

static void id_arguments(struct twi_postgres *store, struct tw_durable_id id)
{
	twi_values_begin(&store->link.values);
	twi_values_int8(&store->link.values, (int64_t)id.place);
	twi_values_int8(&store->link.values, (int64_t)id.serial);
}

int twi_postgres_find(void *to_store, struct tw_durable_id id, tw_durable_give *give, void *to)
{
	struct twi_postgres *store = to_store;
	int error;

	id_arguments(store, id);
	error = one_give(store, TWI_POSTGRES_FIND, false, give, to);
	/* The session may have claimed this row, although the set does not have it in memory. */
	if (error != 0 && error != -ENOENT)
		store->unread = true;
	if (error != -ENOENT)
		return error;
	id_arguments(store, id);
	return one_give(store, TWI_POSTGRES_FIND_DEAD, true, give, to);
}

int twi_postgres_find_key(void *to_store, const void *key, size_t bytes, tw_durable_give *give,
			  void *to)
{
	struct twi_postgres *store = to_store;

	twi_values_begin(&store->link.values);
	twi_values_bytes(&store->link.values, TWI_TYPE_BYTEA, key, bytes);
	return one_give(store, TWI_POSTGRES_FIND_KEY, false, give, to);
}

int twi_postgres_dead(void *to_store, struct tw_durable_id after, size_t max, tw_durable_give *give,
		      void *to)
{
	struct twi_postgres *store = to_store;
	int error;

	id_arguments(store, after);
	/* An id of zeros means: from the first on, including deadlines before 1970. */
	if (after.serial == 0)
		id_arguments(store, (struct tw_durable_id){(uint64_t)INT64_MIN, 0});
	twi_values_int8(&store->link.values, (int64_t)max);
	twi_postgres_kinds_argument(store, &store->link.values);
	error = rows_give(store, TWI_POSTGRES_DEAD, true, give, to);
	return error == 1 ? 0 : error;
}

int twi_postgres_dead_trim(void *to_store, uint64_t most, int64_t ended_before_ns, size_t max)
{
	struct twi_postgres *store = to_store;
	struct twi_values *values = &store->link.values;
	PGresult *result = NULL;
	int error, count = 0;

	twi_values_begin(values);
	twi_values_int8(values, most > INT64_MAX ? INT64_MAX : (int64_t)most);
	twi_values_int8(values, ended_before_ns);
	twi_values_int8(values, (int64_t)max);
	error = twi_link_run(&store->link, store->texts[TWI_POSTGRES_DEAD_TRIM], &result);
	if (error != 0)
		return softened(store, error);
	count = PQntuples(result);
	PQclear(result);
	return count;
}
