/* SPDX-License-Identifier: MIT */
#include "durable/redis/arguments.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGN (UINT64_C(1) << 63)

void twi_arguments_begin(struct twi_arguments *arguments)
{
	arguments->count = arguments->bytes = 0;
	arguments->failed = false;
}

void twi_arguments_free(struct twi_arguments *arguments)
{
	free(arguments->ends);
	free(arguments->at);
}

static bool grow(void **at, size_t *room, size_t needed, size_t each)
{
	size_t more = *room == 0 ? 256 : *room;
	void *grown;

	while (more < needed)
		more *= 2;
	if (more == *room)
		return true;
	grown = realloc(*at, more * each);
	if (grown == NULL)
		return false;
	*at = grown;
	*room = more;
	return true;
}

void twi_argument_bytes(struct twi_arguments *arguments, const void *bytes, size_t count)
{
	void *at = arguments->at;

	if (arguments->failed || count == 0)
		return;
	if (!grow(&at, &arguments->bytes_room, arguments->bytes + count, 1)) {
		arguments->failed = true;
		return;
	}
	arguments->at = at;
	memcpy(arguments->at + arguments->bytes, bytes, count);
	arguments->bytes += count;
}

void twi_argument_byte(struct twi_arguments *arguments, unsigned byte)
{
	const unsigned char one = (unsigned char)byte;

	twi_argument_bytes(arguments, &one, 1);
}

void twi_argument_4(struct twi_arguments *arguments, uint32_t number)
{
	unsigned char bytes[4];

	for (int i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(number >> (24 - 8 * i));
	twi_argument_bytes(arguments, bytes, sizeof bytes);
}

void twi_argument_8(struct twi_arguments *arguments, uint64_t number)
{
	twi_argument_4(arguments, (uint32_t)(number >> 32));
	twi_argument_4(arguments, (uint32_t)number);
}

void twi_argument_signed(struct twi_arguments *arguments, int64_t number)
{
	twi_argument_8(arguments, (uint64_t)number ^ SIGN);
}

void twi_argument_end(struct twi_arguments *arguments)
{
	void *ends = arguments->ends;

	if (arguments->failed ||
	    !grow(&ends, &arguments->room, arguments->count + 1, sizeof *arguments->ends)) {
		arguments->failed = true;
		return;
	}
	arguments->ends = ends;
	arguments->ends[arguments->count++] = arguments->bytes;
}

void twi_arguments_text(struct twi_arguments *arguments, const char *text)
{
	twi_argument_bytes(arguments, text, strlen(text));
	twi_argument_end(arguments);
}

void twi_arguments_number(struct twi_arguments *arguments, int64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRId64, number);
	twi_arguments_text(arguments, text);
}

void twi_arguments_8(struct twi_arguments *arguments, uint64_t number)
{
	twi_argument_8(arguments, number);
	twi_argument_end(arguments);
}

const char *twi_arguments_get(const struct twi_arguments *arguments, size_t at, size_t *ret_bytes)
{
	size_t begin = at == 0 ? 0 : arguments->ends[at - 1];

	*ret_bytes = arguments->ends[at] - begin;
	return arguments->at == NULL ? "" : arguments->at + begin;
}

uint32_t twi_redis_get4(const char *at)
{
	const unsigned char *bytes = (const unsigned char *)at;

	return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	       bytes[3];
}

uint64_t twi_redis_get8(const char *at)
{
	return (uint64_t)twi_redis_get4(at) << 32 | twi_redis_get4(at + 4);
}

int64_t twi_redis_get_signed(const char *at)
{
	return (int64_t)(twi_redis_get8(at) ^ SIGN);
}
