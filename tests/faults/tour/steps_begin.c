/* SPDX-License-Identifier: MIT */
/* The tour's first steps: the process, engines, and their first timeouts. */
#include "tour_inner.h"

#include <errno.h>
#include <string.h>

/*
 * The thread hook of the engine tour.moved: creates a thread. Injected faults can make this fail,
 * too.
 */
static int hook_thread_make(void *context, void *(*body)(void *), void *arg)
{
	pthread_attr_t attributes;
	int error;

	(void)context;
	RACE_CHECK(tour.hook_threads < THREADS);
	(void)pthread_attr_init(&attributes);
	if (tour.plan->stack_bytes != 0)
		(void)pthread_attr_setstacksize(&attributes, tour.plan->stack_bytes);
	error = pthread_create(&tour.hook_thread[tour.hook_threads], &attributes, body, arg);
	(void)pthread_attr_destroy(&attributes);
	tour.hook_threads += error == 0;
	return error;
}

static void on_log(void *context, enum tw_log_level level, const char *text)
{
	(void)context;
	(void)level;
	RACE_CHECK(text[0] != '\0');
}

static void names_tour(void)
{
	tour_exactly(CALL_CANCEL_OUTCOME_NAME, strcmp(tw_cancel_outcome_name(0), "done"), 0);
	tour_exactly(CALL_RESCHEDULE_OUTCOME_NAME, strcmp(tw_reschedule_outcome_name(0), "done"),
		     0);
	tour_exactly(CALL_END_NAME, strcmp(tw_end_name(0), "expired"), 0);
	tour_exactly(CALL_STATE_NAME, strcmp(tw_state_name(0), "init"), 0);
	tour_exactly(CALL_ENGINE_STATE_NAME, strcmp(tw_engine_state_name(0), "new"), 0);
	tour_exactly(CALL_KEYED_OUTCOME_NAME, strcmp(tw_keyed_outcome_name(0), "done"), 0);
	tour_exactly(CALL_KEYED_END_NAME, strcmp(tw_keyed_end_name(0), "fired"), 0);
	tour_exactly(CALL_RETRY_SUBMIT_OUTCOME_NAME,
		     strcmp(tw_retry_submit_outcome_name(0), "accepted"), 0);
	tour_exactly(CALL_RETRY_CANCEL_OUTCOME_NAME,
		     strcmp(tw_retry_cancel_outcome_name(0), "done"), 0);
	tour_exactly(CALL_RETRY_END_NAME, strcmp(tw_retry_end_name(0), "done"), 0);
}

void step_process(void)
{
	static const struct tw_log log = {on_log, NULL};

	tour_exactly(CALL_VERSION, tw_version(), TW_VERSION);
	tour_exactly(CALL_VERSION_STRING, strcmp(tw_version_string(), "") > 0, true);
	tour_exactly(CALL_STRERROR, strcmp(tw_strerror(-ENOMEM), "unknown error") != 0, true);
	names_tour();
	tour_exactly(CALL_LOG_SET, tw_log_set(&log), 0);
	tour_exactly(CALL_ALLOCATOR_SET, tw_memory_allocator_set(tour.plan->allocator), 0);
	tour_exactly(CALL_CAP_SET, tw_memory_cap_set(0), 0);
	tour_exactly(CALL_SLAB_BYTES, tw_memory_slab_bytes() % (2 << 20), 0);
}

static void clock_make(void)
{
	if (tour_code(CALL_CLOCK_CREATE, 0, tw_clock_create_virtual(0, &tour.clock)) == 0)
		return;
	tour_relent();
	tour_exactly(CALL_CLOCK_CREATE, tw_clock_create_virtual(0, &tour.clock), 0);
}

/* Creates, reads and frees a clock. No fault may have a lasting effect on the clock. */
static void system_clock_tour(enum tw_clock_type type)
{
	struct tw_clock *clock = NULL;

	if (tour_code(CALL_CLOCK_CREATE_SYSTEM, 0, tw_clock_create(type, &clock)) != 0) {
		tour_relent();
		tour_exactly(CALL_CLOCK_CREATE_SYSTEM, tw_clock_create(type, &clock), 0);
	}
	tour_exactly(CALL_CLOCK_NOW, tw_clock_now(clock) >= 0, true);
	tour_exactly(CALL_CLOCK_TYPE, tw_clock_type(clock) <= TW_CLOCK_TSC, true);
	tour_exactly(CALL_CLOCK_LAG, tw_clock_lag(clock) >= 0, true);
	tour_exactly(CALL_CLOCK_DESTROY, tw_clock_destroy(clock), 0);
}

static void engine_make(const struct tw_options *options, struct tw_engine **ret_engine)
{
	if (tour_code(CALL_CREATE, 0, tw_engine_create(options, ret_engine)) == 0)
		return;
	RACE_CHECK(*ret_engine == NULL);
	tour_relent();
	tour_exactly(CALL_CREATE, tw_engine_create(options, ret_engine), 0);
}

/* Checks that the fork generation is 0, because this process is not a forked child. */
static void step_fork(void)
{
	tour_exactly(CALL_FORK_GENERATION, tw_fork_generation(), 0);
	tour_exactly(CALL_REINIT, tw_fork_reinit(NULL, TW_REINIT_KEEP), 0);
	tour_exactly(CALL_REINIT, tw_fork_reinit(tour.real, TW_REINIT_KEEP), -EBUSY);
	tour_exactly(CALL_REINIT, tw_fork_reinit(tour.real, UINT64_MAX), -EINVAL);
}

void step_create(void)
{
	struct tw_options options;
	struct tw_engine *third = NULL;

	clock_make();
	for (int type = TW_CLOCK_MONOTONIC; type <= TW_CLOCK_TSC; type++)
		system_clock_tour((enum tw_clock_type)type);
	tour_exactly(CALL_OPTIONS_INIT, tw_options_init(&options, sizeof options), 0);
	options.check = TW_CHECK_CHEAP;
	engine_make(&options, &tour.real);
	options.clock = tour.clock;
	options.thread = hook_thread_make;
	options.dispatch = tour_dispatch;
	options.pending_limit = MOVED_LIMIT;
	options.slow_ns = MS;
	engine_make(&options, &tour.moved);
	RACE_CHECK(tour_code(CALL_CREATE, CODE_EBUSY, tw_engine_create(&options, &third)) < 0);
	RACE_CHECK(third == NULL);
	if (tour.plan->publish != NULL)
		tour.plan->publish(tour.real, tour.moved, tour.clock);
	step_fork();
}

void step_prepare(void)
{
	(void)tour_code(CALL_ATTACH, 0, tw_thread_attach());
	(void)tour_code(CALL_RESERVE, 0, tw_memory_reserve(1000));
	(void)tour_code(CALL_START, 0, tw_engine_start(tour.moved));
}

void step_schedule(void)
{
	int64_t number;

	for (number = 0; number < FAR; number++)
		(void)tour_offer(tour.real, number % 20 == 0 ? TW_NEVER : (1000 + 20 * number) * MS,
				 0);
	for (number = 0; number < MOVED; number++)
		(void)tour_offer(tour.moved, number % 100 * MS, CODE_EAGAIN);
	for (number = 0; number < SOON; number++)
		(void)tour_offer(tour.real, number % SOON_MS * MS, 0);
}

void step_schedule_at(void)
{
	const struct tw_kind *kind;
	int64_t number;

	for (number = 0; number < SOON / 4; number++) {
		struct entry *entry = entry_new(tour.real, &kind);
		int64_t now_ns = tour_code(CALL_NOW, 0, tw_engine_now(tour.real));

		entry->deadline_ns = entry->due_by_ns = now_ns + SOON_MS * MS;
		if (tour_code(CALL_SCHEDULE_AT, 0,
			      tw_schedule_at(tour.real, entry->deadline_ns, kind, entry,
					     &entry->handle)) == 0)
			atomic_store(&entry->accepted, true);
	}
	tour_exactly(CALL_SCHEDULE_AT, tw_schedule_at(tour.real, INT64_MIN, kind, NULL, NULL),
		     -ERANGE);
}

void step_limit(void)
{
	int64_t number;
	int64_t pending;

	for (number = 0; number < 2 * (MOVED_LIMIT - MOVED); number++)
		(void)tour_offer(tour.moved, 5000 * MS, CODE_EAGAIN);
	pending = tour_code(CALL_PENDING, 0, tw_engine_pending(tour.moved));
	RACE_CHECK(pending >= 0 && pending <= MOVED_LIMIT);
}
