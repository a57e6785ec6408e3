/* SPDX-License-Identifier: MIT */
/*
 * Durable timers in PostgreSQL, as the program shows and changes them. It is no session: it claims
 * nothing, and processes with timers do not notice it. What the server says of a failure goes to stderr,
 * and the code is then -ECANCELED.
 */
#ifndef TWI_DURABLE_TOOL_SERVER_H
#define TWI_DURABLE_TOOL_SERVER_H

#include "durable/postgres/values.h"
#include "durable/tool/kinds.h"
#include "durable/tool/list.h"

struct twi_tool_server {
	PGconn *connection;
	const char *schema;
	struct twi_values values; /* of the statement that is being made */
	struct twi_tool_kinds kinds;
};

/* All reads see one moment, if `reads`. -ENOENT: the schema is not there; -ENOTSUP; -EUCLEAN. */
int twi_tool_server_open(struct twi_tool_server *server, const char *address, const char *schema,
			 bool reads);
void twi_tool_server_close(struct twi_tool_server *server);

/* Gives each row of a statement with the arguments in `values`. '@' is the schema. */
int twi_tool_server_rows(struct twi_tool_server *server, const char *text,
			 int (*give)(void *to, const PGresult *row), void *to);

/* As the functions of list.h and dump.h. */
int twi_tool_server_count(struct twi_tool_server *server, const struct twi_tool_output *output);
int twi_tool_server_list(struct twi_tool_server *server, const struct twi_tool_output *output);
int twi_tool_server_dead(struct twi_tool_server *server, const struct twi_tool_output *output);
int twi_tool_server_show(struct twi_tool_server *server, const struct twi_tool_output *output,
			 struct tw_durable_id id);
int twi_tool_server_find(struct twi_tool_server *server, const struct twi_tool_output *output,
			 const char *key);
int twi_tool_server_dump(struct twi_tool_server *server, const struct twi_tool_output *output);
/* The processes that have a session, and how many timers each has. */
int twi_tool_server_sessions(struct twi_tool_server *server, const struct twi_tool_output *output);
/* What ties rows together. -ENOENT: there are defects, a line for each. */
int twi_tool_server_check(struct twi_tool_server *server, const struct twi_tool_output *output);

/* Done; -ENOENT: there is no such timer, dead letter or kind; -EBUSY: the timer runs now. */
int twi_tool_server_cancel(struct twi_tool_server *server, struct tw_durable_id id);
int twi_tool_server_revive(struct twi_tool_server *server, struct tw_durable_id id);
int twi_tool_server_pause(struct twi_tool_server *server, const char *kind, bool paused);

#endif
