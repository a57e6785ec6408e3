/* SPDX-License-Identifier: MIT */
/* PostgreSQL as a store: its options, its texts, its functions. */
#include "durable/postgres/store.h"

#include "base/sized.h"
#include "durable/postgres/schema.h"
#include "durable/postgres/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel/durable_postgres.h>

#define SECOND UINT64_C(1000000000)
#define MILLISECOND UINT64_C(1000000)

#define COLUMNS "serial, place, due, attempt, session, version, kind, open, key, payload"
#define COLUMNS_DEAD "serial, place, due, attempt, 0::bigint, version, kind, false, key, payload"

/* '@' stands for the name of the schema. */
static const char *const texts[TWI_POSTGRES_SQL_COUNT] = {
	/* 2 is the version of the schema that this library knows. */
	[TWI_POSTGRES_SESSION_BEGIN] = "SELECT @.session_begin($1, $2, 2), @.now_ns()",
	[TWI_POSTGRES_SESSION_END] = "SELECT @.session_end($1)",
	[TWI_POSTGRES_BEAT] = "SELECT * FROM @.session_beat($1, $2)",
	[TWI_POSTGRES_RESERVE] =
		"UPDATE @.meta SET serial = serial + $1 RETURNING serial - $1, serial",
	[TWI_POSTGRES_KINDS_ADD] =
		"INSERT INTO @.kind (name) SELECT n FROM (SELECT convert_from(unnest($1), "
		"'SQL_ASCII') AS n) AS given WHERE n NOT IN (SELECT name FROM @.kind) "
		"ON CONFLICT DO NOTHING",
	[TWI_POSTGRES_KINDS] = "SELECT id, name FROM @.kind",
	[TWI_POSTGRES_LEVEL] =
		"SELECT CASE WHEN current_setting('fsync') <> 'on' OR EXISTS (SELECT 1 FROM "
		"pg_class "
		"WHERE relnamespace = '@'::regnamespace AND relkind = 'r' AND relpersistence <> "
		"'p') "
		"THEN 1 WHEN current_setting('synchronous_commit') = 'off' THEN 2 ELSE 3 END, "
		"pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on'",
	[TWI_POSTGRES_BATCH_BEGIN] = "SELECT @.batch_begin($1, $2, false)",
	[TWI_POSTGRES_BATCH_LOOK] = "SELECT * FROM @.batch_look($1)",
	[TWI_POSTGRES_PUT] =
		"SELECT * FROM @.op_put($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)",
	[TWI_POSTGRES_DELETE] = "SELECT * FROM @.op_delete($1, $2, $3, $4, $5, $6)",
	[TWI_POSTGRES_MOVE] = "SELECT * FROM @.op_move($1, $2, $3, $4, $5, $6, $7, $8, $9)",
	[TWI_POSTGRES_START] = "SELECT * FROM @.op_start($1, $2, $3, $4, $5, $6)",
	[TWI_POSTGRES_BURY] = "SELECT * FROM @.op_bury($1, $2, $3, $4, $5, $6)",
	[TWI_POSTGRES_REVIVE] = "SELECT * FROM @.op_revive($1, $2, $3, $4, $5, $6)",
	[TWI_POSTGRES_DROP] = "SELECT * FROM @.op_drop($1, $2, $3, $4)",
	[TWI_POSTGRES_CLAIM] = "SELECT " COLUMNS " FROM @.claim($1, $2, $3, $4, $5, $6) "
			       "ORDER BY due, place, serial",
	[TWI_POSTGRES_CLAIM_RECENT] =
		"SELECT " COLUMNS " FROM @.claim_recent($1, $2, $3, $4, $5, $6) "
		"ORDER BY due, place, serial",
	[TWI_POSTGRES_CLAIM_FOUND] = "SELECT " COLUMNS " FROM @.claim_found($1, $2, $3, $4, $5) "
				     "ORDER BY due, place, serial",
	/*
	 * The time is a subquery, which the server runs once, so that the time can bound the scan
	 * of the index.
	 */
	[TWI_POSTGRES_LOOK] =
		"SELECT l.* FROM @.kind k CROSS JOIN LATERAL (SELECT serial, due, place FROM "
		"@.timer WHERE session = 0 AND kind = k.id AND (due, place, serial) > "
		"($1::bigint, $2::bigint, $3::bigint) AND due <= (SELECT @.now_ns()) "
		"ORDER BY due, place, serial LIMIT $5) AS l WHERE k.id = ANY ($4) AND NOT "
		"k.paused ORDER BY l.due, l.place, l.serial LIMIT $5",
	[TWI_POSTGRES_HELD] = "SELECT " COLUMNS " FROM @.timer WHERE session = $1 AND NOT started "
			      "ORDER BY due, place, serial",
	[TWI_POSTGRES_GIVE_BACK] = "SELECT @.give_back($1, $2, $3)",
	/*
	 * An index has the free timers of each kind in order. The claimed timers have no such
	 * index, but they are few, so the server sorts them.
	 */
	[TWI_POSTGRES_NEAR] =
		"(SELECT l.* FROM unnest($6::integer[]) AS k CROSS JOIN LATERAL (SELECT " COLUMNS
		" FROM @.timer WHERE session = 0 AND kind = k AND (due, place, serial) > "
		"($1::bigint, $2::bigint, $3::bigint) AND due <= $4 "
		"ORDER BY due, place, serial LIMIT $5) AS l) UNION ALL "
		"(SELECT " COLUMNS " FROM @.timer WHERE session <> 0 AND (due, place, serial) > "
		"($1, $2, $3) AND due <= $4 AND kind = ANY ($6) ORDER BY due, place, serial LIMIT "
		"$5) "
		"ORDER BY due, place, serial LIMIT $5",
	[TWI_POSTGRES_FIND] = "SELECT " COLUMNS " FROM @.timer WHERE place = $1 AND serial = $2",
	[TWI_POSTGRES_FIND_DEAD] =
		"SELECT " COLUMNS_DEAD " FROM @.dead WHERE place = $1 AND serial = $2",
	[TWI_POSTGRES_FIND_KEY] = "SELECT " COLUMNS " FROM @.timer WHERE key = $1",
	[TWI_POSTGRES_DEAD] =
		"SELECT " COLUMNS_DEAD " FROM @.dead WHERE (place, serial) > ($1, $2) AND "
		"kind = ANY ($4) ORDER BY place, serial LIMIT $3",
	[TWI_POSTGRES_DEAD_TRIM] =
		"DELETE FROM @.dead WHERE serial IN (SELECT serial FROM (SELECT serial, ended, "
		"row_number() OVER (ORDER BY ended DESC, serial DESC) AS n FROM @.dead) AS d "
		"WHERE ended < $2 OR n > $1 ORDER BY ended, serial LIMIT $3) RETURNING serial",
};

static const struct tw_durable_postgres_options defaults = {
	.schema = "tickwheel",
	.name = "",
	.session_ns = 10 * SECOND,
	.poll_ns = SECOND,
};

int tw_durable_postgres_options_init(struct tw_durable_postgres_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, sizeof defaults, &defaults, sizeof defaults);
}

static int postgres_reserve(void *to, uint64_t count, uint64_t *ret_first)
{
	struct twi_postgres *store = to;
	PGresult *result = NULL;
	int64_t first, end;
	int error;

	twi_values_begin(&store->link.values);
	twi_values_int8(&store->link.values, (int64_t)count);
	error = twi_link_run(&store->link, store->texts[TWI_POSTGRES_RESERVE], &result);
	/*
	 * If the reply is lost, the server has reserved numbers that no process uses. That does no
	 * harm.
	 */
	if (error != 0)
		return error == -ECONNRESET || error == -ENOMEM ? -EAGAIN : error;
	first = twi_value_int8(result, 0, 0);
	end = twi_value_int8(result, 0, 1);
	PQclear(result);
	/* Greater serials belong to the function schedule() in the server. */
	if (first < 1 || end <= first || end > INT64_C(1) << 62)
		return -EUCLEAN;
	*ret_first = (uint64_t)first;
	return 0;
}

static int postgres_upkeep(void *to)
{
	(void)to;
	return 0;
}

static void store_free(struct twi_postgres *store)
{
	twi_look_end(store);
	twi_values_free(&store->look.values);
	twi_link_free(&store->link);
	for (int i = 0; i < TWI_POSTGRES_SQL_COUNT; i++)
		free(store->texts[i]);
	free(store->to_server);
	free(store->from_server);
	free(store->schema);
	free(store->name);
	free(store);
}

/*
 * Ends the session, so that its rows are free at once. If the server cannot be reached, they are
 * free when the session runs out.
 */
static void postgres_close(void *to, int clean)
{
	struct twi_postgres *store = to;

	(void)clean;
	if (store->link.statements != NULL && store->link.session != 0 && !store->link.over) {
		twi_values_begin(&store->link.values);
		twi_values_int8(&store->link.values, (int64_t)store->link.session);
		(void)twi_link_run(&store->link, store->texts[TWI_POSTGRES_SESSION_END], NULL);
	}
	store_free(store);
}

static const struct tw_durable_store_ops postgres_ops = {
	.size = sizeof(postgres_ops),
	.flags = TW_DURABLE_STORE_SHARED,
	.open = twi_postgres_open,
	.reserve = postgres_reserve,
	.commit = twi_postgres_commit,
	.near = twi_postgres_near,
	.find = twi_postgres_find,
	.find_key = twi_postgres_find_key,
	.dead = twi_postgres_dead,
	.upkeep = postgres_upkeep,
	.close = postgres_close,
	.dead_trim = twi_postgres_dead_trim,
	.beat = twi_postgres_beat,
	.claim = twi_postgres_claim,
};

static bool texts_make(struct twi_postgres *store)
{
	for (int i = 0; i < TWI_POSTGRES_SQL_COUNT; i++) {
		store->texts[i] = twi_postgres_text(texts[i], store->schema);
		if (store->texts[i] == NULL)
			return false;
	}
	store->link.beat_text = strdup(store->texts[TWI_POSTGRES_BEAT]);
	return store->link.beat_text != NULL;
}

static struct twi_postgres *store_make(const struct tw_durable_postgres_options *options)
{
	struct twi_postgres *store = calloc(1, sizeof *store);

	if (store == NULL)
		return NULL;
	store->link.address = strdup(options->address);
	store->link.notice = (struct twi_postgres_notice){options->notice, options->context};
	store->link.session_ns = (int64_t)options->session_ns;
	store->poll_ns = (int64_t)options->poll_ns;
	store->schema = strdup(options->schema);
	store->link.schema = store->schema;
	store->name = strdup(options->name);
	if (store->link.address != NULL && store->schema != NULL && store->name != NULL &&
	    texts_make(store))
		return store;
	store_free(store);
	return NULL;
}

static bool right(const struct tw_durable_postgres_options *options)
{
	return options->flags == 0 && options->address != NULL && options->address[0] != '\0' &&
	       twi_postgres_name_right(options->schema) && options->name != NULL &&
	       options->session_ns >= SECOND && options->session_ns <= 3600 * SECOND &&
	       options->poll_ns >= 10 * MILLISECOND && options->poll_ns <= 60 * SECOND;
}

int tw_durable_store_postgres(const struct tw_durable_postgres_options *options,
			      struct tw_durable_store *ret_store)
{
	struct twi_postgres *store;
	int error;

	if (options == NULL || ret_store == NULL)
		return -EINVAL;
	error = twi_size_check(options, options->size, sizeof *options, sizeof *options);
	if (error != 0)
		return error;
	if (!right(options))
		return -EINVAL;
	store = store_make(options);
	if (store == NULL)
		return -ENOMEM;
	*ret_store = (struct tw_durable_store){&postgres_ops, store};
	return 0;
}
