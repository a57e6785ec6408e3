/* SPDX-License-Identifier: MIT */
#include "worker.h"

#include <errno.h>
#include <libpq-fe.h>
#include <stdbool.h>
#include <stdio.h>
#include <tickwheel/durable_postgres.h>

static PGconn *effects;

int worker_store(const struct worker_place *place, struct tw_durable_store *ret_store)
{
	struct tw_durable_postgres_options server;

	(void)tw_durable_postgres_options_init(&server, sizeof server);
	server.address = place->address;
	server.schema = place->place;
	server.name = place->name;
	server.session_ns = place->session_ns;
	server.poll_ns = place->session_ns / 10;
	server.notice = place->notice;
	return tw_durable_store_postgres(&server, ret_store);
}

static bool sql(const char *text)
{
	PGresult *result = PQexec(effects, text);
	bool good = PQresultStatus(result) == PGRES_COMMAND_OK;

	PQclear(result);
	return good;
}

/* The effect and the end of the timer are one transaction. */
int worker_effect(const struct worker_place *place, const struct tw_durable_self *self,
		  const char *id)
{
	char text[128];
	int code = -ECONNRESET;

	if (effects == NULL || PQstatus(effects) != CONNECTION_OK) {
		PQfinish(effects);
		effects = PQconnectdb(place->address);
	}
	snprintf(text, sizeof text, "INSERT INTO %s.effect VALUES ('%s')", place->place, id);
	if (sql("BEGIN") && sql(text))
		code = tw_durable_postgres_finish_in(effects, place->place, self);
	if (code == 0)
		return sql("COMMIT") ? 0 : -ECONNRESET;
	(void)sql("ROLLBACK");
	return code;
}

void worker_end(void)
{
	PQfinish(effects);
}
