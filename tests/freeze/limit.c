/* SPDX-License-Identifier: MIT */
/*
 * A caller that is rejected by the limit of pending timeouts must not make another caller fail. The
 * first caller is stopped when it has just found the engine full. Then the only place becomes free,
 * and the next caller must get it.
 *
 * Seen to fail with this defect: twi_limit_take() raises the count first, and lowers the count
 * again if it exceeds the limit.
 */
#include "race.h"
#include "stand.h"

#include <errno.h>
#include <pthread.h>
#include <tickwheel.h>

enum { PATIENCE_MS = 20000 };

static struct tw_engine *engine;
static struct stand stand = {.point = "limit:full"};

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void *victim_main(void *argument)
{
	(void)argument;
	stand_arm(&stand);
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
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, NULL) == 0);
	stand_release(&stand);
	RACE_CHECK(pthread_join(victim, NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	return tw_engine_destroy(engine);
}
