/* SPDX-License-Identifier: MIT */
/*
 * The tour's step for retries. It has an engine of its own, and checks this engine's counts itself.
 * Each accepted task must end once, whatever a fault rejects.
 */
#include "tour_inner.h"

#include <errno.h>

enum { TASKS = 100 };

struct task {
	struct tw_retry_handle self; /* the handle of an attempt that is pending */
	unsigned ended;
};

static struct task tasks[TASKS];

static int on_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	struct task *task = arg;

	RACE_CHECK(task->ended == 0 && attempt <= 2);
	task->self = self;
	return attempt == 1 ? TW_RETRY_PENDING : TW_RETRY_DONE;
}

static void on_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	struct task *task = arg;

	RACE_CHECK(end != TW_RETRY_END_GIVEN_UP && attempts <= 2);
	task->ended++;
}

static const struct tw_retry_schedule schedule = TW_RETRY_READY(TW_RETRY_FORM_PAYMENT);
static const struct tw_retry_kind kind = TW_RETRY_KIND(on_attempt, on_ended, &schedule, 0);

static unsigned tasks_submit(struct tw_retry *queue)
{
	unsigned accepted = 0;

	for (unsigned i = 0; i < TASKS; i++) {
		struct tw_retry_handle handle = {0};
		int64_t code;

		if (i % 2 == 0)
			code = tour_code(CALL_RETRY_SUBMIT, 0,
					 tw_retry_submit(queue, 0, &kind, &tasks[i], &handle));
		else
			code = tour_code(CALL_RETRY_SUBMIT_FAILED, 0,
					 tw_retry_submit_failed(queue, &kind, &tasks[i], &handle));
		accepted += code == 0;
		if (code == 0 && i % 5 == 0)
			tour_exactly(CALL_RETRY_CANCEL, tw_retry_cancel(handle),
				     TW_RETRY_CANCEL_DONE);
	}
	return accepted;
}

static void attempts_complete(void)
{
	for (unsigned i = 0; i < TASKS; i++) {
		if (tasks[i].self.task == NULL || tasks[i].ended != 0)
			continue;
		tour_exactly(
			CALL_RETRY_COMPLETE,
			tw_retry_complete(tasks[i].self, i % 4 ? TW_RETRY_AGAIN : TW_RETRY_DONE),
			0);
		tour_exactly(CALL_RETRY_COMPLETE, tw_retry_complete(tasks[i].self, TW_RETRY_DONE),
			     -ESTALE);
	}
}

static void queue_use(struct tw_engine *engine, struct tw_retry *queue)
{
	unsigned accepted, ended = 0;

	tour_exactly(CALL_RETRY_COMPLETE,
		     tw_retry_complete((struct tw_retry_handle){0}, TW_RETRY_DONE), -EINVAL);
	tour_exactly(CALL_RETRY_DELAY, tw_retry_delay(&schedule, 14), INT64_C(21600000000000));
	tour_exactly(CALL_RETRY_DELAY, tw_retry_delay(&schedule, 15), -ERANGE);
	tour_exactly(CALL_RETRY_OWNS, tw_retry_owns(NULL), 0);
	accepted = tasks_submit(queue);
	if (accepted > 0)
		tour_exactly(CALL_RETRY_DESTROY, tw_retry_destroy(queue), -EBUSY);
	tour_sleep_ns(2 * MS);
	(void)tour_code(CALL_POLL, 0, tw_engine_poll(engine, 0));
	attempts_complete();
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	tour_exactly(CALL_RETRY_PENDING, tw_retry_pending(queue), 0);
	for (unsigned i = 0; i < TASKS; i++) {
		RACE_CHECK(tasks[i].ended <= 1);
		ended += tasks[i].ended;
	}
	RACE_CHECK(ended == accepted);
}

void step_retries(void)
{
	struct tw_retry_options queue_options;
	struct tw_options options;
	struct tw_engine *engine = NULL;
	struct tw_retry *queue = NULL;

	for (unsigned i = 0; i < TASKS; i++)
		tasks[i] = (struct task){.ended = 0};
	tour_exactly(CALL_OPTIONS_INIT, tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	if (tour_code(CALL_CREATE, 0, tw_engine_create(&options, &engine)) != 0)
		return;
	tour_exactly(CALL_RETRY_OPTIONS_INIT,
		     tw_retry_options_init(&queue_options, sizeof queue_options), 0);
	queue_options.allocator = tour.plan->allocator;
	if (tour_code(CALL_RETRY_CREATE, 0, tw_retry_create(engine, &queue_options, &queue)) == 0) {
		queue_use(engine, queue);
		tour_exactly(CALL_RETRY_DESTROY, tw_retry_destroy(queue), 0);
	}
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(engine), 0);
}
