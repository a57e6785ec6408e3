/* SPDX-License-Identifier: MIT */
/*
 * SCAN: returns some keys, and the cursor for the next call. The cursor 0 begins a scan, and marks
 * its end. A key that is there from the first call to the last is returned at least once, whatever
 * keys come and go meanwhile (slots.c says why). The server keeps no state between two calls.
 */
#include "command.h"

#include <event2/buffer.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNT_DEFAULT 10
/* How many empty slots one call may pass for each key that it should return. */
#define SLOTS_PER_KEY 10

struct scan {
	const struct call *call;
	struct evbuffer *keys;
	struct span pattern;
	int64_t count;
	size_t seen;
	size_t matched;
};

static void on_key(void *context, struct span key)
{
	struct scan *scan = context;

	scan->seen++;
	if (!glob_matches(scan->pattern, key))
		return;
	scan->matched++;
	reply_bulk(scan->keys, key);
}

/* Parses a cursor: a decimal number of the whole range. */
static bool parse_cursor(struct span span, uint64_t *ret_cursor)
{
	uint64_t cursor = 0;

	for (size_t i = 0; i < span.count; i++) {
		uint64_t digit = (uint64_t)(unsigned char)span.bytes[i] - '0';

		if (digit > 9 || __builtin_mul_overflow(cursor, 10, &cursor) ||
		    __builtin_add_overflow(cursor, digit, &cursor))
			return false;
	}
	*ret_cursor = cursor;
	return span.count > 0;
}

/* Returns an error message or NULL. */
static const char *parse_options(struct scan *scan)
{
	const struct call *call = scan->call;

	for (size_t i = 2; i < call->arg_count; i += 2) {
		if (i + 1 == call->arg_count)
			return "ERR syntax error";
		if (span_is(call->args[i], "MATCH"))
			scan->pattern = call->args[i + 1];
		else if (!span_is(call->args[i], "COUNT"))
			return "ERR syntax error";
		else if (!span_to_int64(call->args[i + 1], &scan->count))
			return NOT_AN_INTEGER;
		else if (scan->count < 1)
			return "ERR syntax error";
	}
	return NULL;
}

static uint64_t collect(struct scan *scan, uint64_t cursor)
{
	struct store *store = &scan->call->server->store;
	uint64_t slots = 0, count = (uint64_t)scan->count;

	do {
		cursor = store_scan(store, cursor, scan->call->now_ns, on_key, scan);
		slots++;
	} while (cursor != 0 && scan->seen < count && slots / SLOTS_PER_KEY < count);
	return cursor;
}

static void reply_scan(struct scan *scan, uint64_t cursor)
{
	struct evbuffer *out = scan->call->out;
	char text[24];
	int bytes = snprintf(text, sizeof(text), "%" PRIu64, cursor);

	reply_array(out, 2);
	reply_bulk(out, (struct span){text, (size_t)bytes});
	reply_array(out, scan->matched);
	evbuffer_add_buffer(out, scan->keys);
}

void serve_scan(const struct call *call)
{
	struct scan scan = {call, NULL, {"*", 1}, COUNT_DEFAULT, 0, 0};
	const char *error = parse_options(&scan);
	uint64_t cursor;

	if (!parse_cursor(call->args[1], &cursor))
		error = "ERR invalid cursor";
	if (error == NULL && (scan.keys = evbuffer_new()) == NULL)
		error = "OOM out of memory";
	if (error != NULL) {
		reply_error(call->out, error);
		return;
	}
	reply_scan(&scan, collect(&scan, cursor));
	evbuffer_free(scan.keys);
}
