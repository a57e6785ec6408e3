/* SPDX-License-Identifier: MIT */
/*
 * The program tickwheel-durable: shows, checks, copies and changes durable timers, in a file, in
 * PostgreSQL or in Redis.
 */
#include "durable/tool/arguments.h"
#include "durable/tool/change.h"
#include "durable/tool/check.h"
#include "durable/tool/dump.h"
#include "durable/tool/load.h"
#include "durable/tool/print.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum exit_code {
	EXIT_GOOD,
	EXIT_NOT, /* nothing was found, or the check found defects */
	EXIT_USAGE,
	EXIT_TROUBLE, /* the file cannot be read, or the output cannot be written */
};

enum {
	LIMIT = 100,
	DATABASE_MAX = 15,
};

static const char usage_text[] =
	"usage: tickwheel-durable FILE count     pending timers by kind and hour (UTC), dead "
	"letters, paused kinds\n"
	"       tickwheel-durable FILE list      the next timers, in order of deadline\n"
	"       tickwheel-durable FILE dead      dead letters\n"
	"       tickwheel-durable FILE show ID   a timer or a dead letter\n"
	"       tickwheel-durable FILE find KEY  the timer that has a key\n"
	"       tickwheel-durable FILE dump      all timers and dead letters, as lines of JSON\n"
	"       tickwheel-durable FILE load DUMP  a new file from a dump; - for the standard "
	"input\n"
	"       tickwheel-durable FILE check     pages, checksums, and what ties rows together\n"
	"       tickwheel-durable FILE backup COPY  a copy of one moment, also while a process has "
	"it open\n"
	"       tickwheel-durable FILE cancel ID  ends a timer, or removes a dead letter\n"
	"       tickwheel-durable FILE revive ID  makes a dead letter a timer that is due now\n"
	"       tickwheel-durable FILE pause KIND  no timer of the kind runs from the next open "
	"on\n"
	"       tickwheel-durable FILE resume KIND  takes that back\n"
	"       tickwheel-durable --postgres ADDRESS COMMAND  the same of timers in PostgreSQL, "
	"but for load and "
	"backup\n"
	"       tickwheel-durable --redis ADDRESS COMMAND  the same of timers in Redis\n"
	"       tickwheel-durable --postgres|--redis ADDRESS sessions  processes that share the "
	"timers\n"
	"\n"
	"  --json       a line of JSON for each timer or count\n"
	"  --limit N    list and dead: at most N (100); 0: all\n"
	"  --kind NAME  count, list, dead and dump: timers of this kind only\n"
	"  --postgres ADDRESS  as for psql: \"dbname=shop\", or a URI\n"
	"  --schema NAME  the schema there (tickwheel)\n"
	"  --redis ADDRESS  the path of a socket, HOST, HOST:PORT or [HOST]:PORT; the password is "
	"in $REDISCLI_AUTH\n"
	"  --prefix NAME  the first part of the keys' names there (tickwheel)\n"
	"  --user NAME, --database N  of Redis\n"
	"\n"
	"exit code: 0 good; 1 nothing was found, or check found defects; 2 wrong usage; 3 a file "
	"cannot be read or made\n";

static bool limit_read(const char *text, size_t *ret)
{
	char *end;

	errno = 0;
	*ret = strtoul(text, &end, 10);
	if (*ret == 0)
		*ret = SIZE_MAX;
	return errno == 0 && *end == '\0' && text[0] >= '0' && text[0] <= '9';
}

static bool database_read(const char *text, unsigned long *ret)
{
	char *end;

	*ret = strtoul(text, &end, 10);
	return *end == '\0' && text[0] >= '0' && text[0] <= '9' && *ret <= DATABASE_MAX;
}

/* Reads an option that only PostgreSQL or Redis has. Returns false for any other option, and for a
 * malformed value. */
static bool server_option_read(int option, const char *text, struct twi_tool_arguments *ret)
{
	const char **place = option == 'p'   ? &ret->postgres
			     : option == 's' ? &ret->schema
			     : option == 'r' ? &ret->redis
			     : option == 'x' ? &ret->prefix
			     : option == 'u' ? &ret->user
					     : NULL;

	if (place != NULL)
		*place = text;
	return place != NULL || (option == 'd' && database_read(text, &ret->database));
}

/* Reads the options. Returns false if the usage is wrong. */
static bool options_read(int count, char **texts, struct twi_tool_arguments *ret)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'},
		{"limit", required_argument, NULL, 'l'},
		{"kind", required_argument, NULL, 'k'},
		{"postgres", required_argument, NULL, 'p'},
		{"schema", required_argument, NULL, 's'},
		{"redis", required_argument, NULL, 'r'},
		{"prefix", required_argument, NULL, 'x'},
		{"user", required_argument, NULL, 'u'},
		{"database", required_argument, NULL, 'd'},
		{"help", no_argument, NULL, 'h'},
		{NULL, 0, NULL, 0},
	};
	int option;

	while ((option = getopt_long(count, texts, "h", options, NULL)) != -1) {
		if (option == 'j')
			ret->output.json = true;
		else if (option == 'k')
			ret->output.kind = optarg;
		else if (option == 'h')
			ret->command = "help";
		else if (option == 'l' ? !limit_read(optarg, &ret->output.limit)
				       : !server_option_read(option, optarg, ret))
			return false;
	}
	return true;
}

/* Returns false if the options name more than one store, or an option of another kind of store. */
static bool servers_right(const struct twi_tool_arguments *arguments)
{
	bool of_redis =
		arguments->prefix != NULL || arguments->user != NULL || arguments->database != 0;

	return (arguments->postgres == NULL || arguments->redis == NULL) &&
	       (arguments->postgres != NULL || arguments->schema == NULL) &&
	       (arguments->redis != NULL || !of_redis);
}

static bool arguments_read(int count, char **texts, struct twi_tool_arguments *ret)
{
	if (!options_read(count, texts, ret))
		return false;
	if (ret->command != NULL)
		return true;
	if (!servers_right(ret))
		return false;
	if (ret->postgres == NULL && ret->redis == NULL && optind < count)
		ret->path = texts[optind++];
	if (count - optind < 1 || count - optind > 2)
		return false;
	if (ret->schema == NULL)
		ret->schema = "tickwheel";
	if (ret->prefix == NULL)
		ret->prefix = "tickwheel";
	ret->command = texts[optind];
	ret->argument = count - optind == 2 ? texts[optind + 1] : NULL;
	return true;
}

/* Returns the message for an error of the file. */
static const char *trouble_text(int error)
{
	switch (error) {
	case -EEXIST:
		return "is not a file of durable timers";
	case -ENOTSUP:
		return "has another version: the library of that version reads it, and a newer one "
		       "brings it forward when it opens it";
	case -EUCLEAN:
		return "is damaged";
	case -ENOENT:
		return "no such file";
	case -EBUSY:
		return "is open, or is being read";
	default:
		return strerror(-error);
	}
}

/* Prints the message for an error. */
static int trouble(const struct twi_tool_arguments *arguments, int error)
{
	int holder = error == -EBUSY ? twi_tool_holder(arguments->path) : 0;

	if (holder != 0)
		fprintf(stderr, "tickwheel-durable: %s: process %d has it open\n", arguments->path,
			holder);
	else
		fprintf(stderr, "tickwheel-durable: %s: %s\n", arguments->path,
			trouble_text(error));
	return -ECANCELED;
}

static int check_run(void *file, const struct twi_tool_arguments *arguments)
{
	struct twi_tool_checked checked;
	FILE *out = arguments->output.out;
	int result = twi_tool_check(file, arguments->output.json ? stderr : out, &checked);

	if (result != 0)
		return result;
	twi_tool_print_checked(out, checked.rows, checked.defects, arguments->output.json);
	return checked.defects != 0 ? -ENOENT : 0;
}

static int show_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_show(file, &arguments->output, arguments->id);
}

static int find_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_find(file, &arguments->output, arguments->argument);
}

static int count_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_count(file, &arguments->output);
}

static int list_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_list(file, &arguments->output);
}

static int dead_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_dead(file, &arguments->output);
}

static int dump_run(void *file, const struct twi_tool_arguments *arguments)
{
	struct twi_tool_output output = arguments->output;

	output.json = true;
	return twi_tool_dump(file, &output);
}

static int backup_run(void *file, const struct twi_tool_arguments *arguments)
{
	int result = twi_tool_backup(file, arguments->argument);

	if (result == -EEXIST)
		fprintf(stderr,
			"tickwheel-durable: the copy %s: it, or its log (-wal), is there already\n",
			arguments->argument);
	else if (result != 0 && result != -EUCLEAN)
		fprintf(stderr, "tickwheel-durable: the copy %s: %s\n", arguments->argument,
			strerror(-result));
	return result == 0 || result == -EUCLEAN ? result : -ECANCELED;
}

static int load_run(void *file, const struct twi_tool_arguments *arguments)
{
	(void)file;
	return twi_tool_load(arguments->path, arguments->argument);
}

static int cancel_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_cancel(file, arguments->path, arguments->id);
}

static int revive_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_revive(file, arguments->path, arguments->id);
}

static int pause_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_pause(file, arguments->path, arguments->argument, true);
}

static int resume_run(void *file, const struct twi_tool_arguments *arguments)
{
	return twi_tool_pause(file, arguments->path, arguments->argument, false);
}

static const struct twi_tool_command file_commands[] = {
	{"backup", TWI_TOOL_A_TEXT, backup_run}, {"cancel", TWI_TOOL_AN_ID, cancel_run},
	{"check", TWI_TOOL_NOTHING, check_run},  {"count", TWI_TOOL_NOTHING, count_run},
	{"dead", TWI_TOOL_NOTHING, dead_run},    {"dump", TWI_TOOL_NOTHING, dump_run},
	{"find", TWI_TOOL_A_TEXT, find_run},     {"list", TWI_TOOL_NOTHING, list_run},
	{"load", TWI_TOOL_A_TEXT, load_run},     {"pause", TWI_TOOL_A_TEXT, pause_run},
	{"resume", TWI_TOOL_A_TEXT, resume_run}, {"revive", TWI_TOOL_AN_ID, revive_run},
	{"show", TWI_TOOL_AN_ID, show_run},      {NULL, TWI_TOOL_NOTHING, NULL},
};

static const struct twi_tool_command *commands_of(const struct twi_tool_arguments *arguments)
{
#ifdef TWI_DURABLE_TOOL_POSTGRES
	if (arguments->postgres != NULL)
		return twi_tool_server_commands;
#endif
#ifdef TWI_DURABLE_TOOL_REDIS
	if (arguments->redis != NULL)
		return twi_tool_redis_commands;
#endif
	(void)arguments;
	return file_commands;
}

/* Returns the command, or NULL if there is no such command, or its argument is wrong. */
static const struct twi_tool_command *command_of(struct twi_tool_arguments *arguments)
{
	for (const struct twi_tool_command *command = commands_of(arguments); command->name != NULL;
	     command++) {
		if (strcmp(command->name, arguments->command) != 0)
			continue;
		if ((command->argument != TWI_TOOL_NOTHING) != (arguments->argument != NULL))
			return NULL;
		if (command->argument == TWI_TOOL_AN_ID &&
		    !twi_tool_id_read(arguments->argument, &arguments->id))
			return NULL;
		return command;
	}
	return NULL;
}

static int file_run(const struct twi_tool_command *command,
		    const struct twi_tool_arguments *arguments)
{
	struct twi_tool_file file;
	/* A load makes the file; all other commands need it. */
	bool there = command->run != load_run;
	int result = there ? twi_tool_open(&file, arguments->path) : 0;

	if (result != 0)
		return trouble(arguments, result);
	result = command->run(&file, arguments);
	if (there)
		twi_tool_close(&file);
	return result == 0 || result == -ENOENT || result == -ECANCELED
		       ? result
		       : trouble(arguments, result);
}

static int any_run(const struct twi_tool_command *command,
		   const struct twi_tool_arguments *arguments)
{
#ifdef TWI_DURABLE_TOOL_POSTGRES
	if (arguments->postgres != NULL)
		return twi_tool_server_run(command, arguments);
#endif
#ifdef TWI_DURABLE_TOOL_REDIS
	if (arguments->redis != NULL)
		return twi_tool_redis_command_run(command, arguments);
#endif
	return file_run(command, arguments);
}

static enum exit_code run(const struct twi_tool_command *command,
			  const struct twi_tool_arguments *arguments)
{
	int result = any_run(command, arguments);

	if (result == -ECANCELED)
		return EXIT_TROUBLE;
	if (fflush(stdout) != 0 || ferror(stdout)) {
		perror("tickwheel-durable: the output");
		return EXIT_TROUBLE;
	}
	/* A check has printed its result already. */
	if (result != 0 && command->argument != TWI_TOOL_NOTHING)
		fprintf(stderr, "tickwheel-durable: %s: there is none\n", arguments->argument);
	return result == 0 ? EXIT_GOOD : EXIT_NOT;
}

/* Returns whether the store needs a library that the program was built without. */
static bool built_without(const struct twi_tool_arguments *arguments)
{
	const char *missing = NULL;

#ifndef TWI_DURABLE_TOOL_POSTGRES
	if (arguments->postgres != NULL)
		missing = "PostgreSQL";
#endif
#ifndef TWI_DURABLE_TOOL_REDIS
	if (arguments->redis != NULL)
		missing = "Redis";
#endif
	(void)arguments;
	if (missing != NULL)
		fprintf(stderr, "tickwheel-durable: it was built without %s\n", missing);
	return missing != NULL;
}

int main(int count, char **texts)
{
	struct twi_tool_arguments arguments = {.output = {.out = stdout, .limit = LIMIT}};
	const struct twi_tool_command *command = NULL;

	if (arguments_read(count, texts, &arguments)) {
		if (strcmp(arguments.command, "help") == 0) {
			fputs(usage_text, stdout);
			return EXIT_GOOD;
		}
		command = command_of(&arguments);
	}
	if (built_without(&arguments))
		return EXIT_USAGE;
	if (command == NULL) {
		fputs(usage_text, stderr);
		return EXIT_USAGE;
	}
	return (int)run(command, &arguments);
}
