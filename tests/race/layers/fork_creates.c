/* SPDX-License-Identifier: MIT */
/*
 * usage: race_fork_creates [forks] [seed] [handlers] [seconds] [patience]
 *
 * The process forks at random moments, and each child creates engines as its first call. In the
 * parent, threads schedule and cancel meanwhile, create and stop engines, create and destroy
 * tables of keys (so grace periods are under way), and begin and end (so readers are taken and
 * given back). A child checks that the parent's timeouts are not its own, makes an engine and a
 * table, lets timeouts expire, stops and destroys all, and forks again; its child does the same.
 * Each child must end in time.
 *
 * `handlers`: when the program registers liburcu-bp's fork handlers: 0 never, 1 before the first
 * engine, 2 after it. With 1 and 2 the program also has sections and grace periods of liburcu-bp.
 *
 * Seen to fail with these defects: liburcu's handlers run twice (fork hangs); a child keeps the
 * readers of the parent's threads (it hangs in tw_engine_stop).
 */
#include "heir_memory.h"
#include "heir_threads.h"
#include "race.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tickwheel.h>
#include <time.h>
#include <unistd.h>
#include <urcu-bp.h>

enum { CELLS = 32, CHILD_TIMEOUTS = 20, TICK_NS = 1000000 };

#define NEVER_DUE_NS INT64_C(3600000000000)

static int64_t patience_s = 20;
static struct tw_engine *engine;
static struct tw_handle known; /* a timeout of the parent that stays pending */
static atomic_bool over;
static _Atomic uint32_t begun;
static atomic_bool urcu_used;
static atomic_bool resting; /* whether a child is at work */

static void nap(long ns)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

/* Lets a child have the processors. */
static void rest(void)
{
	while (atomic_load(&resting) && !atomic_load(&over))
		nap(100000);
}

static void on_due(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

static const struct tw_kind kind = TW_KIND(on_due, NULL);

static int64_t on_key(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
	return TW_KEYED_END;
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(on_key, NULL);

/* The parent's threads. */

static void *schedule_body(void *arg)
{
	static atomic_int runs;
	struct tw_handle cell[CELLS] = {{0}};
	uint64_t random = *(uint64_t *)arg;

	atomic_fetch_add(&begun, 1);
	while (!atomic_load(&over)) {
		uint64_t bits = race_random(&random);
		struct tw_handle *handle = &cell[bits % CELLS];

		rest();
		if (tw_handle_is_set(*handle))
			(void)tw_cancel(*handle);
		RACE_CHECK(tw_schedule(engine, (int64_t)(bits / CELLS % (8 * TICK_NS)), &kind,
				       &runs, handle) == 0);
	}
	for (int i = 0; i < CELLS; i++)
		if (tw_handle_is_set(cell[i]))
			(void)tw_cancel_wait(cell[i], TW_NEVER);
	return arg;
}

/* Uses and destroys an engine with a table of keys. The table's destroy waits for the reclaimer. */
static void engine_once(int timeouts)
{
	static _Thread_local atomic_int runs;
	struct tw_engine *own = NULL;
	struct tw_keyed *table = NULL;
	int64_t limit_ns = race_now_ns() + patience_s * 1000000000;

	atomic_store(&runs, 0);
	RACE_CHECK(tw_engine_create(NULL, &own) == 0);
	RACE_CHECK(tw_keyed_create(own, NULL, &table) == 0);
	for (int i = 0; i < timeouts; i++) {
		RACE_CHECK(tw_schedule(own, i % 2 * TICK_NS, &kind, &runs, NULL) == 0);
		RACE_CHECK(tw_keyed_schedule(table, &i, sizeof i, i % 3 * TICK_NS, &key_kind, &runs,
					     NULL) == TW_KEYED_DONE);
	}
	while (atomic_load(&runs) < 2 * timeouts) {
		RACE_CHECK(race_now_ns() < limit_ns);
		nap(100000);
	}
	RACE_CHECK(tw_engine_stop(own, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_keyed_destroy(table) == 0);
	RACE_CHECK(tw_engine_destroy(own) == 0);
	RACE_CHECK(atomic_load(&runs) == 2 * timeouts);
}

static void *engine_body(void *arg)
{
	atomic_fetch_add(&begun, 1);
	while (!atomic_load(&over)) {
		rest();
		engine_once(3);
	}
	return arg;
}

static void *short_body(void *arg)
{
	RACE_CHECK(tw_timeout_state(known) >= 0);
	if (atomic_load(&urcu_used)) {
		urcu_bp_read_lock();
		urcu_bp_read_unlock();
	}
	return arg;
}

/* Makes threads that begin and end. */
static void *churn_body(void *arg)
{
	atomic_fetch_add(&begun, 1);
	while (!atomic_load(&over)) {
		pthread_t thread;

		rest();
		RACE_CHECK(pthread_create(&thread, NULL, short_body, NULL) == 0);
		RACE_CHECK(pthread_join(thread, NULL) == 0);
		if (atomic_load(&urcu_used))
			urcu_bp_synchronize_rcu();
	}
	return arg;
}

/* The child. */

static void child_awaits(pid_t child)
{
	int64_t limit_ns = race_now_ns() + 3 * patience_s * 1000000000;
	int status = 0;
	pid_t ended;

	RACE_CHECK(child > 0);
	while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
		if (race_now_ns() > limit_ns)
			(void)kill(child, SIGKILL);
		nap(50000);
	}
	RACE_CHECK(ended == child);
	if (status != 0)
		fprintf(stderr, "a child's status: 0x%x\n", (unsigned)status);
	RACE_CHECK(status == 0);
}

static void *child_body(void *arg)
{
	engine_once(CHILD_TIMEOUTS);
	return arg;
}

/* Two threads create engines at once: at random one of them takes over the library. */
static void child_uses(void)
{
	pthread_t thread;

	RACE_CHECK(pthread_create(&thread, NULL, child_body, NULL) == 0);
	engine_once(CHILD_TIMEOUTS);
	RACE_CHECK(pthread_join(thread, NULL) == 0);
	if (!atomic_load(&urcu_used))
		return;
	urcu_bp_read_lock();
	urcu_bp_read_unlock();
	urcu_bp_synchronize_rcu();
}

static void engine_calls(void)
{
	RACE_CHECK(tw_engine_pending(engine) == -ECHILD);
	RACE_CHECK(tw_schedule(engine, 0, &kind, NULL, NULL) == -ECHILD);
}

static void handle_calls(void)
{
	RACE_CHECK(tw_timeout_state(known) == -ECHILD);
	RACE_CHECK(tw_cancel(known) == -ECHILD);
}

/* The child has not taken over the parent's engine. So in its own child, too, calls on it fail. */
static void grandchild_make(void)
{
	pid_t child = heir_fork();

	if (child == 0) {
		engine_calls();
		handle_calls();
		child_uses();
		engine_calls();
		_exit(0);
	}
	child_awaits(child);
}

static void child_run(bool forks, bool destroys)
{
	heir_threads_begin();
	engine_calls();
	handle_calls();
	if (destroys)
		RACE_CHECK(tw_engine_destroy(engine) == 0);
	child_uses();
	handle_calls();
	if (forks && !destroys)
		grandchild_make();
	_exit(0);
}

static void handlers_register(void)
{
	RACE_CHECK(pthread_atfork(urcu_bp_before_fork, urcu_bp_after_fork_parent,
				  urcu_bp_after_fork_child) == 0);
	atomic_store(&urcu_used, true);
}

int main(int argc, char **argv)
{
	uint64_t forks = race_size(argc, argv, 1, 200);
	uint64_t random = race_argument(argc, argv, 2, 1) * 1001;
	uint64_t handlers = race_argument(argc, argv, 3, 0);
	uint64_t seconds = race_argument(argc, argv, 4, 60);
	void *(*bodies[])(void *) = {schedule_body, schedule_body, engine_body, churn_body};
	int64_t until_ns = race_now_ns() + (int64_t)seconds * 1000000000;
	uint64_t seeds[4], done = 0;
	pthread_t threads[4];
	atomic_int runs = 0;

	patience_s = (int64_t)race_argument(argc, argv, 5, 20);
	race_watchdog((unsigned)seconds + 5 * (unsigned)patience_s);
	heir_memory_begin();
	if (handlers == 1)
		handlers_register();
	RACE_CHECK(tw_engine_create(NULL, &engine) == 0);
	if (handlers == 2)
		handlers_register();
	RACE_CHECK(tw_schedule(engine, NEVER_DUE_NS, &kind, &runs, &known) == 0);
	for (int i = 0; i < 4; i++) {
		seeds[i] = random + (uint64_t)i;
		RACE_CHECK(pthread_create(&threads[i], NULL, bodies[i], &seeds[i]) == 0);
	}
	while (atomic_load(&begun) < 4)
		nap(100000);
	while (done < forks && race_now_ns() < until_ns) {
		pid_t child;

		nap((long)(race_random(&random) % 300000));
		child = heir_fork();
		if (child == 0)
			child_run(race_random(&random) % 2 == 0, race_random(&random) % 4 == 0);
		atomic_store(&resting, true);
		child_awaits(child);
		atomic_store(&resting, false);
		done++;
	}
	atomic_store(&over, true);
	for (int i = 0; i < 4; i++)
		RACE_CHECK(pthread_join(threads[i], NULL) == 0);
	RACE_CHECK(tw_cancel(known) == TW_CANCEL_DONE);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	printf("%llu children, each with engines of its own\n", (unsigned long long)done);
	return done == 0;
}
