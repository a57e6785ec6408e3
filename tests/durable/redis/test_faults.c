/* SPDX-License-Identifier: MIT */
/*
 * Cases that only Redis has: the server forgets its scripts, its memory is full, other programs
 * write its keys, it is emptied, and a commit needs several scripts. Run the tests one at a time
 * (-j1), because they change the server's settings.
 *
 * Seen to fail with the defects that planted.py lists.
 */
#include "bench_redis.h"

#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>

/* The operations of one commit. They are too many for a single script. */
static struct tw_durable_op many[2500];

static void many_make(enum tw_durable_op_type type, uint64_t first)
{
	for (size_t i = 0; i < 2500; i++)
		many[i] = bench_op(type, first + i, 100 * SECOND);
}

static int many_commit(int number)
{
	struct tw_durable_store *store = &bench.stores[number];

	return store->ops->commit(store->store, many, 2500, 0);
}

Test(faults, scripts_that_the_server_forgets_are_sent_again, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_put_claimed(0, 1, 0);
	(void)bench_command("SCRIPT FLUSH");
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	(void)bench_command("SCRIPT FLUSH");
	check_int(bench_find(0, 1), 0);
	(void)bench_command("SCRIPT FLUSH");
	check_int(bench_claim(0), 0);
	(void)bench_command("SCRIPT FLUSH");
	((struct twi_redis *)bench.stores[0].store)->link.beat_at_ns = 0;
	bench_beat(0);
	many_make(TW_DURABLE_OP_PUT, 10);
	(void)bench_command("SCRIPT FLUSH");
	check_int(many_commit(0), 0);
	check_int(bench_server.count(BENCH_TIMERS), 2501);
}

Test(faults, a_commit_of_several_scripts_keeps_its_outcomes, .init = bench_make, .fini = bench_end)
{
	struct twi_redis *store;

	bench_open(0);
	store = bench.stores[0].store;
	check_int(bench_put(0, 12, 50 * SECOND), TW_DURABLE_DONE);
	check_int(bench_put(0, 2100, 50 * SECOND), TW_DURABLE_DONE);
	many_make(TW_DURABLE_OP_PUT, 10);
	check_int(many_commit(0), 0);
	check_int(many[2].outcome, TW_DURABLE_PRESENT);
	check_int(many[2090].outcome, TW_DURABLE_PRESENT);
	check_int(many[2499].outcome, TW_DURABLE_DONE);
	/* The replies to all three scripts are lost. */
	bench_server.lose_reply(store);
	store->batch -= 2;
	for (int i = 0; i < 2500; i++)
		many[i].outcome = 99;
	bench_server.connect_now(store);
	bench_beat(0);
	check_int(many_commit(0), 0);
	check_int(many[0].outcome, TW_DURABLE_DONE);
	check_int(many[2].outcome, TW_DURABLE_PRESENT);
	check_int(many[2090].outcome, TW_DURABLE_PRESENT);
	check_int(many[2499].outcome, TW_DURABLE_DONE);
	check_int(bench_server.count(BENCH_TIMERS), 2500);
	check_int(bench_put(0, 9999, SECOND), TW_DURABLE_DONE);
}

/* The commit's first script reached the server, the others did not. */
Test(faults, a_commit_that_is_done_in_part_goes_on, .init = bench_make, .fini = bench_end)
{
	struct twi_redis *store;
	struct tw_durable_op first[1000];

	bench_open(0);
	store = bench.stores[0].store;
	many_make(TW_DURABLE_OP_PUT, 10);
	memcpy(first, many, sizeof first);
	check_int(bench.stores[0].ops->commit(store, first, 1000, 0), 0);
	bench_server.lose_reply(store);
	bench_server.connect_now(store);
	bench_beat(0);
	check_int(many_commit(0), 0);
	for (int i = 0; i < 2500; i++)
		check_int(many[i].outcome, TW_DURABLE_DONE);
	check_int(bench_server.count(BENCH_TIMERS), 2500);
}

Test(faults, without_memory_timers_end_and_none_is_made, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	bench_put_claimed(0, 1, 0);
	bench_put_claimed(0, 2, 100 * SECOND);
	many_make(TW_DURABLE_OP_PUT, 10);
	(void)bench_command("CONFIG SET maxmemory 100kb");
	check_int(bench_put(0, 3, SECOND), -ENOSPC);
	check_true(strstr(bench_redis.notice, "OOM") != NULL);
	check_int(many_commit(0), -ENOSPC);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	check_int(bench_end_run(0, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_DONE);
	check_int(bench_cancel(0, 2), TW_DURABLE_DONE);
	check_int(bench_claim(0), 0);
	((struct twi_redis *)bench.stores[0].store)->link.beat_at_ns = 0;
	bench_beat(0);
	bench_open(1);
	(void)bench_command("CONFIG SET maxmemory 0");
	check_int(bench_put(0, 3, SECOND), TW_DURABLE_DONE);
	check_int(bench_server.count(BENCH_TIMERS), 1);
}

Test(faults, eviction_is_refused_at_the_open_and_later, .init = bench_make, .fini = bench_end)
{
	static const char *const kinds[] = {"mail"};
	struct tw_durable_session session;
	int error = 0;

	bench_open(0);
	(void)bench_command("CONFIG SET maxmemory-policy allkeys-lru");
	check_int(bench_try_open(1, kinds, 1), -ENOTSUP);
	check_true(strstr(bench_redis.notice, "noeviction") != NULL);
	while (error == 0) {
		((struct twi_redis *)bench.stores[0].store)->link.beat_at_ns = 0;
		error = bench.stores[0].ops->beat(bench.stores[0].store, &session);
	}
	(void)bench_command("CONFIG SET maxmemory-policy noeviction");
	check_int(error, -ENOTSUP);
}

/*
 * Another client has emptied the server. Each call must report that, and must not write to the keys
 * that another process has created since.
 */
Test(faults, an_emptied_server_is_noticed, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_session session;
	int error = 0;

	bench_open(0);
	check_int(bench_put(0, 1, SECOND), TW_DURABLE_DONE);
	(void)bench_command("FLUSHALL");
	check_int(bench_put(0, 2, SECOND), -ENOENT);
	check_true(strstr(bench_redis.notice, "emptied") != NULL);
	bench_open(1);
	check_int(bench_put(0, 2, SECOND), -ENOENT);
	check_int(bench_find(0, 1), -ENOENT);
	while (error == 0) {
		((struct twi_redis *)bench.stores[0].store)->link.beat_at_ns = 0;
		error = bench.stores[0].ops->beat(bench.stores[0].store, &session);
	}
	check_int(error, -ENOENT);
	check_int(bench_put(1, 1, SECOND), TW_DURABLE_DONE);
}

/* The commit must notice the changed key before it writes anything. */
Test(faults, keys_that_others_have_changed_are_noticed, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op op;

	bench_open(0);
	bench_put_claimed(0, 1, 0);
	(void)bench_command("SET %s x", bench_key("dead"));
	op = bench_op(TW_DURABLE_OP_BURY, 1, 0);
	op.fence = bench.sessions[0].number;
	check_int(bench_do(0, &op), -EUCLEAN);
	check_int(bench_server.count(BENCH_TIMERS), 1);
	(void)bench_command("DEL %s", bench_key("dead"));
	check_int(bench_do(0, &op), TW_DURABLE_DONE);
	/* Writes a row that is too short. */
	check_int(bench_put(0, 2, SECOND), TW_DURABLE_DONE);
	(void)bench_command("HSET %s %b short", bench_key("timer"), "\0\0\0\0\0\0\0\2", (size_t)8);
	check_int(bench_cancel(0, 2), -EUCLEAN);
	check_int(bench_claim(0), -EUCLEAN);
	check_int(bench_find(0, 2), -EUCLEAN);
}

Test(faults, keys_of_other_programs_stay, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	(void)bench_command("SET other:%s 17", bench_redis.prefix);
	bench_put_claimed(0, 1, 0);
	check_int(bench_end_run(0, TW_DURABLE_OP_DELETE, 1), TW_DURABLE_DONE);
	bench_close(0);
	check_int(bench_command("GET other:%s", bench_redis.prefix), 17);
	check_int(bench_command("DEL other:%s", bench_redis.prefix), 1);
}

/*
 * Serials follow the clock, so that none is used twice even if a crash of the server loses a
 * reservation.
 */
Test(faults, serials_are_not_given_twice, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_store *store = &bench.stores[0];
	uint64_t first = 0, second = 0;

	bench_open(0);
	(void)bench_now();
	check_int(store->ops->reserve(store->store, 65536, &first), 0);
	check_int(store->ops->reserve(store->store, 65536, &second), 0);
	check_true(first > 0 && second == first + 65536);
	(void)bench_command("HSET %s serial 1", bench_key("meta"));
	bench_pass(SECOND);
	check_int(store->ops->reserve(store->store, 65536, &second), 0);
	check_true(second >= first + 2 * UINT64_C(65536));
}

/*
 * If more timers are near than a claim takes, the claim takes the oldest ones, whatever their kinds
 * are.
 */
Test(faults, a_claim_of_several_kinds_takes_the_oldest, .init = bench_make, .fini = bench_end)
{
	bench_open(0);
	for (uint64_t i = 1; i <= 40; i++) {
		struct tw_durable_op op = bench_op(TW_DURABLE_OP_PUT, i, (int64_t)i * SECOND / 10);

		op.row.kind = i % 2 == 0;
		check_int(bench_do(0, &op), TW_DURABLE_DONE);
	}
	check_int(bench_claim_most(0, 20), 20);
	for (size_t i = 0; i < 20; i++)
		check_int(bench.rows[i].row.id.serial, i + 1);
}

enum { KINDS = 20 };

/*
 * Opens store 0 with KINDS kinds. Puts 200 timers: one of each kind, and the rest of the first
 * kind.
 */
static void many_kinds_open(void)
{
	static char names[KINDS][8];
	static const char *kinds[KINDS];

	for (int i = 0; i < KINDS; i++) {
		snprintf(names[i], sizeof names[i], "kind%d", i);
		kinds[i] = names[i];
	}
	check_int(bench_try_open(0, kinds, KINDS), 0);
	bench_beat(0);
	for (uint64_t i = 1; i <= 200; i++) {
		struct tw_durable_op op = bench_op(TW_DURABLE_OP_PUT, i, (int64_t)i * SECOND / 100);

		op.row.kind = i % 10 == 0 ? (uint32_t)(i / 10 % KINDS) : 0;
		check_int(bench_do(0, &op), TW_DURABLE_DONE);
	}
}

/* Returns for how many rows the scripts have asked sorted sets so far. */
static int64_t rows_asked(redisContext *monitor)
{
	static const char limit[] = "\"LIMIT\" \"0\" \"";
	int64_t rows = 0;
	bool more = true;

	(void)bench_command("PING");
	while (more) {
		redisReply *reply = NULL;
		const char *at;

		check_int(redisGetReply(monitor, (void **)&reply), REDIS_OK);
		at = strstr(reply->str, limit);
		rows += at == NULL ? 0 : strtoll(at + strlen(limit), NULL, 10);
		more = strstr(reply->str, "\"PING\"") == NULL;
		freeReplyObject(reply);
	}
	return rows;
}

/*
 * If a script read most rows of each kind, it would block the server longer with each further kind.
 */
Test(faults, scripts_read_no_more_rows_for_more_kinds, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_store *store = &bench.stores[0];
	redisContext *monitor = redisConnectUnix(getenv("TICKWHEEL_REDIS"));

	many_kinds_open();
	freeReplyObject(redisCommand(monitor, "MONITOR"));
	bench.count = 0;
	check_int(store->ops->near(store->store, NULL, INT64_MAX, 150, bench_take, NULL), 0);
	check_int(bench.count, 150);
	check_at_most(rows_asked(monitor), 500);
	check_int(bench_claim_most(0, 150), 150);
	/* The search for ended sessions asks for 100 rows more. */
	check_at_most(rows_asked(monitor), 600);
	redisFree(monitor);
	for (size_t i = 0; i < 150; i++)
		check_int(bench.rows[i].row.id.serial, i + 1);
	check_int(bench_claim(0), 50);
	check_int(bench.rows[49].row.id.serial, 200);
}

/*
 * The test brings the server into the state after a crash, if the server syncs its log only once a
 * second. The process must end its session and begin a new one.
 */
Test(faults, what_the_server_has_lost_is_claimed_anew, .init = bench_make, .fini = bench_end)
{
	uint64_t number;

	bench_open(0);
	bench_put_claimed(0, 1, 0);
	check_int(bench_start(0, 1, 1), TW_DURABLE_DONE);
	number = bench.sessions[0].number;
	/* The end of the run was acknowledged, but the server has lost it. */
	((struct twi_redis *)bench.stores[0].store)->batch++;
	bench_server.cut(bench.stores[0].store);
	bench_server.connect_now(bench.stores[0].store);
	check_int(bench_claim(0), 1);
	check_int(bench.rows[0].row.id.serial, 1);
	check_true(bench.sessions[0].number > number);
}

Test(faults, a_key_has_one_timer_and_is_free_afterwards, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_op ops[2];

	bench_open(0);
	for (int i = 0; i < 2; i++) {
		ops[i] = bench_op(TW_DURABLE_OP_PUT, (uint64_t)i + 1, 100 * SECOND);
		ops[i].row.key = "k";
		ops[i].row.key_bytes = 1;
	}
	check_int(bench.stores[0].ops->commit(bench.stores[0].store, ops, 2, 0), 0);
	check_int(ops[0].outcome, TW_DURABLE_DONE);
	check_int(ops[1].outcome, TW_DURABLE_PRESENT);
	check_int(ops[1].row.id.serial, 1);
	check_int(bench_cancel(0, 1), TW_DURABLE_DONE);
	check_int(bench_command("HLEN %s", bench_key("key")), 0);
}

/*
 * These are the texts of Redis 7.0. Redis appends "user_script" to each, as to any error that a
 * script raises.
 */
Test(faults, errors_in_scripts_have_codes)
{
	check_int(twi_redis_error("ERR The user executing the script can't run this command or "
				  "subcommand script: 5f, on @user_script:34."),
		  -EACCES);
	check_int(twi_redis_error("ERR The user executing the script can't access at least one of "
				  "the keys mentioned in the command arguments script: 5f, on "
				  "@user_script:34."),
		  -EACCES);
	check_int(twi_redis_error("ERR Script killed by user with SCRIPT KILL... script: 5f, on "
				  "@user_script:1."),
		  -EAGAIN);
	check_int(twi_redis_error("ERR bad argument #2 to 'unpack' script: 5f, on @user_script:2."),
		  -EUCLEAN);
}

/*
 * While a statement waits, the test cuts the connection for heartbeats. The wait must not become a
 * busy loop.
 */
Test(faults, a_wait_beside_a_broken_connection_takes_no_time, .init = bench_make, .fini = bench_end)
{
	static const char busy[] = "local function now() local t = redis.call('TIME') "
				   "return t[1] * 1000000 + t[2] end "
				   "local last = now() + 500000 while now() < last do end return 1";
	struct twi_redis *store;
	void *reply = NULL;
	int done = 0;
	clock_t begin;

	bench_open(0);
	store = bench.stores[0].store;
	check_true(!store->link.beat_waits);
	check_int(shutdown(store->link.beats->fd, SHUT_RDWR), 0);
	check_int(redisAppendCommand(bench_redis.connection, "EVAL %s 0", busy), REDIS_OK);
	while (done == 0)
		check_int(redisBufferWrite(bench_redis.connection, &done), REDIS_OK);
	begin = clock();
	check_int(bench_find(0, 1), -ENOENT);
	check_at_most((int64_t)(clock() - begin) * 1000 / CLOCKS_PER_SEC, 30);
	check_int(redisGetReply(bench_redis.connection, &reply), REDIS_OK);
	freeReplyObject(reply);
}

static int64_t connections(void)
{
	redisReply *reply = redisCommand(bench_redis.connection, "INFO stats");
	const char *at = strstr(reply->str, "total_connections_received:");
	int64_t count = strtoll(strchr(at, ':') + 1, NULL, 10);

	freeReplyObject(reply);
	return count;
}

/* The store must repeat a refused heartbeat after a pause, not in each step. */
Test(faults, refused_heartbeats_are_paced, .init = bench_make, .fini = bench_end)
{
	struct tw_durable_session session;
	struct twi_redis *store;
	int64_t before;

	bench_open(0);
	store = bench.stores[0].store;
	(void)bench_command("SET %s x", bench_key("dead"));
	before = connections();
	store->link.beat_at_ns = 0;
	for (int i = 0; i < 200; i++)
		check_int(bench.stores[0].ops->beat(store, &session), 0);
	check_at_most(connections() - before, 50);
	(void)bench_command("DEL %s", bench_key("dead"));
	bench_server.connect_now(store);
	bench_beat(0);
}

static void on_alarm(int number)
{
	(void)number;
}

/* A thread may handle a signal while it waits for the server. That must not end the open. */
Test(faults, signals_do_not_end_an_open, .init = bench_make, .fini = bench_end)
{
	static const char *const kinds[] = {"mail"};
	const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
	/* Leaves SA_RESTART out, because poll() ignores that flag anyway. */
	const struct sigaction action = {.sa_handler = on_alarm};
	int error = 0;

	check_int(sigaction(SIGALRM, &action, NULL), 0);
	check_int(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < 20 && error == 0; i++) {
		error = bench_try_open(0, kinds, 1);
		bench_close(0);
	}
	check_int(setitimer(ITIMER_REAL, &never, NULL), 0);
	check_int(error, 0);
}

Test(faults, options_are_checked)
{
	struct tw_durable_redis_options options;
	struct tw_durable_store store = {NULL, NULL};

	check_int(tw_durable_redis_options_init(&options, sizeof options), 0);
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.address = "localhost";
	options.user = "me";
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.user = NULL;
	options.prefix = "Tick";
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.prefix = "123456789012345678901234567890123";
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.prefix = "t";
	options.database = 16;
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.database = 0;
	options.level = 4;
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.level = 0;
	options.session_ns = 999999999;
	check_int(tw_durable_store_redis(&options, &store), -EINVAL);
	options.session_ns = 1000000000;
	check_int(tw_durable_store_redis(&options, &store), 0);
	store.ops->close(store.store, 1);
}
