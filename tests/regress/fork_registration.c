/* SPDX-License-Identifier: MIT */
/*
 * The bug: in a forked child tw_thread_attach and tw_clock_set registered the thread with liburcu.
 * At the fork, another thread of the parent could hold one of liburcu's locks. Then that lock
 * stayed locked in the child, and the call hung for ever. Now the library has no locks, and none of
 * its calls waits for a lock of liburcu.
 *
 * Here a thread registers with liburcu, as a program that uses both libraries may do. Each time the
 * thread has taken a lock of liburcu, it waits while the process forks. After the registration the
 * thread makes its first call of the library, which must take no lock.
 *
 * Seen to fail with this defect: a thread's first section registers it with liburcu.
 */
#include "race.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <tickwheel.h>
#include <time.h>
#include <unistd.h>
#include <urcu-bp.h>

static _Thread_local bool stands_in_locks;
static _Thread_local bool own_call; /* whether the thread is in a call of the library */
static atomic_bool standing, done;

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
}

/* Replaces the C library's function. liburcu then calls this one. */
int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	int (*next)(pthread_mutex_t *);
	void *symbol = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	int error;

	memcpy(&next, &symbol, sizeof next);
	error = next(mutex);
	RACE_CHECK(!own_call);
	if (stands_in_locks) {
		atomic_store(&standing, true);
		while (atomic_load(&standing))
			nap();
	}
	return error;
}

static void *attach_body(void *arg)
{
	stands_in_locks = true;
	urcu_bp_register_thread();
	own_call = true;
	RACE_CHECK(tw_thread_attach() == 0);
	own_call = false;
	stands_in_locks = false;
	atomic_store(&done, true);
	return arg;
}

static void child_run(struct tw_clock *clock)
{
	struct tw_engine *engine = NULL;

	RACE_CHECK(tw_clock_set(clock, 1) == 0);
	RACE_CHECK(tw_thread_attach() == 0);
	RACE_CHECK(tw_engine_create(NULL, &engine) == 0);
	RACE_CHECK(tw_engine_start(engine) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_thread_detach() == 0);
	_exit(0);
}

/* Kills a child that hangs. An alarm in the child could not do that, because such a child has
 * all signals blocked. */
static void child_await(pid_t child)
{
	int64_t limit_ns = race_now_ns() + INT64_C(10000000000);
	int status = 1;
	pid_t ended;

	while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
		if (race_now_ns() > limit_ns)
			(void)kill(child, SIGKILL);
		nap();
	}
	RACE_CHECK(ended == child);
	RACE_CHECK(status == 0);
}

static void fork_once(struct tw_clock *clock)
{
	pid_t child = fork();

	RACE_CHECK(child >= 0);
	if (child == 0)
		child_run(clock);
	child_await(child);
}

int main(void)
{
	struct tw_engine *engine = NULL;
	struct tw_clock *clock = NULL;
	pthread_t thread;
	int forks = 0;

	race_watchdog(50);
	RACE_CHECK(tw_clock_create_virtual(0, &clock) == 0);
	RACE_CHECK(tw_engine_create(NULL, &engine) == 0);
	RACE_CHECK(pthread_create(&thread, NULL, attach_body, NULL) == 0);
	while (!done) {
		nap();
		if (!standing)
			continue;
		fork_once(clock);
		forks++;
		atomic_store(&standing, false);
	}
	RACE_CHECK(pthread_join(thread, NULL) == 0);
	RACE_CHECK(forks >= 1);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	return tw_clock_destroy(clock);
}
