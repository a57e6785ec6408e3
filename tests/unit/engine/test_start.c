/* SPDX-License-Identifier: MIT */
/*
 * A start either succeeds, or fails and leaves the engine usable. The tests use thread hooks that
 * fail, and schedules that are accepted during a start. B2 to B4 are defects of
 * docs/internals/testing.md.
 *
 * Seen to fail with these defects: a start waits until another thread's start has ended (b02); a
 * stop changes STARTING to STOPPED (b03); an engine stays STARTING when the hook has failed (b04).
 */
#include "probe.h"

#include <errno.h>
#include <pthread.h>

/* The context of a thread hook, which fails `failures` times and then makes a thread. */
struct maker {
	int failures;
	int error;
	int calls;
	/* The hook schedules this many timeouts while the engine is starting. */
	int meanwhile;
	struct tw_engine *engine;
	atomic_int runs;
	int accepted;
	int state_inside;
	pthread_t thread;
	bool made;
};

static int maker_hook(void *context, void *(*body)(void *arg), void *arg)
{
	struct maker *maker = context;
	int i;

	maker->calls++;
	maker->state_inside = tw_engine_state(maker->engine);
	for (i = 0; i < maker->meanwhile; i++)
		maker->accepted +=
			tw_schedule(maker->engine, 1, &count_kind, &maker->runs, NULL) == 0;
	maker->meanwhile = 0;
	if (maker->failures-- > 0)
		return maker->error;
	maker->made = true;
	return pthread_create(&maker->thread, NULL, body, arg);
}

static void maker_open(struct maker *maker, struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	options.thread = maker_hook;
	options.thread_context = maker;
	fixture_open(fixture, &options);
	maker->engine = fixture->engine;
}

static void maker_close(struct maker *maker, struct fixture *fixture)
{
	fixture_stop(fixture);
	if (maker->made)
		check_int(pthread_join(maker->thread, NULL), 0);
	fixture_close(fixture);
}

Test(start, hook_is_used_once)
{
	struct maker maker = {0};
	struct fixture fixture;
	struct probe probe;

	maker_open(&maker, &fixture);
	check_int(maker.calls, 0);
	probe_schedule(&fixture, &probe, 1);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(maker.calls, 1);
	check_int(maker.state_inside, TW_ENGINE_STARTING);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_RUNNING);
	check_int(probe.runs, 1);
	maker_close(&maker, &fixture);
}

Test(start, b04_failure_comes_back_and_the_engine_stays_usable)
{
	struct maker maker = {.failures = 3, .error = ENOSPC};
	struct fixture fixture;
	struct probe probe;
	struct tw_handle handle = {0};

	maker_open(&maker, &fixture);
	probe_init(&probe, fixture.engine);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	check_int(tw_schedule(fixture.engine, 1, &probe_final_kind, &probe, &handle), -ENOSPC);
	check_true(handle.node == NULL);
	check_int(tw_schedule(fixture.engine, 1, &probe_final_kind, &probe, &handle), -ENOSPC);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(probe.finalised, 0);
	probe_schedule(&fixture, &probe, 1);
	check_int(maker.calls, 4);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(probe.runs, 1);
	maker_close(&maker, &fixture);
	check_int(probe.finalised, 1);
}

/*
 * If the system lacks resources for a thread (EAGAIN), start returns -ENOMEM, because -EAGAIN means
 * the limit of pending timeouts.
 */
Test(start, negative_and_positive_hook_errors)
{
	struct maker maker = {.failures = 4, .error = -ENOSPC};
	struct fixture fixture;

	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	maker.error = ENOSPC;
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	maker.error = EAGAIN;
	check_int(tw_engine_start(fixture.engine), -ENOMEM);
	maker.error = -EAGAIN;
	check_int(tw_engine_start(fixture.engine), -ENOMEM);
	check_int(tw_engine_start(fixture.engine), 0);
	maker_close(&maker, &fixture);
}

/* After a failed start the engine can be destroyed, unless it has accepted a timeout meanwhile. */
Test(start, destroy_after_a_failed_start)
{
	struct maker maker = {.failures = 2, .error = ENOSPC};
	struct fixture fixture;

	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STALLED);
	check_int(tw_engine_destroy(fixture.engine), 0);
	check_int(tw_clock_destroy(fixture.clock), 0);
	maker.meanwhile = 1;
	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	maker_close(&maker, &fixture);
}

/* Ends the first thread that calls it. Makes no worker for later callers. */
static int exiting_hook(void *context, void *(*body)(void *arg), void *arg)
{
	bool *exited = context;

	(void)body;
	(void)arg;
	if (*exited)
		return EAGAIN;
	*exited = true;
	pthread_exit(NULL);
}

static void *starter_main(void *engine)
{
	(void)tw_engine_start(engine);
	return NULL;
}

/* If the hook ends the calling thread, the start must count as failed. */
Test(start, the_hook_ends_the_thread)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	pthread_t starter;
	bool exited = false;

	options.thread = exiting_hook;
	options.thread_context = &exited;
	fixture_open(&fixture, &options);
	check_int(pthread_create(&starter, NULL, starter_main, fixture.engine), 0);
	check_int(pthread_join(starter, NULL), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STALLED);
	fixture_close(&fixture);
}

Test(start, accepted_meanwhile_waits_for_the_next_start)
{
	struct maker maker = {.failures = 1, .error = ENOSPC, .meanwhile = 3};
	struct fixture fixture;

	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	check_int(maker.accepted, 3);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STALLED);
	check_int(tw_engine_pending(fixture.engine), 3);
	check_int(tw_engine_start(fixture.engine), 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(maker.runs, 3);
	maker_close(&maker, &fixture);
}

Test(start, accepted_meanwhile_waits_for_the_next_schedule)
{
	struct maker maker = {.failures = 1, .error = ENOSPC, .meanwhile = 3};
	struct fixture fixture;
	struct probe probe;

	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	probe_schedule(&fixture, &probe, 1);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(maker.runs, 3);
	check_int(probe.runs, 1);
	maker_close(&maker, &fixture);
}

Test(start, accepted_meanwhile_is_unexpired_when_no_thread_can_be_made)
{
	struct maker maker = {.failures = 1000000, .error = ENOSPC, .meanwhile = 3};
	struct fixture fixture;

	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	check_int(maker.accepted, 3);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 3);
	check_int(maker.runs, 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPED);
	fixture_close(&fixture);
}

Test(start, stop_after_failure_with_nothing_accepted)
{
	struct maker maker = {.failures = 1000000, .error = ENOSPC};
	struct fixture fixture;

	maker_open(&maker, &fixture);
	check_int(tw_engine_start(fixture.engine), -ENOSPC);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 0);
	fixture_close(&fixture);
}

Test(start, schedules_during_a_lazy_start_are_accepted)
{
	struct maker maker = {.meanwhile = 5};
	struct fixture fixture;
	struct probe probe;

	maker_open(&maker, &fixture);
	probe_schedule(&fixture, &probe, 1);
	check_int(maker.accepted, 5);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(maker.runs, 5);
	check_int(probe.runs, 1);
	maker_close(&maker, &fixture);
}

/*
 * A test of defect B2: while a thread was inside the thread hook, all other callers waited for it.
 */
struct stuck {
	sem_t entered;
	sem_t leave;
	struct tw_engine *engine;
	pthread_t worker;
	atomic_int runs;
	atomic_int first;
};

static int stuck_hook(void *context, void *(*body)(void *arg), void *arg)
{
	struct stuck *stuck = context;

	sem_post(&stuck->entered);
	while (sem_wait(&stuck->leave) != 0)
		;
	return pthread_create(&stuck->worker, NULL, body, arg);
}

static void *first_scheduler(void *arg)
{
	struct stuck *stuck = arg;

	atomic_store(&stuck->first,
		     tw_schedule(stuck->engine, NS_PER_S, &count_kind, &stuck->runs, NULL));
	return NULL;
}

static pthread_t stuck_open(struct stuck *stuck, struct fixture *fixture)
{
	struct tw_options options = fixture_options();
	pthread_t thread;

	sem_init(&stuck->entered, 0, 0);
	sem_init(&stuck->leave, 0, 0);
	options.thread = stuck_hook;
	options.thread_context = stuck;
	fixture_open(fixture, &options);
	stuck->engine = fixture->engine;
	check_int(pthread_create(&thread, NULL, first_scheduler, stuck), 0);
	sem_wait(&stuck->entered);
	return thread;
}

Test(start, b02_schedule_does_not_wait_for_a_start)
{
	struct stuck stuck = {.first = -1};
	struct fixture fixture;
	pthread_t thread = stuck_open(&stuck, &fixture);

	must_schedule(fixture.engine, NS_PER_S, &count_kind, &stuck.runs);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STARTING);
	sem_post(&stuck.leave);
	check_int(pthread_join(thread, NULL), 0);
	check_int(stuck.first, 0);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(stuck.runs, 2);
	fixture_stop(&fixture);
	check_int(pthread_join(stuck.worker, NULL), 0);
	fixture_close(&fixture);
}

/* Defect B3: the engine is stopped between the change of state and the start of the thread. */
Test(start, b03_stop_while_the_thread_is_made)
{
	struct stuck stuck = {.first = -1};
	struct fixture fixture;
	pthread_t thread = stuck_open(&stuck, &fixture);
	int accepted;

	must_schedule(fixture.engine, NS_PER_S, &count_kind, &stuck.runs);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, 20 * NS_PER_MS),
		  -ETIMEDOUT);
	check_int(tw_schedule(fixture.engine, 1, &count_kind, &stuck.runs, NULL), -ESHUTDOWN);
	sem_post(&stuck.leave);
	check_int(pthread_join(thread, NULL), 0);
	fixture_stop(&fixture);
	accepted = stuck.first == 0 ? 2 : 1;
	check_int(fixture.back.count, accepted);
	check_int(tw_clock_set(fixture.clock, 10 * NS_PER_S), 0);
	check_int(pthread_join(stuck.worker, NULL), 0);
	check_int(stuck.runs, 0);
	fixture_close(&fixture);
}
