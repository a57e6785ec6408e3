/* SPDX-License-Identifier: MIT */
/*
 * With the check option, the engine must notice a damaged wheel, count it and report it to the log.
 * The test damages the wheel inside the engine.
 */
#include "engine/engine.h"

#include <criterion/criterion.h>
#include <string.h>
#include <tickwheel.h>

static char told[128];

static void remember(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	if (level == TW_LOG_ERROR)
		strncpy(told, text, sizeof told - 1);
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);
static const struct tw_log log_to_memory = {remember, NULL};

static uint64_t failures(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof stats};

	cr_assert(tw_engine_flush(engine, TW_NEVER) == 0);
	cr_assert(tw_stats_get(engine, &stats) == 0);
	return stats.check_failures;
}

static void damage_seen(enum tw_check level, uint64_t damage)
{
	struct tw_options options;
	struct tw_engine *engine;
	struct tw_clock *clock;

	cr_assert(tw_log_set(&log_to_memory) == 0);
	cr_assert(tw_clock_create_virtual(0, &clock) == 0);
	cr_assert(tw_options_init(&options, sizeof options) == 0);
	options.clock = clock;
	options.check = level;
	cr_assert(tw_engine_create(&options, &engine) == 0);
	for (int i = 0; i < 10; i++)
		cr_assert(tw_schedule(engine, 1000000000, &kind, NULL, NULL) == 0);
	cr_assert(failures(engine) == 0);
	cr_assert(told[0] == '\0');
	/*
	 * In virtual time the worker sleeps until the next flush, so the test may change its wheel
	 * now.
	 */
	engine->worker.wheel->count -= damage;
	cr_assert(failures(engine) == 1);
	cr_assert(told[0] != '\0');
	engine->worker.wheel->count += damage;
	cr_assert(failures(engine) == 1);
	cr_assert(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	cr_assert(tw_engine_destroy(engine) == 0);
	cr_assert(tw_clock_destroy(clock) == 0);
}

Test(check_level, cheap_check_reports_a_count_ten_too_low)
{
	damage_seen(TW_CHECK_CHEAP, 10);
}

Test(check_level, full_check_reports_a_count_one_too_low)
{
	damage_seen(TW_CHECK_FULL, 1);
}
