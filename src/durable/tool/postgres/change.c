/* SPDX-License-Identifier: MIT */
#include "durable/tool/postgres/server.h"

#include <errno.h>
#include <string.h>

/* The outcomes that the functions of the schema return. */
enum outcome {
	NEVER_RAN = 0,
	RUNNING = 3,
	ATTEMPTED = 4,
	ABSENT = 5,
};

static int number_note(void *to, const PGresult *from)
{
	*(int32_t *)to = twi_value_int4(from, 0, 0);
	return 0;
}

static void id_arguments(struct twi_tool_server *server, struct tw_durable_id id)
{
	twi_values_begin(&server->values);
	twi_values_int8(&server->values, (int64_t)id.place);
	twi_values_int8(&server->values, (int64_t)id.serial);
}

/* Runs a statement that returns a number for each row that it has changed. */
static int change(struct twi_tool_server *server, const char *text)
{
	int32_t changed = 0;
	int error = twi_tool_server_rows(server, text, number_note, &changed);

	if (error != 0)
		return error;
	return changed == 0 ? -ENOENT : 0;
}

int twi_tool_server_cancel(struct twi_tool_server *server, struct tw_durable_id id)
{
	int32_t outcome = ABSENT;
	int error;

	id_arguments(server, id);
	error = twi_tool_server_rows(server, "SELECT @.cancel($1::bigint || '-' || $2::bigint)",
				     number_note, &outcome);
	if (error != 0 || outcome == NEVER_RAN || outcome == ATTEMPTED)
		return error;
	if (outcome == RUNNING)
		return -EBUSY;
	id_arguments(server, id);
	return change(server, "DELETE FROM @.dead WHERE place = $1 AND serial = $2 RETURNING 1");
}

/*
 * Revives a dead letter. The timer is due now, and any process may claim it. It loses its key,
 * because another timer may have the key by now.
 */
int twi_tool_server_revive(struct twi_tool_server *server, struct tw_durable_id id)
{
	id_arguments(server, id);
	return change(
		server,
		"WITH gone AS (DELETE FROM @.dead d WHERE place = $1 AND serial = $2 AND NOT "
		"EXISTS (SELECT 1 FROM @.timer t WHERE t.serial = d.serial) RETURNING *) INSERT "
		"INTO @.timer (serial, place, due, version, kind, payload) SELECT serial, place, "
		"@.now_ns(), version, kind, payload FROM gone RETURNING 1");
}

int twi_tool_server_pause(struct twi_tool_server *server, const char *kind, bool paused)
{
	twi_values_begin(&server->values);
	twi_values_bytes(&server->values, TWI_TYPE_TEXT, kind, strlen(kind));
	twi_values_int4(&server->values, paused);
	return change(server, "UPDATE @.kind SET paused = $2 <> 0 WHERE name = $1 RETURNING 1");
}
