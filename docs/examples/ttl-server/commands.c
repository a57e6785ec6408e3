/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each replies exactly once; times become deadlines on the engine's clock here, and
 * "now" is read once per command.
 */
#include "reply.h"
#include "server.h"

#include <event2/buffer.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

struct call {
	struct server *server;
	struct evbuffer *out;
	const struct span *args;
	size_t arg_count;
	int64_t now_ns;
	/* Of the times in the arguments and the reply. */
	int64_t unit_ns;
};

struct command {
	const char *name;
	void (*serve)(const struct call *call);
	/* The name included. */
	size_t args_min;
	size_t args_max;
	int64_t unit_ns;
};

static struct entry *find(const struct call *call, size_t arg)
{
	return store_find(&call->server->store, call->args[arg], call->now_ns);
}

/* `amount` units from `from_ns`; false when that is out of range. */
static bool deadline_after(int64_t from_ns, int64_t amount, int64_t unit_ns, int64_t *ret_ns)
{
	int64_t delay_ns;

	return !__builtin_mul_overflow(amount, unit_ns, &delay_ns) &&
	       !__builtin_add_overflow(from_ns, delay_ns, ret_ns) && *ret_ns < STORE_NEVER;
}

static void serve_get(const struct call *call)
{
	struct entry *entry = find(call, 1);

	if (entry == NULL)
		reply_nil(call->out);
	else
		reply_bulk(call->out, entry_value(entry));
}

struct set_options {
	bool only_absent;
	bool only_present;
	bool keep;
	bool timed;
	int64_t deadline_ns;
};

/* EX or PX with its number; returns an error message or NULL. */
static const char *set_deadline(const struct call *call, size_t arg, struct set_options *options)
{
	bool seconds = span_is(call->args[arg], "EX");
	int64_t amount;

	if ((!seconds && !span_is(call->args[arg], "PX")) || arg + 1 == call->arg_count ||
	    options->timed)
		return "ERR syntax error";
	if (!span_to_int64(call->args[arg + 1], &amount))
		return "ERR value is not an integer or out of range";
	options->timed = true;
	if (amount <= 0 || !deadline_after(call->now_ns, amount, seconds ? NS_PER_S : NS_PER_MS,
					   &options->deadline_ns))
		return "ERR invalid expire time in 'set' command";
	return NULL;
}

static const char *parse_set_options(const struct call *call, struct set_options *options)
{
	const char *error = NULL;

	for (size_t i = 3; error == NULL && i < call->arg_count; i++) {
		if (span_is(call->args[i], "NX"))
			options->only_absent = true;
		else if (span_is(call->args[i], "XX"))
			options->only_present = true;
		else if (span_is(call->args[i], "KEEPTTL"))
			options->keep = true;
		else
			error = set_deadline(call, i++, options);
	}
	if (error == NULL &&
	    ((options->only_absent && options->only_present) || (options->keep && options->timed)))
		error = "ERR syntax error";
	return error;
}

static void serve_set(const struct call *call)
{
	struct set_options options = {.deadline_ns = STORE_NEVER};
	const char *error = parse_set_options(call, &options);
	struct entry *present = find(call, 1);

	if (error != NULL) {
		reply_error(call->out, error);
		return;
	}
	if (present != NULL ? options.only_absent : options.only_present) {
		reply_nil(call->out);
		return;
	}
	if (options.keep && present != NULL)
		options.deadline_ns = entry_deadline_ns(present);
	if (store_set(&call->server->store, call->args[1], call->args[2], options.deadline_ns) < 0)
		reply_error(call->out, "OOM out of memory");
	else
		reply_status(call->out, "OK");
}

static void serve_del(const struct call *call)
{
	int64_t removed = 0;

	for (size_t i = 1; i < call->arg_count; i++) {
		struct entry *entry = find(call, i);

		if (entry == NULL)
			continue;
		store_remove(entry);
		removed++;
	}
	reply_integer(call->out, removed);
}

static void serve_expire(const struct call *call)
{
	struct entry *entry = find(call, 1);
	int64_t amount;
	int64_t deadline_ns;

	if (!span_to_int64(call->args[2], &amount)) {
		reply_error(call->out, "ERR value is not an integer or out of range");
	} else if (!deadline_after(call->now_ns, amount, call->unit_ns, &deadline_ns)) {
		reply_error(call->out, "ERR invalid expire time");
	} else if (entry == NULL) {
		reply_integer(call->out, 0);
	} else if (amount <= 0) {
		store_remove(entry);
		reply_integer(call->out, 1);
	} else if (store_expire(entry, deadline_ns) < 0) {
		reply_error(call->out, "OOM out of memory");
	} else {
		reply_integer(call->out, 1);
	}
}

/* TTL to the nearest second; PTTL rounds up, so that a key that lives never has 0 left. */
static void serve_ttl(const struct call *call)
{
	struct entry *entry = find(call, 1);
	int64_t round_ns = call->unit_ns == NS_PER_S ? NS_PER_S / 2 : NS_PER_MS - 1;

	if (entry == NULL)
		reply_integer(call->out, -2);
	else if (entry_deadline_ns(entry) == STORE_NEVER)
		reply_integer(call->out, -1);
	else
		reply_integer(call->out,
			      (entry_deadline_ns(entry) - call->now_ns + round_ns) / call->unit_ns);
}

static void serve_persist(const struct call *call)
{
	struct entry *entry = find(call, 1);
	bool expiring = entry != NULL && entry_deadline_ns(entry) != STORE_NEVER;

	if (expiring)
		store_expire(entry, STORE_NEVER);
	reply_integer(call->out, expiring);
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

/* What redis-cli asks when it connects. */
static void serve_command(const struct call *call)
{
	reply_array(call->out, 0);
}

/* CONFIG GET, which redis-benchmark asks: every setting is empty. */
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
	reply_status(call->out, "OK");
}

static void serve_hello(const struct call *call)
{
	reply_error(call->out, "NOPROTO unsupported protocol version");
}

static const struct command commands[] = {
	{"GET", serve_get, 2, 2, 0},
	{"SET", serve_set, 3, 8, 0},
	{"DEL", serve_del, 2, RESP_ARGS_MAX, 0},
	{"TTL", serve_ttl, 2, 2, NS_PER_S},
	{"PTTL", serve_ttl, 2, 2, NS_PER_MS},
	{"EXPIRE", serve_expire, 3, 3, NS_PER_S},
	{"PEXPIRE", serve_expire, 3, 3, NS_PER_MS},
	{"PERSIST", serve_persist, 2, 2, 0},
	{"PING", serve_ping, 1, 2, 0},
	{"ECHO", serve_echo, 2, 2, 0},
	{"INFO", serve_info, 1, 2, 0},
	{"DBSIZE", serve_dbsize, 1, 1, 0},
	{"FLUSHALL", serve_flushall, 1, 2, 0},
	{"QUIT", serve_quit, 1, 1, 0},
	{"SELECT", serve_ok, 2, 2, 0},
	{"CLIENT", serve_ok, 2, RESP_ARGS_MAX, 0},
	{"CONFIG", serve_config, 3, 3, 0},
	{"COMMAND", serve_command, 1, RESP_ARGS_MAX, 0},
	{"HELLO", serve_hello, 1, RESP_ARGS_MAX, 0},
};

static const struct command *find_command(struct span name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
		if (span_is(name, commands[i].name))
			return &commands[i];
	}
	return NULL;
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
		reply_error(out, "ERR unknown command");
	else if (request->arg_count < command->args_min || request->arg_count > command->args_max)
		reply_error(out, "ERR wrong number of arguments");
	else
		command->serve(&(struct call){server, out, request->args, request->arg_count,
					      alarms_now_ns(server->alarms), command->unit_ns});
	return command == NULL || command->serve != serve_quit;
}
