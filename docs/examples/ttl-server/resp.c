/* SPDX-License-Identifier: MIT */
/*
 * Parses requests of the Redis protocol; see resp.h. The parser keeps no state: it parses an
 * incomplete request again when the missing bytes have come.
 */
#include "resp.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct cursor {
	const char *at;
	const char *end;
};

static size_t left(const struct cursor *cursor)
{
	return (size_t)(cursor->end - cursor->at);
}

static enum resp_result take_line_end(struct cursor *cursor)
{
	if (left(cursor) < 2)
		return RESP_MORE;
	if (cursor->at[0] != '\r' || cursor->at[1] != '\n')
		return RESP_BAD;
	cursor->at += 2;
	return RESP_DONE;
}

/* Parses "<mark><number>\r\n". */
static enum resp_result take_number(struct cursor *cursor, char mark, size_t max,
				    size_t *ret_number)
{
	size_t number = 0;
	const char *digits = cursor->at + 1;

	if (left(cursor) < 2)
		return RESP_MORE;
	if (*cursor->at != mark || !isdigit((unsigned char)*digits))
		return RESP_BAD;
	cursor->at++;
	for (; left(cursor) > 0 && isdigit((unsigned char)*cursor->at); cursor->at++) {
		number = number * 10 + (size_t)(*cursor->at - '0');
		if (number > max)
			return RESP_TOO_LARGE;
	}
	*ret_number = number;
	return take_line_end(cursor);
}

/* Parses "$<bytes>\r\n<the bytes>\r\n". After RESP_MORE, at least `*ret_missing` bytes are
 * missing. */
static enum resp_result take_bulk(struct cursor *cursor, struct span *ret_bulk, size_t *ret_missing)
{
	size_t bytes;
	enum resp_result result = take_number(cursor, '$', RESP_BULK_BYTES_MAX, &bytes);

	*ret_missing = 1;
	if (result != RESP_DONE)
		return result;
	if (left(cursor) < bytes + 2) {
		*ret_missing = bytes + 2 - left(cursor);
		return RESP_MORE;
	}
	*ret_bulk = (struct span){cursor->at, bytes};
	cursor->at += bytes;
	return take_line_end(cursor);
}

static enum resp_result parse_array(struct span input, struct request *ret_request,
				    size_t *ret_bytes)
{
	struct cursor cursor = {input.bytes, input.bytes + input.count};
	size_t missing = 1;
	size_t count = 0;
	enum resp_result result = take_number(&cursor, '*', RESP_ARGS_MAX, &count);

	for (size_t i = 0; result == RESP_DONE && i < count; i++)
		result = take_bulk(&cursor, &ret_request->args[i], &missing);
	ret_request->arg_count = count;
	*ret_bytes = result == RESP_DONE ? input.count - left(&cursor) : input.count + missing;
	return result;
}

/* Returns false if there are more words than a request may have. */
static bool split_words(struct cursor line, struct request *ret_request)
{
	size_t count = 0;

	for (;;) {
		const char *word;

		while (left(&line) > 0 && isspace((unsigned char)*line.at))
			line.at++;
		if (left(&line) == 0)
			break;
		if (count == RESP_ARGS_MAX)
			return false;
		word = line.at;
		while (left(&line) > 0 && !isspace((unsigned char)*line.at))
			line.at++;
		ret_request->args[count++] = (struct span){word, (size_t)(line.at - word)};
	}
	ret_request->arg_count = count;
	return true;
}

/* An inline request: words separated by blanks, without quoting. */
static enum resp_result parse_inline(struct span input, struct request *ret_request,
				     size_t *ret_bytes)
{
	const char *end = memchr(input.bytes, '\n', input.count);

	*ret_bytes = input.count + 1;
	if (end == NULL)
		return input.count < RESP_INLINE_BYTES_MAX ? RESP_MORE : RESP_TOO_LARGE;
	if (!split_words((struct cursor){input.bytes, end}, ret_request))
		return RESP_TOO_LARGE;
	*ret_bytes = (size_t)(end - input.bytes) + 1;
	return RESP_DONE;
}

enum resp_result resp_parse(struct span input, struct request *ret_request, size_t *ret_bytes)
{
	enum resp_result result = input.bytes[0] == '*'
					  ? parse_array(input, ret_request, ret_bytes)
					  : parse_inline(input, ret_request, ret_bytes);

	if (result == RESP_MORE && *ret_bytes > RESP_REQUEST_BYTES_MAX)
		return RESP_TOO_LARGE;
	return result;
}

bool span_is(struct span span, const char *word)
{
	return strlen(word) == span.count && strncasecmp(span.bytes, word, span.count) == 0;
}

bool span_to_int64(struct span span, int64_t *ret_number)
{
	char text[24];
	char *end;

	if (span.count == 0 || span.count >= sizeof(text) || isspace((unsigned char)*span.bytes))
		return false;
	memcpy(text, span.bytes, span.count);
	text[span.count] = '\0';
	errno = 0;
	*ret_number = strtoll(text, &end, 10);
	return errno == 0 && end == text + span.count;
}
