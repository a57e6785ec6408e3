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
	const char *path;              /* name of a file, or NULL if the timers are in a server */
	const char *postgres, *schema; /* the server's address, and the schema */
	const char *redis,
		*prefix;        /* the server's address, and the first part of the keys' names */
	const char *user;       /* user of Redis, or NULL */
	unsigned long database; /* number of the database in Redis */
	const char *command, *argument; /* name and argument of the command; no argument: NULL */
	struct tw_durable_id id;        /* the argument, if it is an id */
};

/*
 * A command on a store (a file or a server). Returns 0, -ENOENT if nothing was found, -ECANCELED if
 * the command has printed the reason itself, or a code.
 */
struct twi_tool_command {
	const char *name;
	enum twi_tool_argument argument;
	int (*run)(void *store, const struct twi_tool_arguments *arguments);
};

/* postgres/run.c: the commands on a server. The last element has the name NULL. */
extern const struct twi_tool_command twi_tool_server_commands[];
/* Connects to the server and runs a command. Returns what a command returns. */
int twi_tool_server_run(const struct twi_tool_command *command,
			const struct twi_tool_arguments *arguments);

/* redis/run.c: the commands on Redis, and the function that runs one of them. */
extern const struct twi_tool_command twi_tool_redis_commands[];
int twi_tool_redis_command_run(const struct twi_tool_command *command,
			       const struct twi_tool_arguments *arguments);

#endif
