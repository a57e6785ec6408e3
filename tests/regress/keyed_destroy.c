/* SPDX-License-Identifier: MIT */
/*
 * The bug: tw_keyed_destroy waited for ever while threads could not be made. It saw that another
 * thread was about to make the reclaimer, relied on it, and slept. The other thread's attempt
 * failed, and that thread did not wake the destroyer.
 *
 * The first two parts have one destroyer and one creator. In the first, the creator fails before
 * the destroyer sleeps, in the second afterwards. In the third part, three threads create, use and
 * destroy tables.
 *
 * Seen to fail with the code before the fix (each part hangs), and with this defect: a creator that
 * gives up wakes no destroyer.
 */
#include "race.h"
#include "thread_fault.h"

#include "base/test_point.h"

#include <errno.h>
#include <string.h>
#include <tickwheel.h>
#include <tickwheel/keyed.h>
#include <time.h>

enum { THREADS = 3, TABLES = 3000 /* how many tables each thread makes, or tries to make */ };

static struct tw_engine *engine;

/*
 * If `hold` is set, the next pthread_create that fails clears it and sets `held`. Then it waits
 * until the test clears `held`, and only then returns its error.
 */
static atomic_bool hold, held;
/*
 * The destroyer sets destroyer_stands when it is about to sleep. If destroyer_stops is set, it then
 * waits until the test clears destroyer_stands.
 */
static atomic_bool destroyer_stops, destroyer_stands;
static _Thread_local bool destroys;
/* Set when all test threads exist: from then on every pthread_create fails. */
static atomic_bool users_begin;

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static void await(atomic_bool *condition, bool value)
{
	while (atomic_load(condition) != value)
		nap();
}

static void on_create_fails(void)
{
	if (!atomic_exchange(&hold, false))
		return;
	atomic_store(&held, true);
	await(&held, false);
}

void twi_test_point(const char *name)
{
	if (!destroys || strcmp(name, "reclaim:waiting") != 0)
		return;
	destroys = false;
	atomic_store(&destroyer_stands, true);
	if (atomic_load(&destroyer_stops))
		await(&destroyer_stands, false);
}

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	return TW_KEYED_END;
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, NULL);

/* Leaves a cancelled entry in the table, which the reclaimer must free. */
static void table_use(struct tw_keyed *table)
{
	RACE_CHECK(tw_keyed_schedule(table, "a", 1, TW_NEVER, &kind, NULL, NULL) == TW_KEYED_DONE);
	RACE_CHECK(tw_keyed_cancel(table, "a", 1, TW_KEYED_ANY) == TW_KEYED_DONE);
}

static void *creator_main(void *unused)
{
	struct tw_keyed *table = NULL;

	RACE_CHECK(tw_keyed_create(engine, NULL, &table) == -ENOMEM);
	return unused;
}

/* Starts a creator, and returns when its attempt to make the reclaimer is about to fail. */
static void creator_hold(pthread_t *ret_thread)
{
	atomic_store(&create_error, 0);
	atomic_store(&hold, true);
	/* The first pthread_create, for the creator itself, must succeed. The second, for the
	 * library's reclaimer, must fail. */
	atomic_store(&create_before, 1);
	atomic_store(&create_error, EAGAIN);
	RACE_CHECK(pthread_create(ret_thread, NULL, creator_main, NULL) == 0);
	await(&held, true);
}

static void creator_fail(pthread_t thread)
{
	atomic_store(&held, false);
	RACE_CHECK(pthread_join(thread, NULL) == 0);
}

static void *destroyer_main(void *table)
{
	destroys = true;
	RACE_CHECK(tw_keyed_destroy(table) == 0);
	return NULL;
}

/* Makes a table without a reclaimer: tw_keyed_create relies on another creator's attempt to make
 * one, and that attempt then fails. */
static struct tw_keyed *table_without_thread(void)
{
	struct tw_keyed *table = NULL;
	pthread_t creator;

	creator_hold(&creator);
	RACE_CHECK(tw_keyed_create(engine, NULL, &table) == 0);
	creator_fail(creator);
	table_use(table);
	return table;
}

static void destroy_beside_creator(bool stops)
{
	struct tw_keyed *table = table_without_thread();
	pthread_t creator, destroyer;

	atomic_store(&destroyer_stands, false);
	atomic_store(&destroyer_stops, stops);
	creator_hold(&creator);
	atomic_store(&create_before, 1);
	RACE_CHECK(pthread_create(&destroyer, NULL, destroyer_main, table) == 0);
	await(&destroyer_stands, true);
	/* Gives the destroyer time to fall asleep. If the time is too short, the test is weaker,
	 * not wrong. */
	for (int i = 0; !stops && i < 20; i++)
		nap();
	creator_fail(creator);
	atomic_store(&destroyer_stands, false);
	RACE_CHECK(pthread_join(destroyer, NULL) == 0);
}

static void *user_main(void *unused)
{
	await(&users_begin, true);
	for (int i = 0; i < TABLES; i++) {
		struct tw_keyed *table = NULL;
		int error = tw_keyed_create(engine, NULL, &table);

		RACE_CHECK(error == 0 || error == -ENOMEM);
		if (error != 0)
			continue;
		table_use(table);
		RACE_CHECK(tw_keyed_destroy(table) == 0);
	}
	return unused;
}

static void many(void)
{
	pthread_t thread[THREADS];

	atomic_store(&create_error, 0);
	for (int i = 0; i < THREADS; i++)
		RACE_CHECK(pthread_create(&thread[i], NULL, user_main, NULL) == 0);
	atomic_store(&create_before, 0);
	atomic_store(&create_error, EAGAIN);
	atomic_store(&users_begin, true);
	race_join(thread, THREADS);
}

int main(void)
{
	struct tw_options options;

	race_watchdog(30);
	create_fails = on_create_fails;
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_engine_start(engine) == 0);
	destroy_beside_creator(true);
	destroy_beside_creator(false);
	many();
	atomic_store(&create_error, 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	return -tw_engine_destroy(engine);
}
