/* SPDX-License-Identifier: MIT */
/* Requests of the Redis protocol (RESP2): arrays of bulk strings, and inline commands. */
#ifndef TTL_SERVER_RESP_H
#define TTL_SERVER_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A request beyond one of these limits is rejected, and its connection is closed. So one client
 * cannot make the server hold more than this.
 */
#define RESP_ARGS_MAX 4096u
#define RESP_BULK_BYTES_MAX (8u << 20)
#define RESP_INLINE_BYTES_MAX (64u << 10)
#define RESP_REQUEST_BYTES_MAX (64u << 20)

/* Bytes that another object owns, without a terminator. */
struct span {
	const char *bytes;
	size_t count;
};

/* A parsed request. Its arguments point into the input. */
struct request {
	size_t arg_count;
	struct span args[RESP_ARGS_MAX];
};

enum resp_result {
	/* There is a request, perhaps without arguments. It takes `*ret_bytes` of the input. */
	RESP_DONE,
	/* The request is incomplete. It cannot be complete before the input has `*ret_bytes`
	 * bytes. */
	RESP_MORE,
	/* The request is beyond a limit. */
	RESP_TOO_LARGE,
	/* The input does not follow the protocol. */
	RESP_BAD,
};

/* Parses the first request of `input`, which must not be empty. */
enum resp_result resp_parse(struct span input, struct request *ret_request, size_t *ret_bytes);

/* Returns whether the span is the word, without regard to case. */
bool span_is(struct span span, const char *word);
/* glob.c: returns whether the text matches a pattern of SCAN. */
bool glob_matches(struct span pattern, struct span text);
/* Converts the whole span from decimal. Returns false if it is no number or does not fit. */
bool span_to_int64(struct span span, int64_t *ret_number);

#endif
