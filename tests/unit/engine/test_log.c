/* SPDX-License-Identifier: MIT */
/* The log hook. Without one the library must be silent, and a warning must not be repeated. */
#include "fixture.h"

#include <errno.h>

enum { MANY = 128 };

static atomic_int lines;
static atomic_int levels[3];

static void on_log(void *context, enum tw_log_level level, const char *text)
{
	if (context == &lines && text != NULL && text[0] != '\0')
		atomic_fetch_add(&lines, 1);
	atomic_fetch_add(&levels[level], 1);
}

static const struct tw_log counting = {on_log, &lines};

static struct tw_engine *engines[MANY];

static void create(int from, int to)
{
	struct tw_options options = fixture_options();
	int i;

	options.slots = 16;
	for (i = from; i < to; i++)
		check_int(tw_engine_create(&options, &engines[i]), 0);
}

static void destroy_all(void)
{
	int i;

	for (i = 0; i < MANY && engines[i]; i++)
		check_int(tw_engine_destroy(engines[i]), 0);
}

Test(log, more_than_64_engines_is_told_once)
{
	check_int(tw_log_set(&counting), 0);
	create(0, 64);
	check_int(lines, 0);
	create(64, 65);
	check_int(lines, 1);
	check_int(levels[TW_LOG_WARNING], 1);
	create(65, MANY);
	check_int(lines, 1);
	destroy_all();
}

Test(log, rejected_hook_leaves_the_other)
{
	static const struct tw_log without_hook = {NULL, NULL};

	check_int(tw_log_set(&counting), 0);
	check_int(tw_log_set(&without_hook), -EINVAL);
	create(0, 65);
	check_int(lines, 1);
	destroy_all();
}

Test(log, log_is_silent_after_its_hook_is_removed)
{
	check_int(tw_log_set(&counting), 0);
	check_int(tw_log_set(NULL), 0);
	create(0, MANY);
	check_int(lines, 0);
	destroy_all();
}

Test(log, log_without_a_function_is_rejected)
{
	const struct tw_log empty = {NULL, NULL};

	check_int(tw_log_set(&empty), -EINVAL);
}

static int failing_hook(void *context, void *(*body)(void *arg), void *arg)
{
	(void)context;
	(void)body;
	(void)arg;
	return EAGAIN;
}

static void on_nothing(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

Test(log, failed_lazy_start_logs_one_line)
{
	static const struct tw_kind kind = TW_KIND(on_nothing, NULL);
	struct tw_options options = fixture_options();

	check_int(tw_log_set(&counting), 0);
	options.thread = failing_hook;
	check_int(tw_engine_create(&options, &engines[0]), 0);
	check_int(tw_schedule(engines[0], 1, &kind, NULL, NULL), -ENOMEM);
	check_int(lines, 1);
	check_int(tw_engine_stop(engines[0], NULL, NULL, PATIENCE_NS), 0);
	destroy_all();
}
