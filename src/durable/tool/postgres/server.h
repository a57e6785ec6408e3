/* SPDX-License-Identifier: MIT */
/*
 * Shows and changes durable timers in PostgreSQL. The program has no session: it claims nothing,
 * and processes with timers do not notice it. If the server reports an error, the message goes to
 * stderr, and the code is -ECANCELED.
 */
#ifndef TWI_DURABLE_TOOL_POSTGRES_SERVER_H
#define TWI_DURABLE_TOOL_POSTGRES_SERVER_H

#include "durable/postgres/values.h"
#include "durable/tool/kinds.h"
#include "durable/tool/list.h"

struct twi_tool_server {
	PGconn *connection;
	const char *schema;
	struct twi_values values; /* arguments of the next statement */
	struct twi_tool_kinds kinds;
};

/*
 * Connects. If `reads`, all reads return the timers of one moment. Returns 0, -ENOENT if there is
 * no such schema, -ENOTSUP, -EUCLEAN, or another code.
 */
int twi_tool_server_open(struct twi_tool_server *server, const char *address, const char *schema,
			 bool reads);
void twi_tool_server_close(struct twi_tool_server *server);

/*
 * Runs a statement with the arguments in `values`, and passes each row to `give`. In `text`, '@'
 * stands for the name of the schema.
 */
int twi_tool_server_rows(struct twi_tool_server *server, const char *text,
			 int (*give)(void *to, const PGresult *row), void *to);

/* Do the same as the functions of list.h and dump.h, for a server. */
int twi_tool_server_count(struct twi_tool_server *server, const struct twi_tool_output *output);
int twi_tool_server_list(struct twi_tool_server *server, const struct twi_tool_output *output);
int twi_tool_server_dead(struct twi_tool_server *server, const struct twi_tool_output *output);
int twi_tool_server_show(struct twi_tool_server *server, const struct twi_tool_output *output,
			 struct tw_durable_id id);
int twi_tool_server_find(struct twi_tool_server *server, const struct twi_tool_output *output,
			 const char *key);
int twi_tool_server_dump(struct twi_tool_server *server, const struct twi_tool_output *output);
/* Prints the processes that have a session, and how many timers each has. */
int twi_tool_server_sessions(struct twi_tool_server *server, const struct twi_tool_output *output);
/*
 * Checks the references between rows. Prints a line for each defect. Returns -ENOENT if there are
 * defects.
 */
int twi_tool_server_check(struct twi_tool_server *server, const struct twi_tool_output *output);

/*
 * Change a timer, a dead letter or a kind. Return 0, -ENOENT if there is no such timer, dead letter
 * or kind, -EBUSY if the timer runs now, or a code.
 */
int twi_tool_server_cancel(struct twi_tool_server *server, struct tw_durable_id id);
int twi_tool_server_revive(struct twi_tool_server *server, struct tw_durable_id id);
int twi_tool_server_pause(struct twi_tool_server *server, const char *kind, bool paused);

#endif
