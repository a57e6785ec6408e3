/* SPDX-License-Identifier: MIT */
/*
 * Places of a queue: their count must be exact, and a task must keep its place between attempts.
 * The tests try each policy for a full queue. A dropped task must get its hook once.
 *
 * Seen to fail with these defects: a task gives its place back between attempts; a dropped task
 * gives back the place that the new task has taken; the newest task is dropped instead of the
 * oldest; chunk_search() raises the lower bound on ages too far; a task is dropped inside an
 * attempt.
 */
#include "retry_scene.h"

#include "random.h"

#include <stdlib.h>

static const int64_t second[] = {NS_PER_S};
static struct tw_retry_schedule schedule = TW_RETRY_TABLE(second);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 0);

enum { JOBS = 2000 };
static struct job jobs[JOBS];
static struct tw_retry_handle handles[JOBS];

static void jobs_init(struct fixture *fixture, int count, int result)
{
	for (int i = 0; i < count; i++)
		job_init(&jobs[i], fixture->engine, result);
}

static void jobs_submit(struct tw_retry *queue, int from, int to, int64_t delay_ns)
{
	for (int i = from; i < to; i++)
		handles[i] = must_submit(queue, delay_ns, &kind, &jobs[i]);
}

Test(retry_pending, full_queue_rejects_until_a_place_is_free)
{
	struct tw_retry_handle untouched = {.task = &schedule};
	struct fixture fixture;
	struct tw_retry *queue;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 3, TW_RETRY_REJECT);
	jobs_init(&fixture, 4, TW_RETRY_DONE);
	jobs_submit(queue, 0, 3, NS_PER_S);
	check_int(tw_retry_pending(queue), 3);
	check_int(tw_retry_submit(queue, 0, &kind, &jobs[3], &untouched), -EAGAIN);
	check_true(untouched.task == &schedule);
	check_int(jobs[3].ended, 0);
	check_int(tw_retry_pending(queue), 3);
	check_int(tw_retry_cancel(handles[1]), TW_RETRY_CANCEL_DONE);
	check_int(tw_retry_submit(queue, 0, &kind, &jobs[3], NULL), 0);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(tw_retry_pending(queue), 0);
	scene_close(&fixture, queue);
}

/*
 * In the next test, a task must keep its place from submit to end: while it waits, runs, is
 * pending, and between attempts.
 */
static struct tw_retry *full_queue;
static atomic_int inner_code;

static int on_full_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	atomic_store(&inner_code, tw_retry_submit(full_queue, 0, &kind, &jobs[1], NULL));
	return on_attempt(self, arg, attempt);
}

Test(retry_pending, place_is_kept)
{
	static const struct tw_retry_kind full_kind =
		TW_RETRY_KIND(on_full_attempt, on_ended, &schedule, 0);
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	full_queue = queue_open(&fixture, 1, TW_RETRY_REJECT);
	jobs_init(&fixture, 2, TW_RETRY_PENDING);
	must_submit(full_queue, 1, &full_kind, &jobs[0]);
	check_int(tw_retry_submit(full_queue, 0, &kind, &jobs[1], NULL), -EAGAIN);
	advance_to_attempt(&fixture, &jobs[0], 0);
	check_int(inner_code, -EAGAIN);
	check_int(tw_retry_submit(full_queue, 0, &kind, &jobs[1], NULL), -EAGAIN);
	check_int(tw_retry_complete(jobs[0].self, TW_RETRY_AGAIN), 0);
	check_int(tw_retry_pending(full_queue), 1);
	check_int(tw_retry_submit(full_queue, 0, &kind, &jobs[1], NULL), -EAGAIN);
	advance_to_attempt(&fixture, &jobs[0], NS_PER_S);
	check_int(tw_retry_complete(jobs[0].self, TW_RETRY_DONE), 0);
	check_int(tw_retry_submit(full_queue, 0, &kind, &jobs[1], NULL), 0);
	check_int(jobs[1].ended, 0);
	scene_close(&fixture, full_queue);
}

Test(retry_pending, full_queue_drops_the_newest)
{
	struct tw_retry_handle handle = {.task = &schedule};
	struct fixture fixture;
	struct tw_retry *queue;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 2, TW_RETRY_DROP_NEWEST);
	jobs_init(&fixture, 4, TW_RETRY_DONE);
	jobs_submit(queue, 0, 2, NS_PER_S);
	check_int(tw_retry_submit(queue, 0, &kind, &jobs[2], &handle), TW_RETRY_SUBMIT_DROPPED);
	check_true(handle.task == NULL && handle.generation == 0);
	check_end(&jobs[2], TW_RETRY_END_DROPPED, 0);
	check_int(tw_retry_submit(queue, 0, &kind, &jobs[3], NULL), TW_RETRY_SUBMIT_DROPPED);
	check_end(&jobs[3], TW_RETRY_END_DROPPED, 0);
	check_int(tw_retry_pending(queue), 2);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_end(&jobs[0], TW_RETRY_END_DONE, 1);
	check_end(&jobs[1], TW_RETRY_END_DONE, 1);
	/*
	 * The queue is full and the engine has stopped. Submit must report the stop and drop
	 * nothing.
	 */
	jobs_init(&fixture, 3, TW_RETRY_DONE);
	jobs_submit(queue, 0, 2, NS_PER_S);
	fixture_stop(&fixture);
	check_int(tw_retry_submit(queue, 0, &kind, &jobs[2], NULL), -ESHUTDOWN);
	check_int(jobs[2].ended, 0);
	scene_close(&fixture, queue);
}

Test(retry_pending, full_queue_drops_the_oldest)
{
	struct fixture fixture;
	struct tw_retry *queue;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 100, TW_RETRY_DROP_OLDEST);
	jobs_init(&fixture, 1000, TW_RETRY_DONE);
	jobs_submit(queue, 0, 100, NS_PER_S);
	for (int i = 100; i < 1000; i++) {
		check_int(jobs[i - 100].ended, 0);
		jobs_submit(queue, i, i + 1, NS_PER_S);
		check_end(&jobs[i - 100], TW_RETRY_END_DROPPED, 0);
		check_int(jobs[i - 99].ended, 0);
		check_int(tw_retry_pending(queue), 100);
	}
	check_int(tw_engine_pending(fixture.engine), 100);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (int i = 900; i < 1000; i++)
		check_end(&jobs[i], TW_RETRY_END_DONE, 1);
	scene_close(&fixture, queue);
}

/* The oldest task is the one that was submitted first. If it is pending, it is dropped, too. */
Test(retry_pending, drop_oldest_of_any_state)
{
	struct fixture fixture;
	struct tw_retry *queue;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 3, TW_RETRY_DROP_OLDEST);
	jobs_init(&fixture, 7, TW_RETRY_AGAIN);
	jobs[0].result[0] = TW_RETRY_PENDING;
	jobs_submit(queue, 0, 3, 1);
	fixture_advance(&fixture, NS_PER_MS);
	jobs_submit(queue, 3, 4, 1);
	check_end(&jobs[0], TW_RETRY_END_DROPPED, 1);
	check_int(tw_retry_complete(jobs[0].self, TW_RETRY_DONE), -ESTALE);
	jobs_submit(queue, 4, 5, 1);
	check_end(&jobs[1], TW_RETRY_END_DROPPED, 1);
	check_int(jobs[2].ended, 0);
	check_int(tw_retry_cancel(handles[2]), TW_RETRY_CANCEL_DONE);
	jobs_submit(queue, 5, 6, 1);
	check_int(jobs[3].ended, 0);
	jobs_submit(queue, 6, 7, 1);
	check_end(&jobs[3], TW_RETRY_END_DROPPED, 0);
	scene_close(&fixture, queue);
}

/*
 * Submits inside an attempt. If all tasks are inside attempts, none can be dropped, so one more
 * task must be rejected.
 */
static int on_crowded_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	atomic_store(&inner_code, tw_retry_submit(full_queue, 0, &kind, &jobs[1], NULL));
	return on_attempt(self, arg, attempt);
}

Test(retry_pending, drop_oldest_spares_a_task_in_its_attempt)
{
	static const struct tw_retry_kind crowded_kind =
		TW_RETRY_KIND(on_crowded_attempt, on_ended, &schedule, 0);
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	full_queue = queue_open(&fixture, 1, TW_RETRY_DROP_OLDEST);
	jobs_init(&fixture, 2, TW_RETRY_AGAIN);
	must_submit(full_queue, 1, &crowded_kind, &jobs[0]);
	advance_to_attempt(&fixture, &jobs[0], 0);
	check_int(inner_code, -EAGAIN);
	check_int(jobs[1].ended, 0);
	check_int(jobs[0].ended, 0);
	check_int(tw_engine_pending(fixture.engine), 1);
	jobs_submit(full_queue, 1, 2, 0);
	check_end(&jobs[0], TW_RETRY_END_DROPPED, 1);
	scene_close(&fixture, full_queue);
}

/*
 * In the next test, the hook of a dropped task submits the next task. That submit drops another
 * task, whose hook runs inside the first hook, and so on. This recursion must end.
 */
static atomic_int hooks_inside, hooks_deepest;
static int submit_next, submit_last;

static void on_dropped_submit(void *arg, enum tw_retry_end end, uint64_t attempts);

static const struct tw_retry_kind drop_chain_kind =
	TW_RETRY_KIND(on_attempt, on_dropped_submit, &schedule, 0);

static void on_dropped_submit(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	int inside = atomic_fetch_add(&hooks_inside, 1) + 1;

	if (inside > hooks_deepest)
		atomic_store(&hooks_deepest, inside);
	if (end == TW_RETRY_END_DROPPED && submit_next < submit_last) {
		struct job *job = &jobs[submit_next++];

		atomic_store(&inner_code,
			     tw_retry_submit(full_queue, NS_PER_S, &drop_chain_kind, job, NULL));
	}
	on_ended(arg, end, attempts);
	atomic_fetch_sub(&hooks_inside, 1);
}

Test(retry_pending, hooks_may_drop_one_after_the_other)
{
	enum { TASKS = 20 };
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	full_queue = queue_open(&fixture, 2, TW_RETRY_DROP_OLDEST);
	jobs_init(&fixture, TASKS, TW_RETRY_DONE);
	submit_next = 3;
	submit_last = TASKS;
	for (int i = 0; i < 3; i++)
		must_submit(full_queue, NS_PER_S, &drop_chain_kind, &jobs[i]);
	/* Each of these tasks was submitted inside the hook of an older one. */
	check_int(submit_next, TASKS);
	check_int(inner_code, TW_RETRY_SUBMIT_ACCEPTED);
	check_int(hooks_deepest, TASKS - 2);
	for (int i = 0; i < TASKS - 2; i++)
		check_end(&jobs[i], TW_RETRY_END_DROPPED, 0);
	check_int(tw_retry_pending(full_queue), 2);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (int i = TASKS - 2; i < TASKS; i++)
		check_end(&jobs[i], TW_RETRY_END_DONE, 1);
	scene_close(&fixture, full_queue);
}

/*
 * The engine is as full as the queue. One more task must be rejected, and no task may be dropped
 * for it.
 */
Test(retry_pending, full_engine_rejects_and_drops_none)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_retry *queue;

	options.pending_limit = 3;
	fixture_open(&fixture, &options);
	queue = queue_open(&fixture, 3, TW_RETRY_DROP_OLDEST);
	jobs_init(&fixture, 4, TW_RETRY_DONE);
	jobs_submit(queue, 0, 3, NS_PER_S);
	check_int(tw_retry_submit(queue, NS_PER_S, &kind, &jobs[3], NULL), -EAGAIN);
	check_int(tw_retry_pending(queue), 3);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (int i = 0; i < 3; i++)
		check_end(&jobs[i], TW_RETRY_END_DONE, 1);
	check_int(jobs[3].ended, 0);
	scene_close(&fixture, queue);
}

/* After a stop, submit is rejected, so it must not drop a task. */
Test(retry_pending, drop_oldest_after_stop)
{
	struct fixture fixture;
	struct tw_retry *queue;

	fixture_open(&fixture, NULL);
	queue = queue_open(&fixture, 1, TW_RETRY_DROP_OLDEST);
	jobs_init(&fixture, 2, TW_RETRY_AGAIN);
	jobs_submit(queue, 0, 1, 1);
	fixture_stop(&fixture);
	check_end(&jobs[0], TW_RETRY_END_STOPPED, 0);
	check_int(tw_retry_submit(queue, 0, &kind, &jobs[1], NULL), -ESHUTDOWN);
	check_int(jobs[1].ended, 0);
	scene_close(&fixture, queue);
}

/* Returns the first task that has not ended. A drop must always choose that one. */
static int first_living(int from)
{
	while (jobs[from].ended != 0)
		from++;
	return from;
}

static void drop_at_random(struct fixture *fixture, uint64_t seed)
{
	struct random random = {seed};
	struct tw_retry *queue;
	int first = 0, submitted = 0, dropped = 0;

	queue = queue_open(fixture, 300, TW_RETRY_DROP_OLDEST);
	jobs_init(fixture, JOBS, TW_RETRY_AGAIN);
	while (submitted < JOBS) {
		bool full = tw_retry_pending(queue) == 300;
		int living = submitted - first;

		/* Sometimes cancels any of the latest tasks, so some tasks have ended before the
		 * queue would drop them. The queue is full most of the time. */
		if (living > 250 && random_below(&random, 4) == 0) {
			(void)tw_retry_cancel(
				handles[first + (int)random_below(&random, (uint64_t)living)]);
			continue;
		}
		first = first_living(first);
		jobs_submit(queue, submitted, submitted + 1, NS_PER_S);
		submitted++;
		check_int(jobs[first].ended, full);
		dropped += full;
		if (full)
			check_int(jobs[first].end, TW_RETRY_END_DROPPED);
		first = first_living(first);
	}
	check_at_least(dropped, JOBS / 10);
	for (int i = 0; i < submitted; i++)
		(void)tw_retry_cancel(handles[i]);
	for (int i = 0; i < submitted; i++)
		check_int(jobs[i].ended, 1);
	check_int(tw_retry_destroy(queue), 0);
}

/* Each queue gets the memory of the previous one, and must count from the start again. */
Test(retry_pending, drop_oldest_at_random)
{
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	for (uint64_t seed = 3; seed < 6; seed++)
		drop_at_random(&fixture, seed);
	fixture_close(&fixture);
}
