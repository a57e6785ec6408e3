/* SPDX-License-Identifier: MIT */
/*
 * The keeper Redis: a sorted set of deadlines and a hash of payloads. Scripts change both, as in
 * queues built on Redis. When a worker takes a timer, the timer moves to a second set. From there
 * another worker could take the timer if the first worker died.
 */
#include "durable/peer/peer.h"
#include "durable/peer/wire.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char put_script[] =
	"redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1]) redis.call('HSET', KEYS[2], ARGV[1], "
	"ARGV[3]) "
	"return 1";
static const char cancel_script[] =
	"redis.call('HDEL', KEYS[2], ARGV[1]) return redis.call('ZREM', KEYS[1], ARGV[1])";
static const char take_script[] =
	"local ids = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', ARGV[1], 'LIMIT', 0, ARGV[2]) "
	"if #ids == 0 then return ids end "
	"redis.call('ZREM', KEYS[1], unpack(ids)) "
	"for _, id in ipairs(ids) do redis.call('ZADD', KEYS[3], ARGV[1] + 60, id) end "
	"local payloads = redis.call('HMGET', KEYS[2], unpack(ids)) "
	"for i, payload in ipairs(payloads) do ids[#ids + 1] = payload end "
	"return ids";
static const char end_script[] =
	"redis.call('ZREM', KEYS[3], unpack(ARGV)) return redis.call('HDEL', KEYS[2], "
	"unpack(ARGV))";

static const char *const scripts[] = {put_script, cancel_script, take_script, end_script};

enum { PUT, CANCEL, TAKE, END, SCRIPTS };

static char names[SCRIPTS][41];
static uint64_t next_id, held[KEEPER_BATCH];

static void argument(const char *text)
{
	wire_put("$%zu\r\n%s\r\n", strlen(text), text);
}

static void argument_number(uint64_t number)
{
	char text[24];

	snprintf(text, sizeof text, "%" PRIu64, number);
	argument(text);
}

static void script(int which, size_t count)
{
	wire_put("*%zu\r\n", 6 + count);
	argument("EVALSHA");
	argument(names[which]);
	argument("3");
	argument("due");
	argument("payload");
	argument("running");
}

static long long answer(char type)
{
	const char *line = wire_line();

	if (line[0] != type)
		keeper_fail("redis", line);
	return strtoll(line + 1, NULL, 10);
}

static void open_redis(const char *address)
{
	wire_open(address);
	for (int i = 0; i < SCRIPTS; i++) {
		wire_put("*3\r\n");
		argument("SCRIPT");
		argument("LOAD");
		argument(scripts[i]);
		wire_send();
		if (answer('$') != 40)
			keeper_fail("redis", "no name of a script");
		snprintf(names[i], sizeof names[i], "%s", wire_line());
	}
}

static void schedule(size_t count, int64_t due_s)
{
	for (size_t i = 0; i < count; i++) {
		script(PUT, 3);
		argument_number(++next_id);
		argument_number((uint64_t)due_s);
		argument(keeper_payload);
	}
	wire_send();
	for (size_t i = 0; i < count; i++)
		(void)answer(':');
}

static void cancel(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		script(CANCEL, 1);
		argument_number(next_id--);
	}
	wire_send();
	for (size_t i = 0; i < count; i++)
		if (answer(':') != 1)
			keeper_fail("redis", "a timer was not there");
}

static size_t take(size_t most)
{
	size_t count;

	script(TAKE, 2);
	argument_number((uint64_t)time(NULL));
	argument_number(most);
	wire_send();
	count = (size_t)answer('*') / 2;
	for (size_t i = 0; i < count; i++) {
		(void)answer('$');
		held[i] = strtoull(wire_line(), NULL, 10);
	}
	for (size_t i = 0; i < count; i++)
		wire_skip((size_t)answer('$'));
	if (count == 0)
		return 0;
	script(END, count);
	for (size_t i = 0; i < count; i++)
		argument_number(held[i]);
	wire_send();
	if ((size_t)answer(':') != count)
		keeper_fail("redis", "a timer was not there");
	return count;
}

const struct keeper keeper_redis = {"redis", open_redis, schedule, cancel, take, wire_close};
