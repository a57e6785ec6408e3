/* SPDX-License-Identifier: MIT */
/*
 * Shared by the tests of executors: timeouts that count their runs, on an engine in real time whose
 * dispatch hook is that of the executor under test.
 */
#ifndef TESTS_EXECUTOR_SCENE_H
#define TESTS_EXECUTOR_SCENE_H

#include "probe.h"

#include <errno.h>
#include <pthread.h>

struct scene {
	struct tw_engine *engine;
	pthread_t worker; /* the worker's thread: an inline callback stored it */
	atomic_int runs, ended, dropped;
	atomic_int here; /* counts runs on the worker or on the test's thread */
	pthread_t test;
	atomic_bool knows_worker;
};

static inline void scene_on_run(struct tw_handle self, void *arg)
{
	struct scene *scene = (struct scene *)arg;

	(void)self;
	if (pthread_equal(pthread_self(), scene->test) ||
	    (atomic_load(&scene->knows_worker) && pthread_equal(pthread_self(), scene->worker)))
		atomic_fetch_add(&scene->here, 1);
	atomic_fetch_add(&scene->runs, 1);
}

static inline void scene_on_end(void *arg, enum tw_end end)
{
	struct scene *scene = (struct scene *)arg;

	if (end == TW_END_DROPPED)
		atomic_fetch_add(&scene->dropped, 1);
	atomic_fetch_add(&scene->ended, 1);
}

static inline void scene_on_inline(struct tw_handle self, void *arg)
{
	struct scene *scene = (struct scene *)arg;

	(void)self;
	scene->worker = pthread_self();
	atomic_store(&scene->knows_worker, true);
}

static const struct tw_kind scene_kind = TW_KIND(scene_on_run, scene_on_end);
static const struct tw_kind scene_inline_kind = TW_KIND_INLINE(scene_on_inline, NULL);

static inline void scene_on_drop(void *context, struct tw_handle self, const struct tw_kind *kind,
				 void *arg)
{
	(void)context;
	(void)self;
	(void)kind;
	(void)arg;
}

static inline void scene_open(struct scene *scene, tw_dispatch_hook *dispatch, void *executor,
			      uint32_t rejection)
{
	struct tw_options options = fixture_options();

	*scene = (struct scene){.test = pthread_self()};
	options.dispatch = dispatch;
	options.dispatch_context = executor;
	options.rejection = rejection;
	options.on_drop = rejection == TW_REJECTION_DROP ? scene_on_drop : NULL;
	check_int(tw_engine_create(&options, &scene->engine), 0);
	must_schedule(scene->engine, 1, &scene_inline_kind, scene);
	for (int i = 0; i < 60000 && !atomic_load(&scene->knows_worker); i++)
		sleep_ns(NS_PER_MS);
	check_true(atomic_load(&scene->knows_worker));
}

#endif
