/* SPDX-License-Identifier: MIT */
/*
 * A program that uses liburcu-bp itself and registers its fork handlers, as liburcu's manual says.
 * A child takes over the parent's engine with TW_REINIT_RCU_HANDLED, and is rejected without that
 * flag. During the fork another thread of the parent is inside a read-side section. Without the
 * handlers, a grace period in the child would wait for that section for ever.
 *
 * Seen to fail with this defect: the handlers are not registered, so the child hangs in
 * tw_engine_stop.
 */
#include "heir.h"

#include <pthread.h>
#include <urcu-bp.h>

static struct fixture fixture;
static struct probe probe;
static struct tw_handle handle;
static sem_t inside, leave;

static void *stay_in_section(void *arg)
{
	urcu_bp_read_lock();
	sem_post(&inside);
	while (sem_wait(&leave) != 0)
		;
	urcu_bp_read_unlock();
	return arg;
}

static void child_takes_over(void)
{
	child_need(tw_fork_reinit(fixture.engine, TW_REINIT_KEEP), -EPERM);
	child_need(tw_timeout_state(handle), -ECHILD);
	heir_take(&fixture, TW_REINIT_KEEP | TW_REINIT_RCU_HANDLED);
	urcu_bp_read_lock();
	child_need(tw_timeout_state(handle), TW_STATE_INIT);
	urcu_bp_read_unlock();
	heir_advance(&fixture, 2 * NS_PER_S);
	child_need(probe.runs, 1);
	urcu_bp_synchronize_rcu();
	heir_close(&fixture);
}

Test(reinit_own_handlers, a_child_takes_over)
{
	pthread_t thread;

	check_int(pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
				 urcu_bp_after_fork_child),
		  0);
	check_int(sem_init(&inside, 0, 0), 0);
	check_int(sem_init(&leave, 0, 0), 0);
	fixture_open(&fixture, NULL);
	handle = probe_schedule(&fixture, &probe, NS_PER_S);
	fixture_advance(&fixture, NS_PER_MS);
	check_int(pthread_create(&thread, NULL, stay_in_section, NULL), 0);
	while (sem_wait(&inside) != 0)
		;
	in_child(child_takes_over);
	check_int(sem_post(&leave), 0);
	check_int(pthread_join(thread, NULL), 0);
	check_int(probe.runs, 0);
	fixture_close(&fixture);
	check_int(probe.finalised, 1);
}
