/* SPDX-License-Identifier: MIT */
/* Sessions of users: each ends half an hour after its last request. */
#include "check.h"

enum { SESSIONS_MAX = 3 };

static int64_t on_idle(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	*(bool *)arg = true;
	return TW_KEYED_END;
}

/* example: tw_keyed_end_name */
/* The hook of a kind: runs once, however the session ended. */
static void session_ended(const struct tw_keyed_self *self,
			  void *arg, enum tw_keyed_end end)
{
	(void)arg;
	printf("%.*s: %s\n", (int)self->key_bytes,
	       (const char *)self->key,
	       tw_keyed_end_name((int)end));
}
/* end */

/* example: tw_keyed_options_init tw_keyed_create */
static int sessions_open(struct tw_engine *engine,
			 struct tw_keyed **ret_table)
{
	struct tw_keyed_options options;
	int code = tw_keyed_options_init(&options, sizeof(options));

	if (code < 0)
		return code;
	options.expected_keys = 100000;
	options.key_bytes_max = 64;
	return tw_keyed_create(engine, &options, ret_table);
}
/* end */

/* example: tw_keyed_schedule */
static const struct tw_keyed_kind session =
	TW_KEYED_KIND(on_idle, session_ended);

/* Returns TW_KEYED_PRESENT if the user has a session. */
static int session_begin(struct tw_keyed *table, const char *user,
			 void *arg)
{
	return tw_keyed_schedule(table, user, strlen(user),
				 TW_MINUTES(30), &session, arg,
				 NULL);
}
/* end */

/* example: tw_keyed_replace */
/* A new session of a user replaces the older one. */
static int session_renew(struct tw_keyed *table, const char *user,
			 void *arg)
{
	int outcome = tw_keyed_replace(table, user, strlen(user),
				       TW_MINUTES(30), &session,
				       arg, NULL);

	if (outcome == TW_KEYED_REPLACED)
		printf("%s: other sessions end\n", user);
	return outcome < 0 ? outcome : 0;
}
/* end */

/* example: tw_keyed_reschedule tw_keyed_outcome_name */
/* A request of the user: the session ends 30 minutes from now. */
static bool session_touch(struct tw_keyed *table, const char *user)
{
	int outcome = tw_keyed_reschedule(table, user, strlen(user),
					  TW_MINUTES(30));

	if (outcome != TW_KEYED_DONE)
		printf("%s: %s\n", user,
		       tw_keyed_outcome_name(outcome));
	return outcome == TW_KEYED_DONE;
}
/* end */

/* example: tw_keyed_cancel */
/* The user logs out. Returns false if there is no session. */
static bool session_end(struct tw_keyed *table, const char *user)
{
	int outcome = tw_keyed_cancel(table, user, strlen(user),
				      TW_KEYED_ANY);

	if (outcome < 0)
		fprintf(stderr, "%s: %s\n", user,
			tw_strerror(outcome));
	return outcome == TW_KEYED_DONE;
}
/* end */

/* example: tw_keyed_get */
/* Returns when the session ends without a request; 0: no
 * session. */
static int64_t session_until_ns(struct tw_keyed *table,
				const char *user)
{
	struct tw_keyed_info info = {.size = sizeof(info)};
	int outcome =
		tw_keyed_get(table, user, strlen(user), &info);

	return outcome == TW_KEYED_PRESENT ? info.deadline_ns : 0;
}
/* end */

/* example: tw_keyed_count */
static bool session_acceptable(struct tw_keyed *table)
{
	int64_t sessions = tw_keyed_count(table);

	return sessions >= 0 && sessions < SESSIONS_MAX;
}
/* end */

/* example: tw_keyed_each */
static int unlimited_visit(void *count, const void *key,
			   size_t bytes,
			   const struct tw_keyed_info *info)
{
	(void)key, (void)bytes;
	*(int *)count += info->deadline_ns == TW_NEVER;
	return 0; /* go on; a visit must not block */
}

static int64_t unlimited_count(struct tw_keyed *table, int *count)
{
	return tw_keyed_each(table, unlimited_visit, count);
}
/* end */

/* example: tw_keyed_destroy */
/* The stop of the engine ends all sessions. */
static int sessions_close(struct tw_engine *engine,
			  struct tw_keyed *table)
{
	int code = tw_engine_stop(engine, NULL, NULL, TW_NEVER);

	if (code == 0)
		code = tw_keyed_destroy(table);
	return code < 0 ? code : tw_engine_destroy(engine);
}
/* end */

static void sessions_show(struct bench *bench,
			  struct tw_keyed *table)
{
	bool idle[SESSIONS_MAX] = {false};
	int unlimited = 0;

	CHECK(session_begin(table, "ann", &idle[0]) ==
	      TW_KEYED_DONE);
	CHECK(session_begin(table, "ann", &idle[0]) ==
	      TW_KEYED_PRESENT);
	CHECK(session_begin(table, "bob", &idle[1]) ==
	      TW_KEYED_DONE);
	CHECK(session_renew(table, "bob", &idle[1]) == 0 &&
	      session_acceptable(table));
	CHECK(tw_keyed_schedule(table, "eve", 3, TW_NEVER, &session,
				&idle[2], NULL) == TW_KEYED_DONE);
	CHECK(!session_acceptable(table));
	CHECK(unlimited_count(table, &unlimited) == SESSIONS_MAX &&
	      unlimited == 1);
	CHECK(session_end(table, "eve") &&
	      !session_end(table, "eve"));
	bench_pass(bench, TW_MINUTES(20));
	CHECK(session_touch(table, "bob") &&
	      !session_touch(table, "eve"));
	CHECK(session_until_ns(table, "bob") == TW_MINUTES(50));
	bench_pass(bench, TW_MINUTES(20));
	CHECK(idle[0] && !idle[1] && !idle[2]);
	CHECK(session_until_ns(table, "ann") == 0 &&
	      tw_keyed_count(table) == 1);
}

int main(void)
{
	struct bench bench = bench_open(bench_options());
	struct tw_keyed *table;

	CHECK(sessions_open(bench.engine, &table) == 0);
	sessions_show(&bench, table);
	CHECK(sessions_close(bench.engine, table) == 0);
	CHECK(tw_clock_destroy(bench.clock) == 0);
	return 0;
}
