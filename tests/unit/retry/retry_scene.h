/* SPDX-License-Identifier: MIT */
/*
 * Tasks that follow a script and record what happens to them. Include once per test program.
 */
#ifndef TESTS_RETRY_SCENE_H
#define TESTS_RETRY_SCENE_H

#include "probe.h"

#include <errno.h>
#include <string.h>

enum { JOB_ATTEMPTS_NOTED = 32 };

struct job {
	struct tw_engine *engine;
	/*
	 * The result of attempt n, counted from 1. If n is more than `scripted`, it is `result[0]`.
	 */
	int result[JOB_ATTEMPTS_NOTED];
	int scripted;
	atomic_int attempts;
	int64_t ran_at_ns[JOB_ATTEMPTS_NOTED];
	/* The handle that the last attempt got. */
	struct tw_retry_handle self;
	/* Set by the end hook. */
	atomic_int ended;
	atomic_int end;
	atomic_int ended_attempts;
};

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct job *job = arg;
	int number = atomic_fetch_add(&job->attempts, 1) + 1;

	if (number < JOB_ATTEMPTS_NOTED)
		job->ran_at_ns[number] = tw_engine_now(job->engine);
	job->self = self;
	if (attempt != (uint64_t)number)
		return -1;
	return job->result[number <= job->scripted ? number : 0];
}

static void on_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct job *job = arg;

	atomic_store(&job->end, (int)end);
	atomic_store(&job->ended_attempts, (int)attempts);
	atomic_fetch_add(&job->ended, 1);
}

/* Makes a job whose attempts all return `result`. */
static inline void job_init(struct job *job, struct tw_engine *engine, int result)
{
	memset(job, 0, sizeof *job);
	job->engine = engine;
	job->result[0] = result;
	atomic_store(&job->end, -1);
}

static inline struct tw_retry *queue_open(struct fixture *fixture, uint32_t limit, uint32_t policy)
{
	struct tw_retry_options options;
	struct tw_retry *queue = NULL;

	check_int(tw_retry_options_init(&options, sizeof options), 0);
	options.pending_limit = limit;
	options.policy = policy;
	options.seed = 7;
	check_int(tw_retry_create(fixture->engine, &options, &queue), 0);
	return queue;
}

static inline struct tw_retry_handle must_submit(struct tw_retry *queue, int64_t delay_ns,
						 const struct tw_retry_kind *kind, struct job *job)
{
	struct tw_retry_handle handle = {0};

	check_int(tw_retry_submit(queue, delay_ns, kind, job, &handle), TW_RETRY_SUBMIT_ACCEPTED);
	check_true(handle.task != NULL);
	return handle;
}

/* Checks that the job has ended once, with the end `how`, after `count` attempts. */
#define check_end(job, how, count)                                                                 \
	do {                                                                                       \
		check_int((job)->ended, 1);                                                        \
		check_int((job)->end, (how));                                                      \
		check_int((job)->ended_attempts, (count));                                         \
		check_int((job)->attempts, (count));                                               \
	} while (0)

/*
 * Moves the clock to the next attempt. It must not begin before the delay has passed, and must run
 * at the tick after that.
 */
static inline void advance_to_attempt(struct fixture *fixture, struct job *job, int64_t delay_ns)
{
	int before = atomic_load(&job->attempts);

	fixture_advance(fixture, delay_ns);
	check_int(job->attempts, before);
	fixture_advance(fixture, fixture->tick_ns);
	check_int(job->attempts, before + 1);
}

/* Stops the engine, and destroys the queue and the engine. The queue must have no tasks left. */
static inline void scene_close(struct fixture *fixture, struct tw_retry *queue)
{
	fixture_stop(fixture);
	check_int(tw_retry_pending(queue), 0);
	check_int(tw_retry_destroy(queue), 0);
	fixture_close(fixture);
}

#endif
