/* SPDX-License-Identifier: MIT */
/*
 * The table of commands, and the functions of the short ones. The functions convert times to
 * deadlines of the engine's clock. The clock is read once for each command.
 */
#include "command.h"

#include <ctype.h>
#include <event2/buffer.h>

/* The most bytes of a command's name that an error shows. */
#define NAME_SHOWN_BYTES 64

struct entry *call_find(const struct call *call, size_t arg)
{
	return store_find(&call->server->store, call->args[arg], call->now_ns);
}

static void serve_ping(const struct call *call)
{
	if (call->arg_count > 1)
		reply_bulk(call->out, call->args[1]);
	else
		reply_status(call->out, "PONG");
}

static void serve_echo(const struct call *call)
{
	reply_bulk(call->out, call->args[1]);
}

static void serve_info(const struct call *call)
{
	info_reply(call->server, call->out);
}

static void serve_dbsize(const struct call *call)
{
	reply_integer(call->out, (int64_t)store_count(&call->server->store));
}

static void serve_flushall(const struct call *call)
{
	store_clear(&call->server->store);
	reply_status(call->out, "OK");
}

/* COMMAND, which redis-cli sends when it connects. */
static void serve_command(const struct call *call)
{
	reply_array(call->out, 0);
}

/* CONFIG GET, which redis-benchmark sends. Every setting is empty. */
static void serve_config(const struct call *call)
{
	reply_array(call->out, 2);
	reply_bulk(call->out, call->args[2]);
	reply_bulk(call->out, (struct span){"", 0});
}

static void serve_ok(const struct call *call)
{
	reply_status(call->out, "OK");
}

static void serve_quit(const struct call *call)
{
	serve_ok(call);
}

static void serve_hello(const struct call *call)
{
	reply_error(call->out, "NOPROTO unsupported protocol version");
}

static const struct command commands[] = {
	{"get", serve_get, 2, 2, 0},
	{"set", serve_set, 3, 8, 0},
	{"setex", serve_setex, 4, 4, NS_PER_S},
	{"psetex", serve_setex, 4, 4, NS_PER_MS},
	{"del", serve_del, 2, RESP_ARGS_MAX, 0},
	{"exists", serve_exists, 2, RESP_ARGS_MAX, 0},
	{"incr", serve_incr, 2, 2, 0},
	{"scan", serve_scan, 2, 6, 0},
	{"ttl", serve_ttl, 2, 2, NS_PER_S},
	{"pttl", serve_ttl, 2, 2, NS_PER_MS},
	{"expire", serve_expire, 3, 3, NS_PER_S},
	{"pexpire", serve_expire, 3, 3, NS_PER_MS},
	{"expireat", serve_expireat, 3, 3, NS_PER_S},
	{"pexpireat", serve_expireat, 3, 3, NS_PER_MS},
	{"persist", serve_persist, 2, 2, 0},
	{"ping", serve_ping, 1, 2, 0},
	{"echo", serve_echo, 2, 2, 0},
	{"info", serve_info, 1, 2, 0},
	{"dbsize", serve_dbsize, 1, 1, 0},
	{"flushall", serve_flushall, 1, 2, 0},
	{"quit", serve_quit, 1, 1, 0},
	{"select", serve_ok, 2, 2, 0},
	{"client", serve_ok, 2, RESP_ARGS_MAX, 0},
	{"config", serve_config, 3, 3, 0},
	{"command", serve_command, 1, RESP_ARGS_MAX, 0},
	{"hello", serve_hello, 1, RESP_ARGS_MAX, 0},
};

static const struct command *find_command(struct span name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (span_is(name, commands[i].name))
			return &commands[i];
	}
	return NULL;
}

/* The error must be one line of text, whatever bytes the client sent. */
static void reply_unknown(struct evbuffer *out, struct span name)
{
	char shown[NAME_SHOWN_BYTES + 1] = "";

	for (size_t i = 0; i < name.count && i < NAME_SHOWN_BYTES; i++)
		shown[i] = isprint((unsigned char)name.bytes[i]) ? name.bytes[i] : '?';
	reply_error_about(out, "ERR unknown command ", shown, "");
}

bool command_serve(struct server *server, struct evbuffer *out)
{
	const struct request *request = &server->request;
	const struct command *command;

	if (request->arg_count == 0)
		return true;
	server->command_count++;
	command = find_command(request->args[0]);
	if (command == NULL)
		reply_unknown(out, request->args[0]);
	else if (request->arg_count < command->args_min || request->arg_count > command->args_max)
		reply_error_about(out, "ERR wrong number of arguments for ", command->name,
				  " command");
	else
		command->serve(&(struct call){server, out, command, request->args,
					      request->arg_count, alarms_now_ns(server->alarms)});
	return command == NULL || command->serve != serve_quit;
}
