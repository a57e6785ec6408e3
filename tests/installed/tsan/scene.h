/* SPDX-License-Identifier: MIT */
/*
 * Shared by the programs of this folder. They stand for a user's program. They are compiled with
 * -fsanitize=thread. The installed library, to which they are linked, is not.
 *
 * In a scene, two threads access plain memory, and only the library orders their accesses. All
 * other waits are for a step: a relaxed atomic, which orders no memory. Threads and engines must
 * begin before the accesses, because creating a thread orders everything before it.
 */
#ifndef SCENE_H
#define SCENE_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

#define MS INT64_C(1000000)

enum { WAIT_S = 120 };

#define must(what)                                                                                 \
	do {                                                                                       \
		if (!(what))                                                                       \
			scene_fail(__FILE__, __LINE__, #what);                                     \
	} while (0)

static void scene_fail(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: not so: %s\n", file, line, what);
	_Exit(3);
}

static inline void nap(void)
{
	const struct timespec little = {0, 50000};

	(void)nanosleep(&little, NULL);
}

/* Repeats until the condition holds. Fails after two minutes. */
#define await(what)                                                                                \
	do {                                                                                       \
		time_t scene_begin = time(NULL);                                                   \
		while (!(what)) {                                                                  \
			must(time(NULL) - scene_begin < WAIT_S);                                   \
			nap();                                                                     \
		}                                                                                  \
	} while (0)

static atomic_int scene_step;

static inline void step(int to)
{
	atomic_store_explicit(&scene_step, to, memory_order_relaxed);
}

static inline int step_now(void)
{
	return atomic_load_explicit(&scene_step, memory_order_relaxed);
}

static inline void step_await(int at)
{
	await(step_now() >= at);
}

/* How many callbacks and finalisers of this scene are about to return. */
static atomic_int done;

static inline void done_note(void)
{
	atomic_fetch_add_explicit(&done, 1, memory_order_relaxed);
}

static inline int done_now(void)
{
	return atomic_load_explicit(&done, memory_order_relaxed);
}

/* A handle that is passed on without an order, as by code that ThreadSanitizer does not see. */
struct loose_handle {
	_Atomic(void *) node;
	atomic_ullong generation;
};

static inline void loose_put(struct loose_handle *loose, struct tw_handle handle)
{
	atomic_store_explicit(&loose->generation, handle.generation, memory_order_relaxed);
	atomic_store_explicit(&loose->node, handle.node, memory_order_relaxed);
}

static inline struct tw_handle loose_get(struct loose_handle *loose)
{
	return (struct tw_handle){
		.node = atomic_load_explicit(&loose->node, memory_order_relaxed),
		.generation = atomic_load_explicit(&loose->generation, memory_order_relaxed)};
}

static inline struct tw_options options_default(void)
{
	struct tw_options options;

	must(tw_options_init(&options, sizeof options) == 0);
	return options;
}

/* Creates an engine and starts it. */
static inline struct tw_engine *engine_begin(const struct tw_options *options)
{
	struct tw_engine *engine;

	must(tw_engine_create(options, &engine) == 0);
	must(tw_engine_start(engine) == 0);
	must(tw_engine_flush(engine, TW_NEVER) == 0);
	return engine;
}

static inline void engine_end(struct tw_engine *engine)
{
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	must(tw_engine_destroy(engine) == 0);
}

/* a number greater than all steps of a scene */
enum { SCENE_END = 1000 };

struct scene_thread {
	void *(*body)(void *);
	void *arg;
	atomic_int ready;
};

/*
 * The main function of a scene's thread. It attaches before anything else, and stays until the end,
 * because its first and last use of the library could order more than the scene tests.
 */
static inline void *scene_thread_body(void *argument)
{
	struct scene_thread *thread = argument;
	void *(*body)(void *) = thread->body;
	void *arg = thread->arg;

	must(tw_thread_attach() == 0);
	atomic_store_explicit(&thread->ready, 1, memory_order_relaxed);
	(void)body(arg);
	step_await(SCENE_END);
	return thread;
}

static inline pthread_t thread_begin(void *(*body)(void *), void *arg)
{
	struct scene_thread *thread = calloc(1, sizeof *thread);
	pthread_t made;

	must(thread != NULL);
	thread->body = body;
	thread->arg = arg;
	must(pthread_create(&made, NULL, scene_thread_body, thread) == 0);
	await(atomic_load_explicit(&thread->ready, memory_order_relaxed) == 1);
	return made;
}

static inline void thread_end(pthread_t thread)
{
	void *made;

	step(SCENE_END);
	must(pthread_join(thread, &made) == 0);
	free(made);
}

struct scene {
	const char *name;
	void (*run)(void);
};

/* Runs the named scenes, or all scenes. */
static inline int scenes_run(const struct scene *scenes, size_t count, int argc, char **argv)
{
	int ran = 0;

	for (size_t i = 0; i < count; i++) {
		if (argc > 1 && strcmp(argv[1], scenes[i].name) != 0)
			continue;
		step(0);
		atomic_store_explicit(&done, 0, memory_order_relaxed);
		fprintf(stderr, "scene %s\n", scenes[i].name);
		scenes[i].run();
		ran++;
	}
	must(ran > 0);
	return 0;
}

#define SCENES_RUN(scenes, argc, argv)                                                             \
	scenes_run((scenes), sizeof(scenes) / sizeof(scenes)[0], (argc), (argv))

#endif
