/* SPDX-License-Identifier: MIT */
/*
 * The end of a queue and of its engine, also if callbacks run in executors: stop, destroy,
 * callbacks that end their thread, forked children.
 *
 * Seen to fail with these defects: a stop does not end pending attempts; a hand-back ends a task
 * whose attempt another thread is making; a child continues the parent's task.
 */
#include "asleep.h"
#include "child.h"
#include "retry_scene.h"

#include <pthread.h>

static const int64_t short_delays[] = {NS_PER_S, NS_PER_S, NS_PER_S};
static const struct tw_retry_schedule schedule = TW_RETRY_TABLE(short_delays);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 0);

struct scene {
	struct fixture fixture;
	struct tw_retry *queue;
	struct job job;
	struct tw_retry_handle handle;
};

static void scene_open(struct scene *scene, int result)
{
	fixture_open(&scene->fixture, NULL);
	scene->queue = queue_open(&scene->fixture, 100, TW_RETRY_REJECT);
	job_init(&scene->job, scene->fixture.engine, result);
	scene->handle = must_submit(scene->queue, 1, &kind, &scene->job);
	check_int(tw_retry_pending(scene->queue), 1);
}

/* Opens the scene and makes the first attempt. */
static void scene_run(struct scene *scene, int result)
{
	scene_open(scene, result);
	advance_to_attempt(&scene->fixture, &scene->job, 0);
}

static void scene_end(struct scene *scene)
{
	scene_close(&scene->fixture, scene->queue);
	check_int(scene->job.ended, 1);
}

/* The next tests stop the engine, with the task in each possible place. */
Test(retry_stop, stop_ends_a_task_before_its_first_attempt)
{
	struct scene scene;

	scene_open(&scene, TW_RETRY_DONE);
	scene_end(&scene);
	check_end(&scene.job, TW_RETRY_END_STOPPED, 0);
}

Test(retry_stop, stop_between_attempts_ends_the_task)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_AGAIN);
	scene_end(&scene);
	check_end(&scene.job, TW_RETRY_END_STOPPED, 1);
}

Test(retry_stop, stop_while_pending_ends_the_task)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	scene_end(&scene);
	check_end(&scene.job, TW_RETRY_END_STOPPED, 1);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), -ESTALE);
}

/* In the next test, the engine is already closed when the attempt returns its result. */
static atomic_int stopping_inside;

static int on_stopping_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct job *job = arg;

	atomic_store(&stopping_inside, 1);
	while (tw_engine_state(job->engine) < TW_ENGINE_STOPPING)
		sleep_ns(NS_PER_MS / 10);
	return on_attempt(self, arg, attempt);
}

Test(retry_stop, stopped_inside_an_attempt)
{
	static const struct tw_retry_kind stopping =
		TW_RETRY_KIND(on_stopping_attempt, on_ended, &schedule, 0);
	static const int ends[] = {
		[TW_RETRY_DONE] = TW_RETRY_END_DONE,
		[TW_RETRY_AGAIN] = TW_RETRY_END_STOPPED,
		[TW_RETRY_GIVE_UP] = TW_RETRY_END_GIVEN_UP,
		[TW_RETRY_PENDING] = TW_RETRY_END_STOPPED,
	};

	for (int result = TW_RETRY_DONE; result <= TW_RETRY_PENDING; result++) {
		struct scene scene;

		scene_run(&scene, TW_RETRY_DONE);
		job_init(&scene.job, scene.fixture.engine, result);
		must_submit(scene.queue, 1, &stopping, &scene.job);
		atomic_store(&stopping_inside, 0);
		check_int(tw_clock_set(scene.fixture.clock, 5 * NS_PER_MS), 0);
		check_true(wait_until_at_least(&stopping_inside, 1));
		scene_end(&scene);
		check_end(&scene.job, ends[result], 1);
	}
}

Test(retry_stop, submit_after_stop_returns_eshutdown)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_AGAIN);
	fixture_stop(&scene.fixture);
	check_end(&scene.job, TW_RETRY_END_STOPPED, 1);
	check_int(tw_retry_submit(scene.queue, 0, &kind, &scene.job, NULL), -ESHUTDOWN);
	check_int(tw_retry_submit_failed(scene.queue, &kind, &scene.job, NULL), -ESHUTDOWN);
	check_int(tw_retry_cancel(scene.handle), TW_RETRY_CANCEL_ENDED);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), -ESTALE);
	check_int(tw_retry_pending(scene.queue), 0);
	scene_end(&scene);
}

/* A queue with tasks must not be destroyed. An empty queue can be destroyed, and calls with its
 * handles stay safe. */
Test(retry_stop, queue_with_tasks_is_not_destroyed)
{
	struct tw_retry_handle handle;
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	handle = scene.job.self;
	check_int(tw_retry_destroy(scene.queue), -EBUSY);
	check_int(tw_retry_complete(handle, TW_RETRY_DONE), 0);
	check_int(tw_retry_destroy(scene.queue), 0);
	check_int(tw_retry_complete(handle, TW_RETRY_DONE), -ESTALE);
	check_int(tw_retry_cancel(handle), TW_RETRY_CANCEL_ENDED);
	/* The next queue uses the memory of the destroyed one. */
	scene.queue = queue_open(&scene.fixture, 1, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_AGAIN);
	must_submit(scene.queue, 1, &kind, &scene.job);
	check_int(tw_retry_complete(handle, TW_RETRY_DONE), -ESTALE);
	check_int(tw_retry_cancel(handle), TW_RETRY_CANCEL_ENDED);
	scene_end(&scene);
	check_int(tw_retry_destroy(NULL), 0);
}

/* In the next test, a hook tries to destroy its queue, which is still in use. */
static struct tw_retry *hook_queue;
static atomic_int hook_destroy_code;

static void on_ended_destroy(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	atomic_store(&hook_destroy_code, tw_retry_destroy(hook_queue));
	on_ended(arg, end, attempts);
}

Test(retry_stop, destroy_in_a_hook_returns_busy)
{
	static const struct tw_retry_kind destroying =
		TW_RETRY_KIND(on_attempt, on_ended_destroy, &schedule, 0);
	struct scene scene;

	scene_run(&scene, TW_RETRY_DONE);
	hook_queue = scene.queue;
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_DONE);
	must_submit(scene.queue, 1, &destroying, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(hook_destroy_code, -EBUSY);
	scene_end(&scene);
}

/* A hand-back hook must be able to recognise a queue's timeouts. */
Test(retry_stop, hand_back_hook_can_recognise_a_queues_timers)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_AGAIN);
	check_int(tw_retry_owns(&count_kind), 0);
	check_int(tw_retry_owns(NULL), 0);
	fixture_stop(&scene.fixture);
	check_int(scene.fixture.back.count, 1);
	check_int(tw_retry_owns(scene.fixture.back.kind), 1);
	scene_end(&scene);
}

/* Tests with executors: attempts, completions, cancels and stop when callbacks run on other
 * threads. */
enum { DUES_MAX = 8 };
static struct tw_due dues[DUES_MAX];
static atomic_int due_count;
static asleep_thread worker;

static size_t on_dispatch(void *context, const struct tw_due *due, size_t count)
{
	size_t i;

	(void)context;
	asleep_announce(&worker);
	for (i = 0; i < count && due_count < DUES_MAX; i++)
		dues[due_count++] = due[i];
	return i;
}

static void open_dispatched(struct scene *scene, int result)
{
	struct tw_options options = fixture_options();

	options.dispatch = on_dispatch;
	atomic_store(&due_count, 0);
	fixture_open(&scene->fixture, &options);
	scene->queue = queue_open(&scene->fixture, 1, TW_RETRY_REJECT);
	job_init(&scene->job, scene->fixture.engine, result);
	scene->handle = must_submit(scene->queue, 1, &kind, &scene->job);
	fixture_advance(&scene->fixture, NS_PER_MS);
	check_int(due_count, 1);
	check_true(tw_retry_owns(dues[0].kind));
}

Test(retry_stop, task_in_an_executor_makes_all_its_attempts)
{
	struct scene scene;

	open_dispatched(&scene, TW_RETRY_AGAIN);
	for (int i = 0; i < 4; i++) {
		check_int(scene.job.attempts, i);
		check_int(tw_due_run(&dues[i]), 0);
		fixture_advance(&scene.fixture, NS_PER_S + NS_PER_MS);
	}
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 4);
	scene_end(&scene);
}

/*
 * The task is cancelled while its timer is in the executor's queue. The task's place is free at
 * once. Its memory is free only when the executor has run the timer.
 */
Test(retry_stop, cancelled_task_in_an_executor_frees_its_place_at_once)
{
	struct job other;
	struct scene scene;

	open_dispatched(&scene, TW_RETRY_DONE);
	check_int(tw_retry_cancel(scene.handle), TW_RETRY_CANCEL_DONE);
	check_end(&scene.job, TW_RETRY_END_CANCELLED, 0);
	check_int(tw_retry_pending(scene.queue), 0);
	check_int(tw_retry_destroy(scene.queue), -EBUSY);
	job_init(&other, scene.fixture.engine, TW_RETRY_DONE);
	must_submit(scene.queue, 1, &kind, &other);
	fixture_advance(&scene.fixture, NS_PER_MS);
	check_int(due_count, 2);
	check_int(tw_due_run(&dues[0]), 0);
	check_int(scene.job.attempts, 0);
	check_int(other.attempts, 0);
	check_int(tw_due_run(&dues[1]), 0);
	check_end(&other, TW_RETRY_END_DONE, 1);
	check_int(tw_retry_destroy(scene.queue), 0);
	scene.queue = queue_open(&scene.fixture, 1, TW_RETRY_REJECT);
	scene_end(&scene);
}

/*
 * The task is cancelled while its timer is offered to an executor, which rejects the timer. By the
 * engine's policy, the timer then runs on the worker, or is offered again.
 */
static struct tw_retry_handle offered;
static atomic_int offers, offered_code;

static size_t cancel_and_reject(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	if (atomic_fetch_add(&offers, 1) == 0)
		atomic_store(&offered_code, tw_retry_cancel(offered));
	return 0;
}

Test(retry_stop, task_cancelled_during_a_rejection_ends_once)
{
	static const uint32_t rejections[] = {TW_REJECTION_RUN, TW_REJECTION_REQUEUE};

	for (int i = 0; i < 2; i++) {
		struct tw_options options = fixture_options();
		struct scene scene;

		options.dispatch = cancel_and_reject;
		options.rejection = rejections[i];
		atomic_store(&offers, 0);
		fixture_open(&scene.fixture, &options);
		scene.queue = queue_open(&scene.fixture, 1, TW_RETRY_REJECT);
		job_init(&scene.job, scene.fixture.engine, TW_RETRY_DONE);
		offered = must_submit(scene.queue, 1, &kind, &scene.job);
		fixture_advance(&scene.fixture, NS_PER_MS);
		check_int(offered_code, TW_RETRY_CANCEL_DONE);
		check_end(&scene.job, TW_RETRY_END_CANCELLED, 0);
		check_int(tw_retry_destroy(scene.queue), i == 0 ? 0 : -EBUSY);
		/* With the policy to requeue, the timer is rejected again and again until stop
		 * hands it back. */
		fixture_advance(&scene.fixture, 5 * NS_PER_MS);
		check_int(scene.job.ended, 1);
		fixture_stop(&scene.fixture);
		if (i == 1)
			check_int(tw_retry_destroy(scene.queue), 0);
		check_end(&scene.job, TW_RETRY_END_CANCELLED, 0);
		fixture_close(&scene.fixture);
	}
}

/*
 * During an attempt stop hands back the timer for the next wait. Stop begins when the attempt has
 * begun.
 */
static atomic_bool attempt_inside;

static void *stop_main(void *arg)
{
	struct fixture *fixture = arg;

	while (!atomic_load(&attempt_inside))
		sleep_ns(NS_PER_MS / 10);
	(void)tw_engine_stop(fixture->engine, NULL, NULL, TW_NEVER);
	return NULL;
}

static int on_unexpired_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct job *job = arg;

	check_int(tw_engine_pending(job->engine), 1);
	atomic_store(&attempt_inside, true);
	while (tw_engine_pending(job->engine) > 0)
		sleep_ns(NS_PER_MS / 10);
	/*
	 * The engine's count changes before the retry layer is notified of the hand-back. When the
	 * worker sleeps again, it has notified the layer.
	 */
	check_true(asleep_await(&worker));
	check_int(atomic_load(&job->ended), 0);
	return on_attempt(self, arg, attempt);
}

Test(retry_stop, stopped_in_an_executor)
{
	static const struct tw_retry_kind waiting =
		TW_RETRY_KIND(on_unexpired_attempt, on_ended, &schedule, 0);
	static const int ends[] = {
		[TW_RETRY_DONE] = TW_RETRY_END_DONE,
		[TW_RETRY_AGAIN] = TW_RETRY_END_STOPPED,
		[TW_RETRY_GIVE_UP] = TW_RETRY_END_GIVEN_UP,
		[TW_RETRY_PENDING] = TW_RETRY_END_STOPPED,
	};

	for (int result = TW_RETRY_DONE; result <= TW_RETRY_PENDING; result++) {
		struct scene scene;
		pthread_t thread;

		open_dispatched(&scene, TW_RETRY_DONE);
		check_int(tw_due_run(&dues[0]), 0);
		job_init(&scene.job, scene.fixture.engine, result);
		must_submit(scene.queue, 1, &waiting, &scene.job);
		fixture_advance(&scene.fixture, NS_PER_MS);
		check_int(due_count, 2);
		atomic_store(&attempt_inside, false);
		check_int(pthread_create(&thread, NULL, stop_main, &scene.fixture), 0);
		check_int(tw_due_run(&dues[1]), 0);
		check_end(&scene.job, ends[result], 1);
		check_int(pthread_join(thread, NULL), 0);
		scene_end(&scene);
	}
}

/*
 * Ends its thread in an attempt. The task must end as given up. The engine then fails, as after any
 * callback that ends the worker.
 */
static int on_exiting_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)on_attempt(self, arg, attempt);
	pthread_exit(NULL);
}

static void on_exiting_end(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	on_ended(arg, end, attempts);
	pthread_exit(NULL);
}

static void exit_check(const struct tw_retry_kind *exiting, int end)
{
	struct job other;
	struct scene scene;

	scene_run(&scene, TW_RETRY_DONE);
	job_init(&other, scene.fixture.engine, TW_RETRY_DONE);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_DONE);
	must_submit(scene.queue, NS_PER_S, &kind, &other);
	must_submit(scene.queue, 1, exiting, &scene.job);
	check_int(tw_clock_set(scene.fixture.clock, 10 * NS_PER_MS), 0);
	check_true(wait_until_at_least(&scene.job.ended, 1));
	scene_end(&scene);
	check_end(&scene.job, end, 1);
	check_end(&other, TW_RETRY_END_STOPPED, 0);
}

Test(retry_stop, attempt_ends_its_thread)
{
	static const struct tw_retry_kind exiting =
		TW_RETRY_KIND(on_exiting_attempt, on_ended, &schedule, 0);

	exit_check(&exiting, TW_RETRY_END_GIVEN_UP);
}

Test(retry_stop, hook_ends_its_thread)
{
	static const struct tw_retry_kind exiting =
		TW_RETRY_KIND(on_attempt, on_exiting_end, &schedule, 0);

	exit_check(&exiting, TW_RETRY_END_DONE);
}

/* A child is forked inside an attempt, and the attempt returns in the child, too. The task
 * belongs to the parent. */
static pid_t forked;

static int on_forking_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	fflush(NULL);
	forked = quiet_fork();
	return on_attempt(self, arg, attempt);
}

Test(retry_stop, forked_inside_an_attempt)
{
	static const struct tw_retry_kind forking =
		TW_RETRY_KIND(on_forking_attempt, on_ended, &schedule, 1);

	for (int result = TW_RETRY_DONE; result <= TW_RETRY_PENDING; result++) {
		struct tw_options options = fixture_options();
		struct scene scene;

		options.flags = TW_ENGINE_LOOP;
		fixture_open(&scene.fixture, &options);
		scene.queue = queue_open(&scene.fixture, 1, TW_RETRY_REJECT);
		job_init(&scene.job, scene.fixture.engine, result);
		must_submit(scene.queue, 1, &forking, &scene.job);
		check_int(tw_clock_set(scene.fixture.clock, NS_PER_MS), 0);
		(void)tw_engine_poll(scene.fixture.engine, 0);
		if (forked == 0) {
			child_need(scene.job.attempts, 1);
			child_need(scene.job.ended, 0);
			child_need(tw_retry_pending(scene.queue), -ECHILD);
			child_end(0);
		}
		child_await(forked);
		check_int(scene.job.ended, result != TW_RETRY_PENDING);
		scene_end(&scene);
	}
}
