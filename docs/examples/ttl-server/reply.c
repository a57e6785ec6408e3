/* SPDX-License-Identifier: MIT */
/* Replies of the Redis protocol; see reply.h. */
#include "reply.h"

#include <event2/buffer.h>
#include <inttypes.h>

void reply_status(struct evbuffer *out, const char *status)
{
	evbuffer_add_printf(out, "+%s\r\n", status);
}

void reply_error(struct evbuffer *out, const char *message)
{
	evbuffer_add_printf(out, "-%s\r\n", message);
}

void reply_error_about(struct evbuffer *out, const char *before, const char *word,
		       const char *after)
{
	evbuffer_add_printf(out, "-%s'%s'%s\r\n", before, word, after);
}

void reply_integer(struct evbuffer *out, int64_t number)
{
	evbuffer_add_printf(out, ":%" PRId64 "\r\n", number);
}

void reply_bulk(struct evbuffer *out, struct span bytes)
{
	evbuffer_add_printf(out, "$%zu\r\n", bytes.count);
	evbuffer_add(out, bytes.bytes, bytes.count);
	evbuffer_add(out, "\r\n", 2);
}

void reply_nil(struct evbuffer *out)
{
	evbuffer_add(out, "$-1\r\n", 5);
}

void reply_array(struct evbuffer *out, size_t count)
{
	evbuffer_add_printf(out, "*%zu\r\n", count);
}
