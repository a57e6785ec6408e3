/* SPDX-License-Identifier: MIT */
/* Replies of the Redis protocol (RESP2), appended to a libevent buffer. */
#ifndef TTL_SERVER_REPLY_H
#define TTL_SERVER_REPLY_H

#include "resp.h"

struct evbuffer;

void reply_status(struct evbuffer *out, const char *status);
/* `message` begins with its code word: "ERR …". */
void reply_error(struct evbuffer *out, const char *message);
/* Replies with an error whose text is `before`, `word` in quotes, and `after`. The word must have
 * no line end. */
void reply_error_about(struct evbuffer *out, const char *before, const char *word,
		       const char *after);
void reply_integer(struct evbuffer *out, int64_t number);
void reply_bulk(struct evbuffer *out, struct span bytes);
void reply_nil(struct evbuffer *out);
/* Begins an array. The caller must append `count` replies. */
void reply_array(struct evbuffer *out, size_t count);

#endif
