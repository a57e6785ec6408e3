/* SPDX-License-Identifier: MIT */
/* The commands of the program on timers in a server. */
#include "durable/postgres/schema.h"
#include "durable/tool/arguments.h"
#include "durable/tool/postgres/server.h"

#include <errno.h>
#include <string.h>

static int cancel_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_cancel(server, arguments->id);
}

static int check_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_check(server, &arguments->output);
}

static int count_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_count(server, &arguments->output);
}

static int dead_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_dead(server, &arguments->output);
}

static int dump_run(void *server, const struct twi_tool_arguments *arguments)
{
	struct twi_tool_output output = arguments->output;

	output.json = true;
	return twi_tool_server_dump(server, &output);
}

static int find_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_find(server, &arguments->output, arguments->argument);
}

static int list_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_list(server, &arguments->output);
}

static int pause_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_pause(server, arguments->argument, true);
}

static int resume_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_pause(server, arguments->argument, false);
}

static int revive_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_revive(server, arguments->id);
}

static int sessions_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_sessions(server, &arguments->output);
}

static int show_run(void *server, const struct twi_tool_arguments *arguments)
{
	return twi_tool_server_show(server, &arguments->output, arguments->id);
}

const struct twi_tool_command twi_tool_server_commands[] = {
	{"cancel", TWI_TOOL_AN_ID, cancel_run},
	{"check", TWI_TOOL_NOTHING, check_run},
	{"count", TWI_TOOL_NOTHING, count_run},
	{"dead", TWI_TOOL_NOTHING, dead_run},
	{"dump", TWI_TOOL_NOTHING, dump_run},
	{"find", TWI_TOOL_A_TEXT, find_run},
	{"list", TWI_TOOL_NOTHING, list_run},
	{"pause", TWI_TOOL_A_TEXT, pause_run},
	{"resume", TWI_TOOL_A_TEXT, resume_run},
	{"revive", TWI_TOOL_AN_ID, revive_run},
	{"sessions", TWI_TOOL_NOTHING, sessions_run},
	{"show", TWI_TOOL_AN_ID, show_run},
	{NULL, TWI_TOOL_NOTHING, NULL},
};

static bool changes(const struct twi_tool_command *command)
{
	return command->run == cancel_run || command->run == pause_run ||
	       command->run == resume_run || command->run == revive_run;
}

static int told(const struct twi_tool_arguments *arguments, int error)
{
	const char *text = error == -EBUSY     ? "the timer runs now"
			   : error == -ENOENT  ? "there is no such schema"
			   : error == -ENOTSUP ? "it has another version"
			   : error == -EUCLEAN ? "it is not a schema of durable timers"
					       : strerror(-error);

	fprintf(stderr, "tickwheel-durable: the schema %s: %s\n", arguments->schema, text);
	return -ECANCELED;
}

int twi_tool_server_run(const struct twi_tool_command *command,
			const struct twi_tool_arguments *arguments)
{
	struct twi_tool_server server;
	int error;

	if (!twi_postgres_name_right(arguments->schema))
		return told(arguments, -EINVAL);
	error = twi_tool_server_open(&server, arguments->postgres, arguments->schema,
				     !changes(command));
	if (error != 0)
		return error == -ECANCELED ? error : told(arguments, error);
	error = command->run(&server, arguments);
	twi_tool_server_close(&server);
	return error == 0 || error == -ENOENT || error == -ECANCELED ? error
								     : told(arguments, error);
}
