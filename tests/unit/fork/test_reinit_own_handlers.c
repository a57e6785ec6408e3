/* SPDX-License-Identifier: MIT */
/*
 * A program that uses liburcu-bp itself. It registers liburcu's fork handlers, as liburcu's manual
 * says, before or after it first uses the library, or does not register them. In each case a child
 * creates an engine and takes over the parent's. If the handlers are registered, the child uses
 * liburcu-bp, too. During the fork another thread of the parent is inside a read-side section of
 * the program, and in the last case the program's grace period waits for that section and holds a
 * lock of liburcu.
 *
 * Seen to fail with these defects: liburcu's handlers are registered once more, so fork hangs
 * (before, after); a grace period of the library is also one of liburcu-bp, so the child hangs
 * (never).
 */
#include "asleep.h"
#include "heir.h"

#include <pthread.h>
#include <urcu-bp.h>

static struct fixture fixture;
static struct probe probe;
static struct tw_handle handle;
static sem_t inside, leave;
static asleep_thread waiting;
static bool registered;

static void *stay_in_section(void *arg)
{
	urcu_bp_read_lock();
	sem_post(&inside);
	while (sem_wait(&leave) != 0)
		;
	urcu_bp_read_unlock();
	return arg;
}

static void *wait_for_section(void *arg)
{
	asleep_announce(&waiting);
	urcu_bp_synchronize_rcu();
	return arg;
}

static void child_creates(void)
{
	struct tw_engine *engine = NULL;

	heir_threads_begin();
	child_need(tw_timeout_state(handle), -ECHILD);
	child_need(tw_engine_create(NULL, &engine), 0);
	child_need(tw_engine_start(engine), 0);
	child_need(tw_timeout_state(handle), -ECHILD);
	child_need(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	child_need(tw_engine_destroy(engine), 0);
}

static void child_takes_over(void)
{
	child_creates();
	heir_take(&fixture, TW_REINIT_KEEP);
	if (registered)
		urcu_bp_read_lock();
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	if (registered)
		urcu_bp_read_unlock();
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	if (registered)
		urcu_bp_synchronize_rcu();
	heir_close(&fixture);
}

static void handlers_register(void)
{
	check_int(pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
				 urcu_bp_after_fork_child),
		  0);
	registered = true;
}

static void engine_open(void)
{
	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
}

static void fork_in_section(bool grace)
{
	pthread_t thread, waiter;

	check_int(sem_init(&inside, 0, 0), 0);
	check_int(sem_init(&leave, 0, 0), 0);
	check_int(pthread_create(&thread, NULL, stay_in_section, NULL), 0);
	while (sem_wait(&inside) != 0)
		;
	if (grace) {
		check_int(pthread_create(&waiter, NULL, wait_for_section, NULL), 0);
		check_true(asleep_await(&waiting));
	}
	in_child(child_creates);
	in_child(child_takes_over);
	check_int(sem_post(&leave), 0);
	check_int(pthread_join(thread, NULL), 0);
	if (grace)
		check_int(pthread_join(waiter, NULL), 0);
	check_int(probe.runs, 0);
	fixture_close(&fixture);
	check_int(probe.finalised, 1);
}

Test(reinit_own_handlers, registered_before_the_first_engine)
{
	handlers_register();
	engine_open();
	fork_in_section(false);
}

Test(reinit_own_handlers, registered_after_the_first_engine)
{
	engine_open();
	handlers_register();
	fork_in_section(false);
}

Test(reinit_own_handlers, never_registered)
{
	engine_open();
	fork_in_section(true);
}
