/* SPDX-License-Identifier: MIT */
/* Loop mode: start, flush, stop and destroy, by the owner and by other threads. */
#include "asleep.h"
#include "fixture.h"
#include "quiet_fork.h"

#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICK_NS INT64_C(1000000)

static void loop_open(struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	fixture_open(fixture, &options);
}

static void on_count(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind counted = TW_KIND(on_count, NULL);
static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_count, NULL);

/* A thread that makes one blocking call. */
struct helper {
	pthread_t thread;
	struct fixture *fixture;
	_Atomic int64_t result;
	atomic_int ended;
};

static void *stop_body(void *arg)
{
	struct helper *helper = arg;

	helper->result = tw_engine_stop(helper->fixture->engine, back_log_hook,
					&helper->fixture->back, PATIENCE_NS);
	helper->ended = 1;
	return NULL;
}

static void *flush_body(void *arg)
{
	struct helper *helper = arg;

	helper->result = tw_engine_flush(helper->fixture->engine, PATIENCE_NS);
	helper->ended = 1;
	return NULL;
}

static void helper_begin(struct helper *helper, struct fixture *fixture, void *(*body)(void *))
{
	helper->fixture = fixture;
	helper->result = 1;
	helper->ended = 0;
	check_int(pthread_create(&helper->thread, NULL, body, helper), 0);
}

static int64_t helper_end(struct helper *helper)
{
	check_int(pthread_join(helper->thread, NULL), 0);
	return helper->result;
}

static void schedule_three(struct fixture *fixture, atomic_int *runs)
{
	check_int(tw_schedule(fixture->engine, TW_NEVER, &counted, runs, NULL), 0);
	check_int(tw_schedule(fixture->engine, 5 * TICK_NS, &owned, runs, NULL), 0);
	check_int(tw_schedule(fixture->engine, 5 * TICK_NS, &counted, runs, NULL), 0);
}

Test(loop_stop, stop_by_the_owner_hands_all_back)
{
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_engine_start(fixture.engine), 0);
	schedule_three(&fixture, &runs);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	fixture_stop(&fixture);
	check_int(fixture.back.count, 3);
	check_int(runs, 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STOPPED);
	check_int(tw_engine_poll(fixture.engine, 0), -ESHUTDOWN);
	check_int(tw_engine_poll_at(fixture.engine, 0, 0), -ESHUTDOWN);
	check_int(tw_engine_next_due(fixture.engine), -ESHUTDOWN);
	check_int(tw_engine_fd(fixture.engine), -ESHUTDOWN);
	check_int(tw_loop_enter(fixture.engine), -ESHUTDOWN);
	check_int(tw_loop_exit(fixture.engine), -EPERM);
	check_int(tw_engine_start(fixture.engine), -ESHUTDOWN);
	check_int(tw_engine_flush(fixture.engine, 0), -ESHUTDOWN);
	check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), -ESHUTDOWN);
	check_int(tw_schedule(fixture.engine, 1, &owned, &runs, NULL), -ESHUTDOWN);
	check_books(fixture.engine);
	fixture_destroy(&fixture);
}

/* If no thread is in a bracket, the stopping thread must do the work. */
Test(loop_stop, without_a_bracket_the_stopper_hands_back)
{
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_loop_exit(fixture.engine), 0);
	check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), 0);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_STARTING);
	check_int(tw_engine_flush(fixture.engine, 0), -ETIMEDOUT);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}

Test(loop_stop, after_the_owner_has_left)
{
	struct helper helper;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_engine_start(fixture.engine), 0);
	schedule_three(&fixture, &runs);
	check_int(tw_loop_exit(fixture.engine), 0);
	helper_begin(&helper, &fixture, stop_body);
	check_int(helper_end(&helper), 0);
	check_int(fixture.back.count, 3);
	check_books(fixture.engine);
	fixture_destroy(&fixture);
}

/* When another thread's stop waits, the owner's next poll must end the engine. */
Test(loop_stop, stop_by_another_thread_ends_at_the_owners_poll)
{
	struct helper helper;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_engine_start(fixture.engine), 0);
	schedule_three(&fixture, &runs);
	helper_begin(&helper, &fixture, stop_body);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_STOPPING));
	check_int(tw_schedule(fixture.engine, 1, &owned, &runs, NULL), -ESHUTDOWN);
	check_int(helper.ended, 0);
	check_int(tw_engine_next_due(fixture.engine), 0);
	check_int(tw_clock_set(fixture.clock, 9 * TICK_NS), 0);
	check_int(tw_engine_poll(fixture.engine, 0), -ESHUTDOWN);
	check_int(helper_end(&helper), 0);
	check_int(fixture.back.count, 3);
	check_int(runs, 0);
	check_books(fixture.engine);
	fixture_destroy(&fixture);
}

Test(loop_stop, stop_finishes_after_its_owner_has_left)
{
	struct helper helper;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_engine_start(fixture.engine), 0);
	schedule_three(&fixture, &runs);
	helper_begin(&helper, &fixture, stop_body);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_STOPPING));
	check_int(tw_loop_exit(fixture.engine), 0);
	check_int(helper_end(&helper), 0);
	check_int(fixture.back.count, 3);
	fixture_destroy(&fixture);
}

/* The owner and another thread both stop the engine. The owner must do the work, because only the
 * owner can. */
Test(loop_stop, stop_by_both_threads_hands_back_once)
{
	struct helper helper;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_engine_start(fixture.engine), 0);
	schedule_three(&fixture, &runs);
	helper_begin(&helper, &fixture, stop_body);
	check_true(engine_state_await(fixture.engine, TW_ENGINE_STOPPING));
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, PATIENCE_NS), 0);
	check_int(helper_end(&helper), 0);
	check_int(fixture.back.count, 3);
	fixture_destroy(&fixture);
}

static void on_stop_elsewhere(struct tw_handle self, void *arg)
{
	struct helper *helper = arg;

	(void)self;
	helper_begin(helper, helper->fixture, stop_body);
	check_true(engine_state_await(helper->fixture->engine, TW_ENGINE_STOPPING));
}

/* If another thread stops the engine during a callback of a poll, that poll must end the engine. */
Test(loop_stop, stop_during_a_poll_ends_in_that_poll)
{
	static const struct tw_kind stops = TW_KIND(on_stop_elsewhere, NULL);
	struct fixture fixture;
	struct helper helper = {.fixture = &fixture};
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_schedule(fixture.engine, 1, &stops, &helper, NULL), 0);
	schedule_three(&fixture, &runs);
	check_int(tw_clock_set(fixture.clock, TICK_NS), 0);
	check_int(tw_engine_poll(fixture.engine, 0), -ESHUTDOWN);
	check_int(helper_end(&helper), 0);
	check_int(fixture.back.count, 3);
	check_books(fixture.engine);
	fixture_destroy(&fixture);
}

Test(loop_stop, flush_by_another_thread_waits_for_polls)
{
	struct helper helper;
	struct fixture fixture;
	atomic_int runs = 0;
	int64_t polled = 0;

	loop_open(&fixture);
	check_int(tw_schedule(fixture.engine, 1, &counted, &runs, NULL), 0);
	check_int(tw_clock_set(fixture.clock, TICK_NS), 0);
	helper_begin(&helper, &fixture, flush_body);
	while (!helper.ended) {
		int64_t expired = tw_engine_poll(fixture.engine, 1);

		cr_assert(expired >= 0);
		polled += expired;
	}
	check_int(helper_end(&helper), 0);
	check_int(polled, 1);
	check_int(runs, 1);
	fixture_close(&fixture);
}

static void on_end_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	pthread_exit(NULL);
}

static void *poll_body(void *arg)
{
	struct helper *helper = arg;

	helper->result = tw_engine_poll(helper->fixture->engine, 0);
	return NULL;
}

/*
 * If a callback ends the owner's thread, the engine is in the state FAILED, and stop must hand back
 * the remaining timeouts.
 */
Test(loop_stop, the_owner_ends_in_a_callback)
{
	static const struct tw_kind ends = TW_KIND(on_end_thread, NULL);
	struct helper helper;
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	check_int(tw_schedule_at(fixture.engine, 0, &ends, NULL, NULL), 0);
	for (int i = 0; i < 3; i++)
		check_int(tw_schedule(fixture.engine, TW_NEVER, &counted, &runs, NULL), 0);
	check_int(tw_clock_set(fixture.clock, TICK_NS), 0);
	check_int(tw_loop_exit(fixture.engine), 0);
	helper_begin(&helper, &fixture, poll_body);
	check_int(helper_end(&helper), 1);
	check_int(tw_engine_state(fixture.engine), TW_ENGINE_FAILED);
	check_int(tw_engine_poll(fixture.engine, 0), -ESHUTDOWN);
	fixture_close(&fixture);
	check_int(fixture.back.count, 3);
}

/*
 * A detached thread must still be the owner, because a destructor of the program may poll after the
 * library's thread data has been freed.
 */
Test(loop_stop, detached_thread_is_still_the_owner)
{
	struct fixture fixture;
	atomic_int runs = 0;

	loop_open(&fixture);
	schedule_three(&fixture, &runs);
	check_int(tw_engine_poll(fixture.engine, 0), 0);
	check_int(tw_thread_detach(), 0);
	schedule_three(&fixture, &runs);
	fixture_advance(&fixture, 9 * TICK_NS);
	check_int(runs, 4);
	fixture_close(&fixture);
}

static int child_code(struct fixture *fixture, struct tw_handle handle)
{
	if (tw_engine_poll(fixture->engine, 0) != -ECHILD ||
	    tw_engine_next_due(fixture->engine) != -ECHILD ||
	    tw_engine_fd(fixture->engine) != -ECHILD ||
	    tw_engine_poll_at(fixture->engine, 0, 0) != -ECHILD ||
	    tw_loop_exit(fixture->engine) != -ECHILD || tw_cancel(handle) != -ECHILD)
		return 1;
	return tw_engine_destroy(fixture->engine) == 0 ? 0 : 2;
}

Test(loop_stop, forked_child_is_rejected_and_the_parent_goes_on)
{
	struct tw_handle handle;
	struct fixture fixture;
	atomic_int runs = 0;
	int status = 0;
	pid_t child;

	loop_open(&fixture);
	check_int(tw_engine_start(fixture.engine), 0);
	check_int(tw_schedule(fixture.engine, 1, &owned, &runs, &handle), 0);
	cr_assert(tw_engine_fd(fixture.engine) >= 0);
	child = quiet_fork();
	if (child == 0)
		_exit(child_code(&fixture, handle));
	check_int(waitpid(child, &status, 0), child);
	check_int(status, 0);
	fixture_advance(&fixture, 2 * TICK_NS);
	check_int(runs, 1);
	fixture_close(&fixture);
}
