/* SPDX-License-Identifier: MIT */
/* The arguments of the command line. */
#ifndef TWI_DURABLE_TOOL_ARGUMENTS_H
#define TWI_DURABLE_TOOL_ARGUMENTS_H

#include "durable/tool/list.h"

/* The argument that follows the name of a command. */
enum twi_tool_argument {
	TWI_TOOL_NOTHING,
	TWI_TOOL_AN_ID,
	TWI_TOOL_A_TEXT,
};

struct twi_tool_arguments {
	struct twi_tool_output output;
	const char *path;              /* of a file; NULL: the timers are in a server */
	const char *postgres, *schema; /* the server's address, and the schema */
	const char *redis,
		*prefix;        /* the server's address, and the first part of the keys' names */
	const char *user;       /* of Redis, or NULL */
	unsigned long database; /* of Redis */
	const char *command, *argument; /* argument: NULL: none */
	struct tw_durable_id id;        /* the argument, if it is an id */
};

/*
 * A command on a store (a file or a server). Returns 0, -ENOENT if nothing was found, -ECANCELED
 * after it has printed the reason, or a code.
 */
struct twi_tool_command {
	const char *name;
	enum twi_tool_argument argument;
	int (*run)(void *store, const struct twi_tool_arguments *arguments);
};

/* postgres/run.c: the commands on a server. A NULL name ends the array. */
extern const struct twi_tool_command twi_tool_server_commands[];
/* Connects to the server and runs a command. Returns what a command returns. */
int twi_tool_server_run(const struct twi_tool_command *command,
			const struct twi_tool_arguments *arguments);

/* redis/run.c: the same for Redis. */
extern const struct twi_tool_command twi_tool_redis_commands[];
int twi_tool_redis_command_run(const struct twi_tool_command *command,
			       const struct twi_tool_arguments *arguments);

#endif
