/* SPDX-License-Identifier: MIT */
/*
 * A caller that the limit of pending timeouts refuses must not make another one fail, not even for a
 * moment. It is stopped where it has just found the engine full; then the only place becomes free,
 * and whoever asks next has to get it.
 *
 * Seen to fail: with a check that counts first, and takes its count back when that was too much.
 */
#include "../race/race.h"
#include "base/test_point.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

static struct tw_engine *engine;
static _Thread_local bool is_victim;
static _Atomic bool frozen, released;

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void twi_test_point(const char *name)
{
	if (!is_victim || strcmp(name, "limit:full") != 0)
		return;
	atomic_store(&frozen, true);
	while (!atomic_load(&released))
		nap();
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void *victim_main(void *argument)
{
	(void)argument;
	is_victim = true;
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == -EAGAIN);
	return NULL;
}

int main(void)
{
	struct tw_options options;
	struct tw_handle handle;
	pthread_t victim;

	race_watchdog(30);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.pending_limit = 1;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handle) == 0);
	RACE_CHECK(pthread_create(&victim, NULL, victim_main, NULL) == 0);
	while (!atomic_load(&frozen))
		nap();
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	atomic_store(&released, true);
	RACE_CHECK(pthread_join(victim, NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	return tw_engine_destroy(engine);
}
