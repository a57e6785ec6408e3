/* SPDX-License-Identifier: MIT */
/*
 * Connects the store to the server in each possible way: over a connection that the caller makes,
 * as a user, to a database, and over TCP.
 *
 * Seen to fail with these defects: AUTH is sent without the user; SELECT is not sent; a port after
 * an address in brackets is not recognised.
 */
#include "bench_redis.h"

#include "durable/redis/connect.h"

#include <stdio.h>
#include <unistd.h>

static const char *const kinds[] = {"mail"};

/* How the caller's connect function must behave, and how often it was called. */
static struct {
	int calls;
	bool none, broken;
	int database;
} caller;

static redisContext *caller_connect(void *context)
{
	redisContext *connection;

	check_true(context == &caller);
	caller.calls++;
	if (caller.none)
		return NULL;
	if (caller.broken)
		return redisConnectUnix("/nowhere/redis");
	connection = redisConnectUnix(getenv("TICKWHEEL_REDIS"));
	freeReplyObject(redisCommand(connection, "SELECT %d", caller.database));
	return connection;
}

static void on_notice(void *context, const char *text)
{
	(void)context;
	snprintf(bench_redis.notice, sizeof bench_redis.notice, "%s", text);
}

static void options_make(struct tw_durable_redis_options *ret_options)
{
	check_int(tw_durable_redis_options_init(ret_options, sizeof *ret_options), 0);
	ret_options->prefix = bench_redis.prefix;
	ret_options->notice = on_notice;
}

static int open_by(const struct tw_durable_redis_options *options)
{
	struct tw_durable_store *store = &bench.stores[0];
	struct tw_durable_opened opened = {.level = 0};

	check_int(tw_durable_store_redis(options, store), 0);
	return store->ops->open(store->store, kinds, 1, &opened);
}

/* Returns how many keys of the store a database has. */
static int64_t keys_in(int database)
{
	int64_t keys;

	(void)bench_command("SELECT %d", database);
	keys = bench_command("EXISTS %s", bench_key("meta"));
	(void)bench_command("SELECT 0");
	return keys;
}

static void forget(int database)
{
	(void)bench_command("SELECT %d", database);
	(void)bench_command("FLUSHDB");
	(void)bench_command("SELECT 0");
}

Test(connect, caller_brings_its_connections, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_redis_options options;

	caller.database = 3;
	options_make(&options);
	options.connect = caller_connect;
	options.connect_context = &caller;
	check_int(open_by(&options), 0);
	bench_beat(0);
	/* The store makes one connection for statements and one for heartbeats. */
	check_int(caller.calls, 2);
	check_int(keys_in(3), 1);
	check_int(keys_in(0), 0);
	bench_server.cut(bench.stores[0].store);
	bench_server.connect_now(bench.stores[0].store);
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	check_int(caller.calls, 3);
	bench_close(0);
	forget(3);
}

Test(connect, caller_has_no_connection, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_redis_options options;

	options_make(&options);
	options.connect = caller_connect;
	options.connect_context = &caller;
	caller.none = true;
	check_int(open_by(&options), -ECONNREFUSED);
	bench_close(0);
	caller.none = false;
	caller.broken = true;
	check_int(open_by(&options), -ECONNREFUSED);
	check_true(strstr(bench_redis.notice, "No such file") != NULL);
	bench_close(0);
	check_int(caller.calls, 2);
}

Test(connect, user_and_database, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_redis_options options;

	(void)bench_command("ACL SETUSER clerk on >pass ~* +@all");
	options_make(&options);
	options.address = getenv("TICKWHEEL_REDIS");
	options.user = "clerk";
	options.password = "wrong";
	options.database = 5;
	check_int(open_by(&options), -EACCES);
	bench_close(0);
	options.password = "pass";
	check_int(open_by(&options), 0);
	bench_beat(0);
	check_int(keys_in(5), 1);
	(void)bench_command("ACL SETUSER clerk off");
	bench_close(0);
	check_int(open_by(&options), -EACCES);
	(void)bench_command("ACL DELUSER clerk");
	forget(5);
}

/* Connects to these addresses, each of which names this port. */
Test(connect, connects_to_tcp_addresses_of_each_form, .init = bench_make, .fini = bench_end)
{
	static const char *const forms[] = {"127.0.0.1:%d", "localhost:%d", "[127.0.0.1]:%d"};
	static const char *const wrong[] = {"127.0.0.1:", "127.0.0.1:x",     ":6379",
					    "[]:6379",    "127.0.0.1:65536", "127.0.0.1:0"};
	const int port = 20000 + (int)(getpid() % 20000);
	struct tw_durable_redis_options options;
	char address[64];

	(void)bench_command("CONFIG SET port %d", port);
	options_make(&options);
	options.address = address;
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
		snprintf(address, sizeof address, forms[i], port);
		check_int(open_by(&options), 0);
		bench_close(0);
	}
	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		snprintf(address, sizeof address, "%s", wrong[i]);
		check_int(open_by(&options), -ECONNREFUSED);
		bench_close(0);
	}
	(void)bench_command("CONFIG SET port 0");
}
