/* SPDX-License-Identifier: MIT */
/*
 * A look is a search for due rows over a connection of its own.
 *
 * While a transaction holds an old snapshot, the server keeps the index entries of all timers that
 * ended since. A claim from the beginning must pass over these entries, and runs would wait for the
 * claim. So if such a claim took long, later claims take only the recent rows, and looks search for
 * the older ones. The store does not wait for the reply to a look. When the reply has arrived, a
 * claim takes the found rows by their serials. When looks are quick again, the store ends them.
 */
#include "durable/postgres/store.h"

#include <stdlib.h>

#define SECOND INT64_C(1000000000)
#define MILLISECOND INT64_C(1000000)

/* A look or a claim is slow if it takes this much longer than a round trip to the server. */
#define SLOW_NS (10 * MILLISECOND)
/* A claim may take this much longer for each of its rows. */
#define ROW_NS INT64_C(40000)
/*
 * The pause after a look is this many times as long as the look, at least poll_ns and at most a
 * minute. So looks take at most a twentieth of the time. There are two exceptions: a look of more
 * than 3 s, and looks that follow at once because there may be more rows (twi_look_claimed).
 */
#define PAUSE_FACTOR 19
#define PAUSE_MOST_NS (60 * SECOND)
/* The server ends a look after this time. */
#define LIMIT_NS (60 * SECOND)
/* The looks end when the last one was quick, and none was slow for this time. */
#define CALM_NS (30 * SECOND)

enum {
	/* The most rows that a look finds, as many as a claim takes. */
	LOOK_MAX = 1000,
};

static void found_drop(struct twi_look *look)
{
	PQclear(look->found);
	look->found = NULL;
}

void twi_look_end(struct twi_postgres *store)
{
	struct twi_look *look = &store->look;

	found_drop(look);
	if (look->connection != NULL)
		PQfinish(look->connection);
	look->connection = NULL;
	look->waits = false;
	store->low = INT64_MIN;
}

static bool slow(const struct twi_postgres *store, int64_t took_ns, int rows)
{
	return took_ns > store->link.trip_ns + SLOW_NS + rows * ROW_NS;
}

/*
 * Ends the looks after a failure. For a minute claims begin at the beginning again, and no look is
 * sent.
 */
static void looks_fail(struct twi_postgres *store)
{
	twi_look_end(store);
	store->look.retry_ns = twi_link_now_ns() + PAUSE_MOST_NS;
}

/*
 * Begins the looks. Waits until their connection is made, as for a reconnection. The wait is
 * acceptable, because the slow claim just before was a wait, too.
 */
static void looks_begin(struct twi_postgres *store)
{
	struct twi_look *look = &store->look;

	look->connection = twi_link_make(&store->link, LIMIT_NS);
	if (look->connection == NULL)
		looks_fail(store);
	look->quick = false;
	look->at_ns = 0;
	look->after = (struct twi_look_place){INT64_MIN, INT64_MIN, 0};
}

void twi_look_judge(struct twi_postgres *store, int64_t sent_ns, int rows)
{
	int64_t now_ns = twi_link_now_ns();

	if (store->link.statements == NULL || !slow(store, now_ns - sent_ns, rows))
		return;
	store->look.slow_ns = now_ns;
	if (store->look.connection == NULL && now_ns >= store->look.retry_ns)
		looks_begin(store);
}

static void look_send(struct twi_postgres *store)
{
	struct twi_look *look = &store->look;
	struct twi_values *values = &look->values;

	twi_values_begin(values);
	twi_values_int8(values, look->after.due);
	twi_values_int8(values, look->after.place);
	twi_values_int8(values, look->after.serial);
	twi_postgres_kinds_argument(store, values);
	twi_values_int4(values, LOOK_MAX);
	look->sent_ns = twi_link_now_ns();
	/*
	 * A look that begins behind a row does not show how long the search up to that row would
	 * take.
	 */
	look->quick = look->after.due == INT64_MIN;
	look->after = (struct twi_look_place){INT64_MIN, INT64_MIN, 0};
	if (twi_values_send(values, look->connection, store->texts[TWI_POSTGRES_LOOK]) == 0)
		look->waits = true;
	else
		looks_fail(store);
}

/* Takes the reply to a look. */
static void look_take(struct twi_postgres *store, PGresult *result)
{
	struct twi_look *look = &store->look;
	int64_t now_ns = twi_link_now_ns(), took_ns = now_ns - look->sent_ns;
	int64_t pause_ns = took_ns * PAUSE_FACTOR;

	if (pause_ns < store->poll_ns)
		pause_ns = store->poll_ns;
	if (pause_ns > PAUSE_MOST_NS)
		pause_ns = PAUSE_MOST_NS;
	look->at_ns = now_ns + pause_ns;
	if (slow(store, took_ns, 0)) {
		look->quick = false;
		look->slow_ns = now_ns;
	}
	if (PQresultStatus(result) != PGRES_TUPLES_OK) {
		twi_postgres_notify(&store->link.notice, look->connection);
		PQclear(result);
		return;
	}
	found_drop(look);
	if (PQntuples(result) != 0) {
		look->found = result;
		store->whole_at_ns = 0;
	} else {
		PQclear(result);
	}
}

/* Reads the bytes that have arrived. Returns false if the connection is lost. */
static bool look_read(struct twi_postgres *store)
{
	struct twi_look *look = &store->look;
	PGresult *result;

	if (PQflush(look->connection) < 0 || PQconsumeInput(look->connection) == 0)
		return false;
	while (PQisBusy(look->connection) == 0) {
		result = PQgetResult(look->connection);
		if (result == NULL) {
			look->waits = false;
			break;
		}
		look_take(store, result);
	}
	return PQstatus(look->connection) == CONNECTION_OK &&
	       (!look->waits || twi_link_now_ns() - look->sent_ns < LIMIT_NS + SECOND);
}

void twi_look_step(struct twi_postgres *store)
{
	struct twi_look *look = &store->look;
	int64_t now_ns = twi_link_now_ns();

	if (look->connection == NULL)
		return;
	if (look->waits) {
		if (!look_read(store))
			looks_fail(store);
	} else if (look->found == NULL && look->quick && now_ns - look->slow_ns > CALM_NS) {
		twi_look_end(store);
	} else if (look->found == NULL && now_ns >= look->at_ns) {
		look_send(store);
	}
}

void twi_look_claimed(struct twi_postgres *store, int asked, int claimed)
{
	struct twi_look *look = &store->look;

	/*
	 * There may be more rows, so the next look begins behind the last row of this one. It
	 * follows at once, unless other transactions have taken all rows of this look.
	 */
	if (asked == LOOK_MAX) {
		look->after = (struct twi_look_place){
			.due = twi_value_int8(look->found, asked - 1, 1),
			.place = twi_value_int8(look->found, asked - 1, 2),
			.serial = twi_value_int8(look->found, asked - 1, 0),
		};
		if (claimed > 0)
			look->at_ns = 0;
	}
	found_drop(look);
}
