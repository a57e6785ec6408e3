/* SPDX-License-Identifier: MIT */
/*
 * A program that uses liburcu-bp itself and makes calls inside its own read-side section. All calls
 * must work, except stop, and destroy with a virtual clock. Those two wait for the end of every
 * such section.
 *
 * Seen to fail with these defects: the worker does not wait for a grace period (the first two
 * tests); a child that was forked without fork handlers may register some, and its own fork then
 * hangs; a call leaves an RCU section open.
 */
#include "asleep.h"
#include "child.h"
#include "probe.h"

#include <errno.h>
#include <pthread.h>
#include <urcu-bp.h>

#define SHORT_NS (50 * NS_PER_MS)

static void on_nothing(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
}

Test(rcu_section, stop_waits_for_the_callers_own)
{
	struct fixture fixture;
	struct probe probe;

	fixture_open(&fixture, NULL);
	urcu_bp_read_lock();
	probe_schedule(&fixture, &probe, NS_PER_MS);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(probe.runs, 1);
	probe_schedule(&fixture, &probe, NS_PER_S);
	check_int(tw_engine_stop(fixture.engine, back_log_hook, &fixture.back, SHORT_NS),
		  -ETIMEDOUT);
	check_int(tw_engine_destroy(fixture.engine), -EBUSY);
	urcu_bp_read_unlock();
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
	check_int(probe.finalised, 1);
}

/*
 * At the fork the worker is in a grace period and holds a lock of liburcu. In the child no thread
 * ever releases that lock.
 */
static struct fixture stopping;

static void grandchild_asks(void)
{
	child_need(tw_engine_state(stopping.engine), -ECHILD);
	child_need(tw_fork_reinit(NULL, 0), -EPERM);
}

static void child_forks_on(void)
{
	pid_t child;
	int status = 0;

	child_need(tw_fork_handlers_enable(), -EPERM);
	child = quiet_fork();
	if (child == 0) {
		grandchild_asks();
		child_end(0);
	}
	child_need(waitpid(child, &status, 0), child);
	child_need(status, 0);
}

Test(rcu_section, a_child_forks_on)
{
	fixture_open(&stopping, NULL);
	urcu_bp_read_lock();
	must_schedule(stopping.engine, NS_PER_S, &count_kind, NULL);
	check_int(tw_engine_stop(stopping.engine, back_log_hook, &stopping.back, SHORT_NS),
		  -ETIMEDOUT);
	in_child(child_forks_on);
	urcu_bp_read_unlock();
	fixture_close(&stopping);
	check_int(stopping.back.count, 1);
}

static asleep_thread destroying;

static void *destroy_main(void *arg)
{
	struct fixture *fixture = arg;

	asleep_announce(&destroying);
	return tw_engine_destroy(fixture->engine) == 0 ? fixture : NULL;
}

Test(rcu_section, destroy_with_a_virtual_clock_waits_for_others)
{
	struct fixture fixture;
	pthread_t thread;
	void *result = NULL;

	fixture_open(&fixture, NULL);
	fixture_stop(&fixture);
	urcu_bp_read_lock();
	check_int(pthread_create(&thread, NULL, destroy_main, &fixture), 0);
	check_true(asleep_await(&destroying));
	check_int(pthread_tryjoin_np(thread, &result), EBUSY);
	urcu_bp_read_unlock();
	check_int(pthread_join(thread, &result), 0);
	check_true(result == &fixture);
	check_int(tw_clock_destroy(fixture.clock), 0);
}

/*
 * One thread owns two loops. When it uses a timeout of the first loop, the library looks inside an
 * RCU section whether the thread owns that loop, too. The call must leave this section.
 */
Test(rcu_section, calls_of_an_owner_of_two_loops_leave_the_section)
{
	static const struct tw_kind owned = TW_KIND_OWNER_ONLY(on_nothing, NULL);
	struct tw_handle handles[2];
	struct fixture loops[2];

	for (int i = 0; i < 2; i++) {
		struct tw_options options = fixture_options();

		options.flags = TW_ENGINE_LOOP;
		fixture_open(&loops[i], &options);
		handles[i] = must_schedule(loops[i].engine, NS_PER_S, &owned, NULL);
	}
	for (int i = 0; i < 2; i++) {
		check_int(tw_reschedule(handles[i], NS_PER_MS), TW_RESCHEDULE_DONE);
		check_int(urcu_bp_read_ongoing(), 0);
	}
	for (int i = 0; i < 2; i++) {
		check_int(tw_cancel(handles[i]), TW_CANCEL_DONE);
		check_int(urcu_bp_read_ongoing(), 0);
		fixture_close(&loops[i]);
	}
}
