/* SPDX-License-Identifier: MIT */
#include "bench_redis.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

struct bench_redis bench_redis;

/* Lua code that returns the server's time, or the time at which a test has stopped it. */
static const char clock_text[] = "local function now_us()\n"
				 "	local stands = redis.call('GET', KEYS[1] .. ':clock')\n"
				 "	if stands then return tonumber(stands) end\n"
				 "	local time = redis.call('TIME')\n"
				 "	return time[1] * 1000000 + time[2]\n"
				 "end\n";

const char *bench_key(const char *name)
{
	static char texts[4][64];
	static unsigned next;
	char *text = texts[next++ % 4];

	snprintf(text, sizeof texts[0], "{%s:0}:%s", bench_redis.prefix, name);
	return text;
}

static redisReply *command(const char *format, va_list arguments)
{
	redisReply *reply = redisvCommand(bench_redis.connection, format, arguments);

	cr_assert(reply != NULL && reply->type != REDIS_REPLY_ERROR, "%s: %s", format,
		  reply == NULL ? "no reply" : reply->str);
	return reply;
}

int64_t bench_command(const char *format, ...)
{
	va_list arguments;
	redisReply *reply;
	int64_t number;

	va_start(arguments, format);
	reply = command(format, arguments);
	va_end(arguments);
	number = reply->type == REDIS_REPLY_ARRAY    ? (int64_t)reply->elements
		 : reply->type == REDIS_REPLY_STRING ? strtoll(reply->str, NULL, 10)
						     : reply->integer;
	freeReplyObject(reply);
	return number;
}

static void make(void)
{
	const char *address = getenv("TICKWHEEL_REDIS");

	memset(&bench_redis, 0, sizeof bench_redis);
	cr_assert(address != NULL, "no server: run this by with_server.py");
	snprintf(bench_redis.prefix, sizeof bench_redis.prefix, "t%d", (int)getpid());
	bench_redis.connection = redisConnectUnix(address);
	cr_assert(bench_redis.connection != NULL && bench_redis.connection->err == 0);
}

static void end(void)
{
	if (bench_redis.connection == NULL)
		return;
	(void)bench_command(
		"EVAL %s 0 %s",
		"for _, key in ipairs(redis.call('KEYS', '{' .. ARGV[1] .. ':0}:*')) do "
		"redis.call('DEL', key) end",
		bench_redis.prefix);
	redisFree(bench_redis.connection);
}

static void on_notice(void *context, const char *text)
{
	(void)context;
	snprintf(bench_redis.notice, sizeof bench_redis.notice, "%s", text);
}

static void store_make(int64_t poll_ns, struct tw_durable_store *ret_store)
{
	struct tw_durable_redis_options options;

	check_int(tw_durable_redis_options_init(&options, sizeof options), 0);
	options.address = getenv("TICKWHEEL_REDIS");
	options.prefix = bench_redis.prefix;
	options.name = "bench";
	options.notice = on_notice;
	if (poll_ns != 0)
		options.poll_ns = (uint64_t)poll_ns;
	check_int(tw_durable_store_redis(&options, ret_store), 0);
	((struct twi_redis *)ret_store->store)->link.clock = clock_text;
}

static int64_t server_us(void)
{
	redisReply *reply = redisCommand(bench_redis.connection, "TIME");
	int64_t us = strtoll(reply->element[0]->str, NULL, 10) * 1000000 +
		     strtoll(reply->element[1]->str, NULL, 10);

	freeReplyObject(reply);
	return us;
}

static int64_t now(bool stand)
{
	const char *clock = bench_key("meta:clock");

	if (!stand)
		return server_us() * 1000;
	if (bench_command("EXISTS %s", clock) == 0)
		(void)bench_command("SET %s %lld", clock, (long long)server_us());
	return bench_command("GET %s", clock) * 1000;
}

static void pass(int64_t ns)
{
	(void)bench_command("INCRBY %s %lld", bench_key("meta:clock"), (long long)(ns / 1000));
}

/* Counts the runs for which the Lua condition holds. */
static int64_t runs_count(const char *condition)
{
	char text[256];

	snprintf(
		text, sizeof text,
		"local count = 0; for _, run in ipairs(redis.call('HVALS', KEYS[1])) do if %s then "
		"count = count + 1 end end; return count",
		condition);
	return bench_command("EVAL %s 1 %s", text, bench_key("run"));
}

static int64_t count(enum bench_what what)
{
	switch (what) {
	case BENCH_TIMERS:
		/* Each timer must also be in one of the two sorted sets. */
		check_int(bench_command("ZCARD %s", bench_key("free")) +
				  bench_command("ZCARD %s", bench_key("held")),
			  bench_command("HLEN %s", bench_key("timer")));
		return bench_command("HLEN %s", bench_key("timer"));
	case BENCH_CLAIMED:
		return bench_command("ZCARD %s", bench_key("held"));
	case BENCH_STARTED:
		return runs_count("run:byte(41) % 2 == 1");
	case BENCH_TOUCHED:
		return runs_count("run:byte(41) % 4 ~= 0 or run:sub(17, 24) .. run:sub(33, 40) ~= "
				  "string.rep('\\0', 16)");
	case BENCH_DEAD:
		check_int(bench_command("ZCARD %s", bench_key("buried")),
			  bench_command("HLEN %s", bench_key("dead")));
		check_int(bench_command("ZCARD %s", bench_key("ended")),
			  bench_command("HLEN %s", bench_key("dead")));
		return bench_command("HLEN %s", bench_key("dead"));
	default:
		return bench_command("HLEN %s", bench_key("session"));
	}
}

static void pause_all(bool paused)
{
	(void)bench_command(paused ? "SADD %s mail call fax" : "DEL %s", bench_key("paused"));
}

static void cut(void *of)
{
	struct twi_redis *store = of;

	redisFree(store->link.statements);
	store->link.statements = NULL;
}

static void lose_request(void *of)
{
	struct twi_redis *store = of;

	cut(store);
	store->unsettled = store->unread = store->sent = true;
}

static void lose_reply(void *of)
{
	struct twi_redis *store = of;

	lose_request(store);
	store->batch--;
}

static void connect_now(void *of)
{
	struct twi_redis *store = of;

	store->link.connect_at_ns = 0;
}

static void beats(void *of, bool sent)
{
	struct twi_redis *store = of;

	store->link.beat_at_ns = sent ? 0 : INT64_MAX;
}

static bool beat_due(void *of)
{
	const struct twi_redis *store = of;

	return store->link.beat_at_ns == 0;
}

static void unread(void *of)
{
	struct twi_redis *store = of;

	store->unread = true;
}

/* Sends a claim as the store does, but over another connection. */
static int claim_by_hand(void *of, int64_t after)
{
	struct twi_redis *store = of, other = *store;
	redisReply *reply = NULL;
	int error, rows;

	check_int(twi_redis_connect(&other.link.door, &other.link.notice, &other.link.statements),
		  0);
	other.link.arguments = (struct twi_arguments){.count = 0};
	twi_arguments_8(twi_redis_link_begin(&other.link), other.link.session);
	twi_arguments_number(&other.link.arguments, store->batch + after);
	twi_arguments_number(&other.link.arguments, 5000000);
	twi_arguments_number(&other.link.arguments, 10);
	twi_argument_4(&other.link.arguments, 1);
	twi_arguments_text(&other.link.arguments, "mail");
	error = twi_redis_link_run(&other.link, TWI_REDIS_CLAIM, &reply);
	twi_arguments_free(&other.link.arguments);
	redisFree(other.link.statements);
	rows = error == 0 ? (int)(reply->elements / 3) : -1;
	if (reply != NULL)
		freeReplyObject(reply);
	return rows;
}

static void forget_claim(void *of)
{
	const struct twi_redis *store = of;
	char session[8], row[9] = {0};

	for (int i = 0; i < 8; i++) {
		session[i] = (char)(store->link.session >> (56 - 8 * i));
		row[i] = (char)((uint64_t)(store->batch - 1) >> (56 - 8 * i));
	}
	(void)bench_command("HSET %s %b %b", bench_key("session"), session, (size_t)8, row,
			    (size_t)9);
}

const struct bench_server bench_server = {
	.make = make,
	.end = end,
	.store = store_make,
	.now = now,
	.pass = pass,
	.count = count,
	.pause = pause_all,
	.cut = cut,
	.lose_reply = lose_reply,
	.lose_request = lose_request,
	.connect_now = connect_now,
	.beats = beats,
	.beat_due = beat_due,
	.unread = unread,
	.claim_by_hand = claim_by_hand,
	.forget_claim = forget_claim,
};
