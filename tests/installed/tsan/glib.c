/* SPDX-License-Identifier: MIT */
/*
 * The executor of GLib. ThreadSanitizer does not see GLib's locks, but must not report any access
 * of this executor.
 */
#include "scene.h"

#include <tickwheel/glib.h>

enum { TIMEOUTS = 300 };

static int values[TIMEOUTS];

static void on_timeout(struct tw_handle self, void *arg)
{
	(void)self;
	must(*(int *)arg == 1);
	*(int *)arg = 2;
	done_note();
}

static void *schedules(void *engine)
{
	static const struct tw_kind kind = TW_KIND(on_timeout, NULL);

	for (int i = 0; i < TIMEOUTS; i++) {
		values[i] = 1;
		must(tw_schedule(engine, i % 3 * MS, &kind, &values[i], NULL) == 0);
	}
	return NULL;
}

int main(void)
{
	struct tw_options options = options_default();
	struct tw_engine *engine;
	struct tw_glib *executor;
	pthread_t thread;

	must(tw_glib_create(2, 0, &executor) == 0);
	options.dispatch = tw_glib_dispatch;
	options.dispatch_context = executor;
	must(tw_engine_create(&options, &engine) == 0);
	thread = thread_begin(schedules, engine);
	await(done_now() == TIMEOUTS);
	engine_end(engine);
	for (int i = 0; i < TIMEOUTS; i++)
		must(values[i] == 2);
	must(tw_glib_destroy(executor) == 0);
	thread_end(thread);
	return 0;
}
