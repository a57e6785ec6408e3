/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-uv: libuv's work queue as executor.
 *
 * Seen to fail with these defects: a batch is freed before its last item has ended; the loop is not
 * woken; a flush hands over nothing; in a forked child, the executor pushes timeouts to the work
 * queue, or its close waits for the parent's timeouts.
 */
#include "asleep.h"
#include "child.h"
#include "executor_scene.h"

#include <tickwheel/uv.h>
#include <uv.h>

enum { COUNT = 5000 };

static void loop_close(uv_loop_t *loop, struct tw_uv *executor)
{
	int result;

	while ((result = tw_uv_close(executor)) == -EBUSY)
		uv_run(loop, UV_RUN_ONCE);
	check_int(result, 0);
	uv_run(loop, UV_RUN_DEFAULT);
	check_int(uv_loop_close(loop), 0);
}

/* Stops the engine. Must be called on the loop's thread, which is the test's thread. */
static void engine_stop(struct scene *scene, struct tw_uv *executor)
{
	int result;

	while ((result = tw_engine_stop(scene->engine, NULL, NULL, NS_PER_MS)) == -ETIMEDOUT)
		check_at_least(tw_uv_flush(executor), 0);
	check_int(result, 0);
	check_books(scene->engine);
	check_int(tw_engine_destroy(scene->engine), 0);
}

static void run_until(uv_loop_t *loop, atomic_int *value, int target)
{
	while (atomic_load(value) < target)
		uv_run(loop, UV_RUN_ONCE);
}

/* The engine is in loop mode on the same thread as the libuv loop. Only the callbacks run on
 * other threads. */
static void same_loop_open(struct scene *scene, uv_loop_t *loop, struct tw_uv **ret_executor)
{
	struct tw_options options = fixture_options();

	*scene = (struct scene){.test = pthread_self()};
	check_int(uv_loop_init(loop), 0);
	check_int(tw_uv_create(loop, 0, ret_executor), 0);
	options.flags = TW_ENGINE_LOOP;
	options.dispatch = tw_uv_dispatch;
	options.dispatch_context = *ret_executor;
	check_int(tw_engine_create(&options, &scene->engine), 0);
	check_int(tw_loop_enter(scene->engine), 0);
	must_schedule(scene->engine, 1, &scene_kind, scene);
}

/* Polls until the timeout has been handed to the executor. The work queue does not have it yet. */
static void same_loop_hand_over(struct scene *scene)
{
	int64_t polled;

	while ((polled = tw_engine_poll(scene->engine, 0)) == 0)
		sleep_ns(NS_PER_MS);
	check_int(polled, 1);
	check_int(scene->runs, 0);
}

/*
 * This test comes first, because without a working flush the loop waits for ever in the other
 * tests.
 */
Test(executor_uv, a_flush_gives_every_batch)
{
	struct tw_uv *executor = NULL;
	struct scene scene;
	uv_loop_t loop;

	same_loop_open(&scene, &loop, &executor);
	same_loop_hand_over(&scene);
	must_schedule(scene.engine, 1, &scene_kind, &scene);
	same_loop_hand_over(&scene);
	check_int(tw_uv_flush(executor), 2);
	check_int(tw_uv_flush(executor), 0);
	run_until(&loop, &scene.ended, 2);
	check_int(scene.runs, 2);
	check_int(scene.here, 0);
	engine_stop(&scene, executor);
	loop_close(&loop, executor);
}

Test(executor_uv, runs_all_in_its_threads)
{
	struct tw_uv *executor = NULL;
	struct scene scene;
	uv_loop_t loop;

	check_int(uv_loop_init(&loop), 0);
	check_int(tw_uv_create(&loop, 0, &executor), 0);
	scene_open(&scene, tw_uv_dispatch, executor, TW_REJECTION_RUN);
	for (int i = 0; i < COUNT; i++)
		must_schedule(scene.engine, i % 5 * NS_PER_MS + 1, &scene_kind, &scene);
	run_until(&loop, &scene.ended, COUNT);
	check_int(scene.runs, COUNT);
	check_int(scene.here, 0);
	check_int(stats_of(scene.engine).executor_rejected, 0);
	engine_stop(&scene, executor);
	loop_close(&loop, executor);
}

/* The loop's own thread stops the engine before the loop has taken the timeouts. */
Test(executor_uv, stop_on_the_loops_thread)
{
	struct tw_uv *executor = NULL;
	struct scene scene;
	uv_loop_t loop;

	check_int(uv_loop_init(&loop), 0);
	check_int(tw_uv_create(&loop, 0, &executor), 0);
	scene_open(&scene, tw_uv_dispatch, executor, TW_REJECTION_RUN);
	for (int i = 0; i < 100; i++)
		must_schedule(scene.engine, 1, &scene_kind, &scene);
	sleep_ns(5 * NS_PER_MS);
	check_int(tw_engine_flush(scene.engine, PATIENCE_NS), 0);
	check_int(scene.runs, 0);
	check_int(tw_engine_stop(scene.engine, NULL, NULL, 5 * NS_PER_MS), -ETIMEDOUT);
	check_int(tw_uv_close(executor), -EBUSY);
	engine_stop(&scene, executor);
	check_int(scene.runs, 100);
	check_int(scene.ended, 100);
	loop_close(&loop, executor);
}

Test(executor_uv, full_queue_loses_no_timeout)
{
	for (uint32_t rejection = TW_REJECTION_RUN; rejection <= TW_REJECTION_DROP; rejection++) {
		struct tw_uv *executor = NULL;
		struct scene scene;
		uv_loop_t loop;

		check_int(uv_loop_init(&loop), 0);
		check_int(tw_uv_create(&loop, 10, &executor), 0);
		scene_open(&scene, tw_uv_dispatch, executor, rejection);
		/* The loop does not run meanwhile, so its queue stays full. */
		for (int i = 0; i < 100; i++)
			must_schedule(scene.engine, i % 5 * NS_PER_MS + 1, &scene_kind, &scene);
		sleep_ns(20 * NS_PER_MS);
		check_int(tw_engine_flush(scene.engine, PATIENCE_NS), 0);
		check_at_least(stats_of(scene.engine).executor_rejected, 90);
		check_int(scene.ended, rejection == TW_REJECTION_REQUEUE ? 0 : 90);
		check_int(scene.here, rejection == TW_REJECTION_RUN ? 90 : 0);
		check_int(scene.dropped, rejection == TW_REJECTION_DROP ? 90 : 0);
		run_until(&loop, &scene.ended, 100);
		check_int(scene.runs, rejection == TW_REJECTION_DROP ? 10 : 100);
		engine_stop(&scene, executor);
		loop_close(&loop, executor);
	}
}

Test(executor_uv, executor_serves_an_engine_of_the_same_loop)
{
	struct tw_uv *executor = NULL;
	struct scene scene;
	uv_loop_t loop;

	same_loop_open(&scene, &loop, &executor);
	while (atomic_load(&scene.ended) == 0) {
		check_at_least(tw_engine_poll(scene.engine, 0), 0);
		uv_run(&loop, UV_RUN_NOWAIT);
	}
	check_int(scene.here, 0);
	engine_stop(&scene, executor);
	loop_close(&loop, executor);
}

Test(executor_uv, stop_waits_for_an_engine_of_the_same_loop)
{
	struct tw_uv *executor = NULL;
	struct scene scene;
	uv_loop_t loop;

	same_loop_open(&scene, &loop, &executor);
	same_loop_hand_over(&scene);
	engine_stop(&scene, executor);
	check_int(scene.runs, 1);
	check_int(scene.here, 0);
	loop_close(&loop, executor);
}

static void *stop_main(void *engine)
{
	return (void *)(intptr_t)tw_engine_stop(engine, NULL, NULL, PATIENCE_NS);
}

/* The poll that ends the engine must wait for timeouts that were flushed to the work queue
 * before. */
Test(executor_uv, ending_poll_waits_for_the_work_queue)
{
	struct tw_uv *executor = NULL;
	struct scene scene;
	pthread_t thread;
	uv_loop_t loop;
	void *result;

	same_loop_open(&scene, &loop, &executor);
	same_loop_hand_over(&scene);
	check_int(tw_uv_flush(executor), 1);
	check_int(pthread_create(&thread, NULL, stop_main, scene.engine), 0);
	check_true(engine_state_await(scene.engine, TW_ENGINE_STOPPING));
	check_int(tw_engine_poll(scene.engine, 0), -ESHUTDOWN);
	check_int(scene.runs, 1);
	check_int(pthread_join(thread, &result), 0);
	check_int((intptr_t)result, 0);
	engine_stop(&scene, executor);
	loop_close(&loop, executor);
}

/*
 * In the next test, timeouts that are with the executor at the fork belong to the parent. In the
 * child they never end, so the child's close must not wait for them.
 */
static struct tw_uv *own;
static uv_loop_t own_loop;

static void child_without_threads(void)
{
	const struct tw_due due = {.kind = &scene_kind};

	child_need(uv_loop_fork(&own_loop), 0);
	child_need(tw_uv_dispatch(own, &due, 1), 0);
	child_need(tw_uv_close(own), 0);
	uv_run(&own_loop, UV_RUN_NOWAIT);
}

Test(executor_uv, in_a_forked_child)
{
	struct scene scene;

	check_int(uv_loop_init(&own_loop), 0);
	check_int(tw_uv_create(&own_loop, 0, &own), 0);
	scene_open(&scene, tw_uv_dispatch, own, TW_REJECTION_RUN);
	must_schedule(scene.engine, 1, &scene_kind, &scene);
	sleep_ns(5 * NS_PER_MS);
	check_int(tw_engine_flush(scene.engine, PATIENCE_NS), 0);
	check_int(tw_uv_close(own), -EBUSY);
	in_child(child_without_threads);
	run_until(&own_loop, &scene.ended, 1);
	check_int(scene.here, 0);
	engine_stop(&scene, own);
	loop_close(&own_loop, own);
}

Test(executor_uv, bad_arguments_are_rejected)
{
	struct tw_uv *executor = NULL;
	uv_loop_t loop;

	check_int(uv_loop_init(&loop), 0);
	check_int(tw_uv_create(NULL, 0, &executor), -EINVAL);
	check_int(tw_uv_create(&loop, 0, NULL), -EINVAL);
	check_int(tw_uv_flush(NULL), -EINVAL);
	check_int(tw_uv_close(NULL), 0);
	check_int(uv_loop_close(&loop), 0);
}
