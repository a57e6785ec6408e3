/* SPDX-License-Identifier: MIT */
/* Requests of the Redis protocol (RESP2): arrays of bulk strings, and inline commands. */
#ifndef TTL_SERVER_RESP_H
#define TTL_SERVER_RESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * More than these is rejected, and ends the connection: a bound on what one client can make the
 * server hold.
 */
#define RESP_ARGS_MAX 4096u
#define RESP_BULK_BYTES_MAX (8u << 20)
#define RESP_INLINE_BYTES_MAX (64u << 10)
#define RESP_REQUEST_BYTES_MAX (64u << 20)

/* Bytes of somebody else, without a terminator. */
struct span {
	const char *bytes;
	size_t count;
};

/* Its arguments point into the input it was parsed from. */
struct request {
	size_t arg_count;
	struct span args[RESP_ARGS_MAX];
};

enum resp_result {
	/* A request, perhaps of no argument; `*ret_bytes` of the input are used up. */
	RESP_DONE,
	/* The input ends too soon; nothing can be said before it has `*ret_bytes`. */
	RESP_MORE,
	/* Beyond a limit. */
	RESP_TOO_LARGE,
	/* Not the protocol. */
	RESP_BAD,
};

/* Parses the first request of `input`, which must not be empty. */
enum resp_result resp_parse(struct span input, struct request *ret_request, size_t *ret_bytes);

/* Compares with a word, without regard to case. */
bool span_is(struct span span, const char *word);
/* glob.c: matches a pattern of SCAN. */
bool glob_matches(struct span pattern, struct span text);
/* The whole span as a decimal number; false when it is none or does not fit. */
bool span_to_int64(struct span span, int64_t *ret_number);

#endif
