/* SPDX-License-Identifier: MIT */
#include "layer.h"

#include <string.h>

enum { PATIENCE_MS = 20000 };

struct tw_engine *engine;
struct tw_due due;
_Atomic unsigned dues;

static struct tw_clock *virtual_clock;
static int64_t now_ns;
static bool dispatches;

static size_t on_dispatch(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	(void)count;
	if (!dispatches)
		return 0;
	due = batch[0];
	atomic_fetch_add(&dues, 1);
	return 1;
}

void layer_open(bool dispatching)
{
	struct tw_options options;

	dispatches = dispatching;
	atomic_store(&dues, 0);
	now_ns = 0;
	RACE_CHECK(tw_clock_create_virtual(0, &virtual_clock) == 0);
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.clock = virtual_clock;
	options.dispatch = on_dispatch;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
}

void layer_close(void)
{
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_clock_destroy(virtual_clock) == 0);
}

void stop(void)
{
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
}

void advance(int64_t ticks)
{
	now_ns += ticks * TICK_NS;
	RACE_CHECK(tw_clock_set(virtual_clock, now_ns) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
}

static void *victim_main(void *argument)
{
	struct victim *victim = argument;

	stand_arm(&victim->stand);
	victim->result = victim->call();
	stand_disarm();
	return NULL;
}

void victim_stop(struct victim *victim, const char *point, int (*call)(void))
{
	memset(victim, 0, sizeof *victim);
	victim->stand.point = point;
	victim->call = call;
	victim->result = VICTIM_LEFT;
	RACE_CHECK(pthread_create(&victim->thread, NULL, victim_main, victim) == 0);
	RACE_CHECK(stand_await(&victim->stand, PATIENCE_MS));
}

void victim_go_on(struct victim *victim, int result)
{
	stand_release(&victim->stand);
	RACE_CHECK(pthread_join(victim->thread, NULL) == 0);
	RACE_CHECK(victim->result == result);
}
