/* SPDX-License-Identifier: MIT */
/* GET, SET and its variants, DEL, EXISTS and INCR: keys and their values. */
#include "command.h"

#include <inttypes.h>
#include <stdio.h>

void serve_get(const struct call *call)
{
	struct entry *entry = call_find(call, 1);

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
	int64_t amount;
	int64_t unit_ns;
};

/* Parses EX or PX with its number. Returns an error message or NULL. */
static const char *set_time(const struct call *call, size_t arg, struct set_options *options)
{
	bool seconds = span_is(call->args[arg], "EX");

	if ((!seconds && !span_is(call->args[arg], "PX")) || arg + 1 == call->arg_count ||
	    options->timed)
		return "ERR syntax error";
	options->timed = true;
	options->unit_ns = seconds ? NS_PER_S : NS_PER_MS;
	return span_to_int64(call->args[arg + 1], &options->amount) ? NULL : NOT_AN_INTEGER;
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
			error = set_time(call, i++, options);
	}
	if (error == NULL &&
	    ((options->only_absent && options->only_present) || (options->keep && options->timed)))
		error = "ERR syntax error";
	return error;
}

/* Stores the value of argument `value`, and replies. */
static void set(const struct call *call, const struct set_options *options, size_t value)
{
	struct entry *present = call_find(call, 1);
	int64_t deadline_ns = STORE_NEVER;

	if (options->timed &&
	    (options->amount <= 0 ||
	     !deadline_after(call->now_ns, options->amount, options->unit_ns, &deadline_ns))) {
		reply_invalid_expire(call);
		return;
	}
	if (options->keep && present != NULL)
		deadline_ns = entry_deadline_ns(present);
	if (present != NULL ? options->only_absent : options->only_present)
		reply_nil(call->out);
	else if (store_set(&call->server->store, call->args[1], call->args[value], deadline_ns) < 0)
		reply_error(call->out, "OOM out of memory");
	else
		reply_status(call->out, "OK");
}

void serve_set(const struct call *call)
{
	struct set_options options = {0};
	const char *error = parse_set_options(call, &options);

	if (error != NULL)
		reply_error(call->out, error);
	else
		set(call, &options, 2);
}

/* SETEX and PSETEX: key, time, value. */
void serve_setex(const struct call *call)
{
	struct set_options options = {.timed = true, .unit_ns = call->command->unit_ns};

	if (!span_to_int64(call->args[2], &options.amount))
		reply_error(call->out, NOT_AN_INTEGER);
	else
		set(call, &options, 3);
}

void serve_del(const struct call *call)
{
	int64_t removed = 0;

	for (size_t i = 1; i < call->arg_count; i++) {
		struct entry *entry = call_find(call, i);

		if (entry == NULL)
			continue;
		store_remove(entry);
		removed++;
	}
	reply_integer(call->out, removed);
}

/* EXISTS: counts the named keys that exist. A key that is named twice counts twice. */
void serve_exists(const struct call *call)
{
	int64_t count = 0;

	for (size_t i = 1; i < call->arg_count; i++)
		count += call_find(call, i) != NULL;
	reply_integer(call->out, count);
}

/* INCR keeps the deadline of the key. */
void serve_incr(const struct call *call)
{
	struct entry *entry = call_find(call, 1);
	int64_t deadline_ns = entry != NULL ? entry_deadline_ns(entry) : STORE_NEVER;
	int64_t number = 0;
	char text[24];
	struct span value = {text, 0};

	if (entry != NULL && !span_to_int64(entry_value(entry), &number)) {
		reply_error(call->out, NOT_AN_INTEGER);
	} else if (number == INT64_MAX) {
		reply_error(call->out, "ERR increment or decrement would overflow");
	} else {
		value.count = (size_t)snprintf(text, sizeof(text), "%" PRId64, number + 1);
		if (store_set(&call->server->store, call->args[1], value, deadline_ns) < 0)
			reply_error(call->out, "OOM out of memory");
		else
			reply_integer(call->out, number + 1);
	}
}
