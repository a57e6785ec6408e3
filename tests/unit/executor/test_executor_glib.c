/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-glib: a GThreadPool as executor.
 *
 * Seen to fail with these defects: the count of waiting timeouts does not fall, so a full queue
 * stays full; the limit is not checked; the pool has fewer threads than requested, or none; a
 * destroy waits for its own thread; in a forked child, the executor pushes timeouts to the pool, or
 * its destroy waits for threads.
 */
#include "child.h"
#include "executor_scene.h"
#include "thread_fault.h"

#include <tickwheel/glib.h>

enum { COUNT = 5000 };

static void schedule_many(struct scene *scene, int count)
{
	for (int i = 0; i < count; i++)
		must_schedule(scene->engine, i % 5 * NS_PER_MS + 1, &scene_kind, scene);
}

static void scene_end(struct scene *scene, struct tw_glib *executor)
{
	check_int(tw_engine_stop(scene->engine, NULL, NULL, PATIENCE_NS), 0);
	check_books(scene->engine);
	check_int(tw_engine_destroy(scene->engine), 0);
	check_int(tw_glib_destroy(executor), 0);
}

Test(executor_glib, runs_all_in_its_threads)
{
	struct tw_glib *executor = NULL;
	struct scene scene;

	check_int(tw_glib_create(3, 0, &executor), 0);
	scene_open(&scene, tw_glib_dispatch, executor, TW_REJECTION_RUN);
	schedule_many(&scene, COUNT);
	check_true(wait_until_at_least(&scene.ended, COUNT));
	check_int(scene.runs, COUNT);
	check_int(scene.here, 0);
	check_int(stats_of(scene.engine).executor_rejected, 0);
	scene_end(&scene, executor);
}

Test(executor_glib, stop_waits_for_it)
{
	struct tw_glib *executor = NULL;
	struct scene scene;
	struct gate gate;

	check_int(tw_glib_create(1, 0, &executor), 0);
	scene_open(&scene, tw_glib_dispatch, executor, TW_REJECTION_RUN);
	gate_init(&gate);
	must_schedule(scene.engine, 1, &gate_kind, &gate);
	gate_await(&gate);
	check_int(tw_engine_stop(scene.engine, NULL, NULL, 20 * NS_PER_MS), -ETIMEDOUT);
	gate_open(&gate);
	scene_end(&scene, executor);
}

/* The pool's only thread is held, and its queue takes ten timeouts. No policy may lose a
 * timeout. */
Test(executor_glib, full_queue_loses_no_timeout)
{
	for (uint32_t rejection = TW_REJECTION_RUN; rejection <= TW_REJECTION_DROP; rejection++) {
		struct tw_glib *executor = NULL;
		struct scene scene;
		struct gate gate;

		check_int(tw_glib_create(1, 10, &executor), 0);
		scene_open(&scene, tw_glib_dispatch, executor, rejection);
		gate_init(&gate);
		must_schedule(scene.engine, 1, &gate_kind, &gate);
		gate_await(&gate);
		schedule_many(&scene, 100);
		sleep_ns(20 * NS_PER_MS);
		check_int(tw_engine_flush(scene.engine, PATIENCE_NS), 0);
		check_at_least(stats_of(scene.engine).executor_rejected, 90);
		check_int(scene.ended, rejection == TW_REJECTION_REQUEUE ? 0 : 90);
		check_int(scene.here, rejection == TW_REJECTION_RUN ? 90 : 0);
		check_int(scene.dropped, rejection == TW_REJECTION_DROP ? 90 : 0);
		gate_open(&gate);
		check_true(wait_until_at_least(&scene.ended, 100));
		check_int(scene.runs, rejection == TW_REJECTION_DROP ? 10 : 100);
		scene_end(&scene, executor);
	}
}

/* GLib returns a pool even if it cannot make the threads. Such a pool would run nothing, so
 * create must fail. */
Test(executor_glib, no_resources_for_its_threads)
{
	struct tw_glib *executor = NULL;

	for (int threads = 0; threads < 3; threads++) {
		atomic_store(&create_before, threads);
		atomic_store(&create_error, EAGAIN);
		/*
		 * GLib keeps threads of earlier pools. So the test asks for more than can be left
		 * over.
		 */
		check_int(tw_glib_create(32, 0, &executor), -ENOMEM);
		check_true(executor == NULL);
		atomic_store(&create_error, 0);
	}
	check_int(tw_glib_create(3, 0, &executor), 0);
	check_int(tw_glib_destroy(executor), 0);
}

/*
 * In the next test, a callback destroys its own executor. The destroy must not wait for its own
 * thread.
 */
static struct tw_glib *own;
static atomic_int own_destroyed;

static void destroy_own(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_store(&own_destroyed, tw_glib_destroy(own));
}

static const struct tw_kind destroy_kind = TW_KIND(destroy_own, NULL);

Test(executor_glib, destroyed_in_its_own_thread)
{
	struct scene scene;

	check_int(tw_glib_create(1, 0, &own), 0);
	scene_open(&scene, tw_glib_dispatch, own, TW_REJECTION_RUN);
	must_schedule(scene.engine, 1, &destroy_kind, NULL);
	for (int i = 0; i < 60000 && atomic_load(&own_destroyed) == 0; i++)
		sleep_ns(NS_PER_MS);
	check_int(own_destroyed, -EDEADLK);
	scene_end(&scene, own);
}

/*
 * Uses the executor in a child. The child has none of the pool's threads, and at the fork one of
 * them may have held the pool's lock.
 */
static void child_without_threads(void)
{
	const struct tw_due due = {.kind = &scene_kind};

	child_need(tw_glib_dispatch(own, &due, 1), 0);
	child_need(tw_glib_destroy(own), 0);
	/*
	 * Ends the child by exec, so that no leak check runs. It would report memory of GLib to
	 * which only the stacks of the parent's threads referred.
	 */
	(void)execl("/bin/true", "true", (char *)NULL);
}

Test(executor_glib, in_a_forked_child)
{
	struct scene scene;

	check_int(tw_glib_create(2, 0, &own), 0);
	scene_open(&scene, tw_glib_dispatch, own, TW_REJECTION_RUN);
	in_child(child_without_threads);
	schedule_many(&scene, 10);
	check_true(wait_until_at_least(&scene.ended, 10));
	check_int(scene.here, 0);
	scene_end(&scene, own);
}

Test(executor_glib, bad_arguments_are_rejected)
{
	struct tw_glib *executor = NULL;

	check_int(tw_glib_create(0, 0, &executor), -EINVAL);
	check_int(tw_glib_create(1025, 0, &executor), -EINVAL);
	check_int(tw_glib_create(1, 0, NULL), -EINVAL);
	check_int(tw_glib_destroy(NULL), 0);
}
