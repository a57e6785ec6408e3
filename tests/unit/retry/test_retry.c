/* SPDX-License-Identifier: MIT */
/*
 * A task from submit to end: the results of its attempts, completions by other threads and at
 * unusual moments, and cancels. Each task must end once.
 *
 * Seen to fail with these defects: a completion is forgotten because it comes before the callback
 * returns; a completion by the handle of an older attempt is accepted; a cancel inside an attempt
 * has no effect.
 */
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

Test(retry, done_ends_the_task_after_one_attempt)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_DONE);
	check_end(&scene.job, TW_RETRY_END_DONE, 1);
	check_int(tw_retry_pending(scene.queue), 0);
	check_int(tw_engine_pending(scene.fixture.engine), 0);
	scene_end(&scene);
}

Test(retry, give_up_ends_the_task_after_one_attempt)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_GIVE_UP);
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 1);
	scene_end(&scene);
}

/* A number that is not a result must mean giving up. */
Test(retry, unknown_result_gives_up)
{
	static const int results[] = {-1, 4, 1000, INT32_MIN, INT32_MAX};

	for (size_t i = 0; i < sizeof results / sizeof *results; i++) {
		struct scene scene;

		scene_run(&scene, results[i]);
		check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 1);
		scene_end(&scene);
	}
}

Test(retry, task_without_a_hook_ends_silently)
{
	static const struct tw_retry_kind silent = TW_RETRY_KIND(on_attempt, NULL, &schedule, 0);
	struct scene scene;

	scene_run(&scene, TW_RETRY_DONE);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_DONE);
	must_submit(scene.queue, 1, &silent, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(scene.job.ended, 0);
	scene_close(&scene.fixture, scene.queue);
}

/* The delay must count from the completion, and the task must keep its place in the queue. */
Test(retry, delay_counts_from_a_later_completion)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	fixture_advance(&scene.fixture, 100 * NS_PER_S);
	check_int(scene.job.attempts, 1);
	check_int(tw_retry_pending(scene.queue), 1);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_AGAIN), 0);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), 0);
	check_end(&scene.job, TW_RETRY_END_DONE, 2);
	check_int(tw_retry_pending(scene.queue), 0);
	scene_end(&scene);
}

Test(retry, completion_with_give_up_ends_the_task)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_GIVE_UP), 0);
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 1);
	scene_end(&scene);
}

/* Completions must end the schedule in the same way as results. */
Test(retry, completed_until_the_schedule_ends)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	for (int i = 0; i < 3; i++) {
		check_int(tw_retry_complete(scene.job.self, TW_RETRY_AGAIN), 0);
		check_int(scene.job.ended, 0);
		advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	}
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_AGAIN), 0);
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 4);
	scene_end(&scene);
}

/*
 * An attempt can be completed once, by its own handle, while it is pending. Any other completion
 * must be rejected.
 */
Test(retry, late_completions_are_rejected)
{
	struct tw_retry_handle first;
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	first = scene.job.self;
	check_int(tw_retry_complete(first, TW_RETRY_AGAIN), 0);
	check_int(tw_retry_complete(first, TW_RETRY_AGAIN), -ESTALE);
	check_int(tw_retry_complete(first, TW_RETRY_DONE), -ESTALE);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_int(tw_retry_complete(first, TW_RETRY_DONE), -ESTALE);
	check_int(scene.job.ended, 0);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), 0);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), -ESTALE);
	check_end(&scene.job, TW_RETRY_END_DONE, 2);
	/* Another task gets the same memory. */
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_PENDING);
	scene.handle = must_submit(scene.queue, 1, &kind, &scene.job);
	check_true(scene.handle.task == first.task);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(tw_retry_complete(first, TW_RETRY_DONE), -ESTALE);
	check_int(tw_retry_cancel(first), TW_RETRY_CANCEL_ENDED);
	check_int(scene.job.ended, 0);
	scene_end(&scene);
	check_end(&scene.job, TW_RETRY_END_STOPPED, 1);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), -ESTALE);
	check_int(tw_retry_cancel(scene.handle), TW_RETRY_CANCEL_ENDED);
}

/* Completes the task before the attempt returns: in the attempt itself, or in another thread. */
static atomic_int early_result;
static atomic_int early_code;
static atomic_int early_again_code;

static void *complete_early(void *arg)
{
	const struct tw_retry_handle *handle = arg;

	atomic_store(&early_code, tw_retry_complete(*handle, (enum tw_retry_result)early_result));
	atomic_store(&early_again_code, tw_retry_complete(*handle, TW_RETRY_DONE));
	return NULL;
}

static int on_early_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	int result = on_attempt(self, arg, attempt);
	pthread_t thread;

	if (attempt % 2 == 1) {
		if (pthread_create(&thread, NULL, complete_early, &self) == 0)
			(void)pthread_join(thread, NULL);
	} else {
		(void)complete_early(&self);
	}
	return result;
}

static const struct tw_retry_kind early_kind =
	TW_RETRY_KIND(on_early_attempt, on_ended, &schedule, 0);

Test(retry, completed_before_the_return)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_DONE);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_PENDING);
	atomic_store(&early_result, TW_RETRY_AGAIN);
	must_submit(scene.queue, 1, &early_kind, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(early_code, 0);
	check_int(early_again_code, -ESTALE);
	check_int(scene.job.ended, 0);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	atomic_store(&early_result, TW_RETRY_DONE);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_end(&scene.job, TW_RETRY_END_DONE, 3);
	scene_end(&scene);
}

/* The attempt gives two results: a completion and a return value. The first one must count. */
Test(retry, first_result_of_an_attempt_counts)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_DONE);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_GIVE_UP);
	atomic_store(&early_result, TW_RETRY_DONE);
	must_submit(scene.queue, 1, &early_kind, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_end(&scene.job, TW_RETRY_END_DONE, 1);
	scene_end(&scene);
}

Test(retry, cancelled_task_makes_no_attempt)
{
	struct scene scene;

	scene_open(&scene, TW_RETRY_DONE);
	check_int(tw_retry_cancel(scene.handle), TW_RETRY_CANCEL_DONE);
	check_end(&scene.job, TW_RETRY_END_CANCELLED, 0);
	check_int(tw_retry_cancel(scene.handle), TW_RETRY_CANCEL_ENDED);
	check_int(tw_retry_pending(scene.queue), 0);
	check_int(tw_engine_pending(scene.fixture.engine), 0);
	fixture_advance(&scene.fixture, 10 * NS_PER_S);
	check_int(scene.job.attempts, 0);
	scene_end(&scene);
}

Test(retry, cancel_between_attempts_ends_the_task)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_AGAIN);
	check_int(tw_retry_cancel(scene.handle), TW_RETRY_CANCEL_DONE);
	check_end(&scene.job, TW_RETRY_END_CANCELLED, 1);
	fixture_advance(&scene.fixture, 10 * NS_PER_S);
	check_int(scene.job.attempts, 1);
	scene_end(&scene);
}

Test(retry, cancel_while_pending_ends_the_task)
{
	struct scene scene;

	scene_run(&scene, TW_RETRY_PENDING);
	check_int(tw_retry_cancel(scene.job.self), TW_RETRY_CANCEL_DONE);
	check_end(&scene.job, TW_RETRY_END_CANCELLED, 1);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_AGAIN), -ESTALE);
	scene_end(&scene);
}

/* The task is cancelled inside its attempt. A final result of the attempt decides the end. If
 * the task would have continued, it ends as cancelled. */
static atomic_int cancel_code;

static int on_cancelling_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	atomic_store(&cancel_code, tw_retry_cancel(self));
	return on_attempt(self, arg, attempt);
}

Test(retry, cancelled_inside_its_attempt)
{
	static const struct tw_retry_kind cancelling =
		TW_RETRY_KIND(on_cancelling_attempt, on_ended, &schedule, 0);
	static const struct tw_retry_kind cancelling_last =
		TW_RETRY_KIND(on_cancelling_attempt, on_ended, &schedule, 1);
	static const int ends[] = {
		[TW_RETRY_DONE] = TW_RETRY_END_DONE,
		[TW_RETRY_AGAIN] = TW_RETRY_END_CANCELLED,
		[TW_RETRY_GIVE_UP] = TW_RETRY_END_GIVEN_UP,
		[TW_RETRY_PENDING] = TW_RETRY_END_CANCELLED,
	};

	for (int result = TW_RETRY_DONE; result <= TW_RETRY_PENDING; result++) {
		struct scene scene;

		scene_run(&scene, TW_RETRY_DONE);
		job_init(&scene.job, scene.fixture.engine, result);
		/* Tasks of the kind `cancelling_last` would have no further attempt anyway. */
		must_submit(scene.queue, 1, result % 2 ? &cancelling_last : &cancelling,
			    &scene.job);
		advance_to_attempt(&scene.fixture, &scene.job, 0);
		check_int(cancel_code, TW_RETRY_CANCEL_RUNNING);
		check_end(&scene.job, ends[result], 1);
		check_int(tw_retry_complete(scene.job.self, TW_RETRY_DONE), -ESTALE);
		check_int(tw_retry_pending(scene.queue), 0);
		scene_end(&scene);
	}
}

/* Accepts or rejects attempts. If an attempt is rejected, the engine's policy drops the task. */
static size_t reject_some(void *context, const struct tw_due *due, size_t count)
{
	size_t accept = *(const atomic_int *)context > 0 ? count : 0;

	for (size_t i = 0; i < accept; i++)
		(void)tw_due_run(&due[i]);
	return accept;
}

static void ignore_drop(void *context, struct tw_handle self, const struct tw_kind *timer_kind,
			void *arg)
{
	(void)self;
	(void)arg;
	if (tw_retry_owns(timer_kind))
		atomic_fetch_add((atomic_int *)context, 1);
}

Test(retry, rejected_by_an_executor)
{
	for (int accepts = 0; accepts <= 1; accepts++) {
		struct tw_options options = fixture_options();
		atomic_int accepting = accepts, dropped = 0;
		struct scene scene;

		options.dispatch = reject_some;
		options.rejection = TW_REJECTION_DROP;
		options.on_drop = ignore_drop;
		options.dispatch_context = &accepting;
		options.drop_context = &dropped;
		fixture_open(&scene.fixture, &options);
		scene.queue = queue_open(&scene.fixture, 10, TW_RETRY_REJECT);
		job_init(&scene.job, scene.fixture.engine, TW_RETRY_AGAIN);
		must_submit(scene.queue, 1, &kind, &scene.job);
		fixture_advance(&scene.fixture, 2 * NS_PER_MS);
		check_int(scene.job.attempts, accepts);
		atomic_store(&accepting, 0);
		fixture_advance(&scene.fixture, 10 * NS_PER_S);
		check_int(dropped, 1);
		check_end(&scene.job, TW_RETRY_END_DROPPED, accepts);
		check_int(tw_retry_pending(scene.queue), 0);
		scene_end(&scene);
		check_int(scene.job.ended, 1);
	}
}

/*
 * In the next test, the late hook is called for the queue's timer, but the attempt must still be
 * made.
 */
static atomic_int late_hooks;

static void on_late(void *context, struct tw_handle self, const struct tw_kind *late_kind,
		    void *arg, int64_t late_by_ns)
{
	(void)context;
	(void)self;
	(void)arg;
	if (tw_retry_owns(late_kind) && late_by_ns > 0)
		atomic_fetch_add(&late_hooks, 1);
}

Test(retry, late_hook_does_not_replace_the_attempt)
{
	struct tw_options options = fixture_options();
	struct scene scene;

	options.late_ns = options.tick_ns;
	options.on_late = on_late;
	fixture_open(&scene.fixture, &options);
	scene.queue = queue_open(&scene.fixture, 10, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_AGAIN);
	must_submit(scene.queue, 1, &kind, &scene.job);
	fixture_advance(&scene.fixture, 10 * NS_PER_S);
	check_int(late_hooks, 1);
	check_int(scene.job.attempts, 1);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_int(late_hooks, 1);
	fixture_advance(&scene.fixture, 10 * NS_PER_S);
	fixture_advance(&scene.fixture, 10 * NS_PER_S);
	check_int(late_hooks, 3);
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 4);
	scene_end(&scene);
}

/* The engine is full, but must not reject a task that waits between attempts. */
Test(retry, full_engine_keeps_a_waiting_task)
{
	struct tw_options options = fixture_options();
	struct tw_handle fill;
	struct scene scene;

	options.pending_limit = 2;
	fixture_open(&scene.fixture, &options);
	scene.queue = queue_open(&scene.fixture, 10, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_AGAIN);
	scene.job.result[2] = TW_RETRY_PENDING;
	scene.job.result[1] = TW_RETRY_AGAIN;
	scene.job.scripted = 2;
	must_submit(scene.queue, 1, &kind, &scene.job);
	fill = must_schedule(scene.fixture.engine, TW_NEVER, &count_kind, NULL);
	check_int(tw_retry_submit(scene.queue, 0, &kind, &scene.job, NULL), -EAGAIN);
	check_int(tw_retry_pending(scene.queue), 1);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_int(tw_retry_complete(scene.job.self, TW_RETRY_AGAIN), 0);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 4);
	check_int(tw_cancel(fill), TW_CANCEL_DONE);
	scene_end(&scene);
}

/* The result of the call that was made inside an attempt or a hook. */
static atomic_int inner_code;

/* Schedules a timeout inside an attempt. The task must keep its place under the limit. */
static int on_scheduling_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct job *job = arg;

	atomic_store(&inner_code, tw_schedule(job->engine, TW_NEVER, &count_kind, NULL, NULL));
	return on_attempt(self, arg, attempt);
}

Test(retry, attempt_schedules_on_a_full_engine)
{
	static const struct tw_retry_kind scheduling =
		TW_RETRY_KIND(on_scheduling_attempt, on_ended, &schedule, 0);
	struct tw_options options = fixture_options();
	struct scene scene;

	options.pending_limit = 2;
	fixture_open(&scene.fixture, &options);
	scene.queue = queue_open(&scene.fixture, 10, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_AGAIN);
	must_submit(scene.queue, 1, &scheduling, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(inner_code, 0);
	/* From here on the engine is full. */
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	check_int(inner_code, -EAGAIN);
	check_int(tw_retry_pending(scene.queue), 1);
	advance_to_attempt(&scene.fixture, &scene.job, NS_PER_S);
	scene_end(&scene);
}

/*
 * Cancels its own task in the hook. Inside the hook, calls must not yet report the task as ended.
 */
static void on_cancelling_end(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct job *job = arg;

	atomic_store(&inner_code, tw_retry_cancel(job->self));
	on_ended(arg, end, attempts);
}

Test(retry, hook_cancels_its_own_task)
{
	static const struct tw_retry_kind cancelling =
		TW_RETRY_KIND(on_attempt, on_cancelling_end, &schedule, 0);
	struct tw_retry_handle handle;
	struct scene scene;

	fixture_open(&scene.fixture, NULL);
	scene.queue = queue_open(&scene.fixture, 1, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_DONE);
	handle = must_submit(scene.queue, 1, &cancelling, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(inner_code, TW_RETRY_CANCEL_RUNNING);
	check_end(&scene.job, TW_RETRY_END_DONE, 1);
	check_int(tw_retry_cancel(handle), TW_RETRY_CANCEL_ENDED);
	scene_end(&scene);
}

/* A hook that submits another task. The place of the ended task must be free already. */
static struct tw_retry *chain_queue;
static struct job chain_job;
static atomic_int chain_code;

static void on_chain_end(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	on_ended(arg, end, attempts);
	atomic_store(&chain_code, tw_retry_submit(chain_queue, 1, &kind, &chain_job, NULL));
}

Test(retry, hook_may_submit_into_the_place_of_its_task)
{
	static const struct tw_retry_kind chained =
		TW_RETRY_KIND(on_attempt, on_chain_end, &schedule, 0);
	struct scene scene;

	fixture_open(&scene.fixture, NULL);
	scene.queue = chain_queue = queue_open(&scene.fixture, 1, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_DONE);
	job_init(&chain_job, scene.fixture.engine, TW_RETRY_DONE);
	must_submit(scene.queue, 1, &chained, &scene.job);
	advance_to_attempt(&scene.fixture, &scene.job, 0);
	check_int(chain_code, 0);
	advance_to_attempt(&scene.fixture, &chain_job, 0);
	check_end(&chain_job, TW_RETRY_END_DONE, 1);
	scene_end(&scene);
}

/* In loop mode, everything is on one thread. */
Test(retry, task_in_a_loop_makes_all_its_attempts)
{
	struct tw_options options = fixture_options();
	struct scene scene;

	options.flags = TW_ENGINE_LOOP;
	fixture_open(&scene.fixture, &options);
	scene.queue = queue_open(&scene.fixture, 10, TW_RETRY_REJECT);
	job_init(&scene.job, scene.fixture.engine, TW_RETRY_AGAIN);
	must_submit(scene.queue, 1, &kind, &scene.job);
	check_int(tw_clock_set(scene.fixture.clock, NS_PER_MS), 0);
	check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
	for (int64_t i = 1; i <= 3; i++) {
		check_int(tw_clock_set(scene.fixture.clock, NS_PER_MS + i * NS_PER_S - 1), 0);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 0);
		check_int(tw_clock_set(scene.fixture.clock, NS_PER_MS + i * NS_PER_S), 0);
		check_int(tw_engine_poll(scene.fixture.engine, 0), 1);
	}
	check_end(&scene.job, TW_RETRY_END_GIVEN_UP, 4);
	scene_end(&scene);
}
