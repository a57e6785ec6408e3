/* SPDX-License-Identifier: MIT */
/*
 * A callback forks and returns in the child, too. The child's copy of the worker must end there,
 * and must not run the parent's timeouts.
 *
 * Seen to fail with this defect: the worker does not check whether its process is still the one
 * that created the engine (the check is left out everywhere, or only in twi_worker_open()).
 */
#include "probe.h"
#include "quiet_fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int *runs; /* shared with the child */
static _Atomic pid_t child;
static pid_t parent;

static void *(*library_body)(void *arg);

/*
 * Runs the worker. If it returns in the child, exits the process at once, because the copy of the
 * parent's memory would count as a leak.
 */
static void *worker_body(void *arg)
{
	library_body(arg);
	if (getpid() != parent)
		_exit(0);
	return NULL;
}

static int thread_make(void *context, void *(*body)(void *arg), void *arg)
{
	pthread_t thread;
	int error;

	(void)context;
	library_body = body;
	error = pthread_create(&thread, NULL, worker_body, arg);
	return error != 0 ? error : pthread_detach(thread);
}

/* Ends the child if it runs a timeout, so that the parent's test fails at once. */
static void child_runs_nothing(void)
{
	if (getpid() != parent)
		_exit(1);
}

static void fork_callback(struct tw_handle self, void *arg)
{
	pid_t pid;

	(void)self;
	(void)arg;
	child_runs_nothing();
	pid = quiet_fork();
	if (pid == 0)
		alarm(30);
	atomic_store(&child, pid);
}

static void count_callback(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	child_runs_nothing();
	atomic_fetch_add(runs, 1);
}

static int child_await(void)
{
	int status = -1;

	for (int64_t waited_ns = 0; waited_ns < PATIENCE_NS; waited_ns += NS_PER_MS) {
		if (waitpid(child, &status, WNOHANG) == child)
			break;
		sleep_ns(NS_PER_MS);
	}
	return status;
}

static const struct tw_kind forking = TW_KIND(fork_callback, NULL);
static const struct tw_kind counting = TW_KIND(count_callback, NULL);

static void open_forking(struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	parent = getpid();
	options.thread = thread_make;
	runs = mmap(NULL, sizeof *runs, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	cr_assert(runs != MAP_FAILED);
	fixture_open(fixture, &options);
}

/* Two other timeouts are due in the same tick as the one that forks. At least one of them expires
 * after it. */
Test(fork_callback, the_child_runs_no_more)
{
	struct fixture fixture;

	open_forking(&fixture);
	must_schedule(fixture.engine, 1, &counting, NULL);
	must_schedule(fixture.engine, 1, &forking, NULL);
	must_schedule(fixture.engine, 1, &counting, NULL);
	must_schedule(fixture.engine, NS_PER_S, &counting, NULL);
	fixture_advance(&fixture, 2 * fixture.tick_ns);
	check_int(child_await(), 0);
	check_int(atomic_load(runs), 2);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(atomic_load(runs), 3);
	fixture_close(&fixture);
}

/*
 * At the fork the chain has missed runs to make up for. In the child it must stay pending, and must
 * not run any more.
 */
Test(fork_callback, a_chain_of_the_child_runs_no_more)
{
	static const struct tw_period period = TW_PERIOD_RATE(2 * NS_PER_MS);
	struct tw_period once = TW_PERIOD_RATE(2 * NS_PER_MS);
	struct fixture fixture;

	open_forking(&fixture);
	once.runs = 2;
	check_int(tw_schedule_periodic(fixture.engine, &once, &forking, NULL, NULL), 0);
	fixture_advance_to(&fixture, 3 * NS_PER_MS);
	check_int(child_await(), 0);
	check_int(tw_schedule_periodic(fixture.engine, &period, &counting, NULL, NULL), 0);
	fixture_advance_to(&fixture, 25 * NS_PER_MS);
	check_int(child_await(), 0);
	/* The runs from 5 to 23 ms, every 2 ms. */
	check_int(atomic_load(runs), 10);
	fixture_close(&fixture);
	check_int(fixture.back.count, 1);
}
