/* SPDX-License-Identifier: MIT */
/* Converts rows from and to the server's format (lua/common.lua). */
#include "durable/redis/store.h"

enum {
	DUE = 0,
	PLACE = 8,
	KIND = 12,
	VERSION = 16,
	KEY_BYTES = 20,
	KEY = 21,
	SESSION = 16,
	ATTEMPT = 32,
	MARKS = 40,
	RUN_BYTES = 41,
	OPEN = 2,
	LETTER_ATTEMPT = 8,
	LETTER_TIMER = 16,
};

#define SIGN_4 (UINT32_C(1) << 31)

static uint64_t place_of(const char *at)
{
	return (uint64_t)(int64_t)(int32_t)(twi_redis_get4(at) ^ SIGN_4);
}

static uint32_t kind_of(const struct twi_redis *store, uint32_t number)
{
	return number < store->number_count ? store->from_server[number] : UINT32_MAX;
}

static bool timer_read(const struct twi_redis *store, const char *serial, const char *at,
		       size_t bytes, struct tw_durable_row *ret)
{
	size_t key_bytes = bytes < KEY ? 0 : (unsigned char)at[KEY_BYTES];

	if (bytes < KEY + key_bytes)
		return false;
	*ret = (struct tw_durable_row){
		.id = {place_of(at + PLACE), twi_redis_get8(serial)},
		.due_ns = twi_redis_get_signed(at + DUE),
		.kind = kind_of(store, twi_redis_get4(at + KIND)),
		.version = twi_redis_get4(at + VERSION),
		.key_bytes = (uint32_t)key_bytes,
		.key = at + KEY,
		.payload_bytes = (uint32_t)(bytes - KEY - key_bytes),
		.payload = at + KEY + key_bytes,
	};
	return true;
}

bool twi_redis_row(const struct twi_redis *store, const char *serial, const redisReply *timer,
		   const redisReply *run, struct tw_durable_row *ret)
{
	if (timer->type != REDIS_REPLY_STRING ||
	    !timer_read(store, serial, timer->str, timer->len, ret))
		return false;
	if (run == NULL || run->type == REDIS_REPLY_NIL)
		return true;
	if (run->type != REDIS_REPLY_STRING || run->len != RUN_BYTES)
		return false;
	ret->due_ns = twi_redis_get_signed(run->str + DUE);
	ret->session = twi_redis_get8(run->str + SESSION);
	ret->attempt = twi_redis_get8(run->str + ATTEMPT);
	ret->started = (run->str[MARKS] & OPEN) != 0;
	return true;
}

bool twi_redis_row_dead(const struct twi_redis *store, const char *serial, const redisReply *letter,
			struct tw_durable_row *ret)
{
	if (letter->type != REDIS_REPLY_STRING || letter->len < LETTER_TIMER ||
	    !timer_read(store, serial, letter->str + LETTER_TIMER, letter->len - LETTER_TIMER, ret))
		return false;
	ret->attempt = twi_redis_get8(letter->str + LETTER_ATTEMPT);
	ret->dead = 1;
	return true;
}

void twi_redis_row_add(const struct twi_redis *store, struct twi_arguments *arguments,
		       const struct tw_durable_row *row)
{
	twi_argument_signed(arguments, row->due_ns);
	twi_argument_4(arguments, (uint32_t)row->id.place ^ SIGN_4);
	twi_argument_4(arguments, store->to_server[row->kind]);
	twi_argument_4(arguments, row->version);
	twi_argument_byte(arguments, row->key_bytes);
	twi_argument_bytes(arguments, row->key, row->key_bytes);
	twi_argument_bytes(arguments, row->payload, row->payload_bytes);
}

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

int twi_redis_order(const struct tw_durable_row *a, const struct tw_durable_row *b)
{
	int by_due = compare(a->due_ns, b->due_ns);
	int by_place = compare((int64_t)a->id.place, (int64_t)b->id.place);

	if (by_due != 0)
		return by_due;
	return by_place != 0 ? by_place : compare((int64_t)a->id.serial, (int64_t)b->id.serial);
}
