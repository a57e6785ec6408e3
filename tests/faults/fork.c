/* SPDX-License-Identifier: MIT */
/*
 * usage: faults-fork [long]
 *
 * The process forks while other threads are inside public calls. It forks once at each named point
 * of the library, while the thread that reached that point is stopped there. It also forks at
 * random moments. The forking thread has never used the library. In the child every call on the
 * parent's objects must return -ECHILD, calls without an engine must work, and an engine that the
 * child creates must run its timeouts. No call may hang, it must be possible to destroy engines and
 * clock, and the child must exit. The parent's tour must continue and lose nothing.
 *
 * Seen to fail with this defect: tw_cancel does not check whether the process has forked, so the
 * child cancels.
 */
#include "heir_threads.h"
#include "ledger.h"
#include "race.h"
#include "report.h"

#include "base/test_point.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	/*
	 * This must be more than the number of the library's test points, because place_find fails
	 * if there is no free place.
	 */
	PLACES = 128,
};

/* A child needs about a millisecond, so one that takes this long hangs. */
#define HUNG_NS INT64_C(20000000000)

/* The points at which threads have stopped. */
static struct place {
	_Atomic(const char *) name;
	atomic_uint visits;
} places[PLACES];

static unsigned visits_wanted;
/* the point at which a thread has stopped and waits for the fork */
static _Atomic(const char *) standing;
static atomic_bool over;
static pthread_t forker;
static atomic_llong forks;
static atomic_llong *plain_ends; /* how many children ended with exit(); in shared memory */
static _Thread_local bool is_forker;

/* The engines and the clock for the child's calls. They exist whenever the process forks. */
static pthread_mutex_t published_lock = PTHREAD_MUTEX_INITIALIZER;
static struct tw_engine *published_real, *published_moved;
static struct tw_clock *published_clock;

static void publish(struct tw_engine *real, struct tw_engine *moved, struct tw_clock *clock)
{
	(void)pthread_mutex_lock(&published_lock);
	published_real = real;
	published_moved = moved;
	published_clock = clock;
	(void)pthread_mutex_unlock(&published_lock);
}

static struct place *place_find(const char *name)
{
	size_t number;

	for (number = 0; number < PLACES; number++) {
		const char *there = NULL;

		if (atomic_compare_exchange_strong(&places[number].name, &there, name) ||
		    strcmp(there, name) == 0)
			return &places[number];
	}
	race_fail(__FILE__, __LINE__, "room for all names");
}

/* Stops until the process has forked, unless another thread has already stopped. */
static void stand(const char *name)
{
	const char *nobody = NULL;
	struct place *place;

	if (is_forker || visits_wanted == 0 || atomic_load(&over))
		return;
	place = place_find(name);
	if (place->visits >= visits_wanted ||
	    !atomic_compare_exchange_strong(&standing, &nobody, name))
		return;
	atomic_fetch_add(&place->visits, 1);
	while (atomic_load(&standing) != NULL && !atomic_load(&over))
		tour_sleep_ns(20000);
}

void twi_test_point(const char *name)
{
	stand(name);
}

/* The functions of the child. */

#define must(actual, expected)                                                                     \
	do {                                                                                       \
		long long must_actual = (long long)(actual);                                       \
		if (must_actual != (long long)(expected)) {                                        \
			fprintf(stderr, "child: %s is %lld\n", #actual, must_actual);              \
			race_fail(__FILE__, __LINE__, "what a child must get");                    \
		}                                                                                  \
	} while (0)

static void child_asks_engine(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof stats};

	must(tw_schedule(engine, 0, &entry_kind, NULL, NULL), -ECHILD);
	must(tw_schedule_at(engine, 0, &entry_kind, NULL, NULL), -ECHILD);
	must(tw_engine_start(engine), -ECHILD);
	must(tw_engine_flush(engine, TW_NEVER), -ECHILD);
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER), -ECHILD);
	must(tw_engine_pending(engine), -ECHILD);
	must(tw_engine_state(engine), -ECHILD);
	must(tw_stats_get(engine, &stats), -ECHILD);
	must(tw_engine_watch(engine), -ECHILD);
	must(tw_engine_now(engine) >= 0, true);
}

static void child_asks_handle(struct tw_handle handle)
{
	struct tw_timeout timeout = {.size = sizeof timeout};
	struct tw_due due = {.handle = handle, .kind = &entry_kind};

	must(tw_cancel(handle), -ECHILD);
	must(tw_cancel_wait(handle, TW_NEVER), -ECHILD);
	must(tw_reschedule(handle, 0), -ECHILD);
	must(tw_reschedule_at(handle, 0), -ECHILD);
	must(tw_timeout_state(handle), -ECHILD);
	must(tw_timeout_get(handle, &timeout), -ECHILD);
	must(tw_due_run(&due), -ECHILD);
}

static void child_asks_process(void)
{
	struct tw_clock *clock = NULL;

	must(tw_version(), TW_VERSION);
	must(tw_thread_attach(), 0);
	must(tw_memory_reserve(10), 0);
	must(tw_memory_slab_bytes() > 0, true);
	must(tw_clock_create_virtual(0, &clock), 0);
	must(tw_clock_set(clock, 1), 0);
	must(tw_clock_destroy(clock), 0);
	must(tw_thread_detach(), 0);
}

static void on_own(struct tw_handle self, void *arg)
{
	(void)self;
	atomic_fetch_add((atomic_int *)arg, 1);
}

/* Creates and uses an engine of the child. The create takes over the library for the child. */
static void child_creates(void)
{
	static const struct tw_kind own_kind = TW_KIND(on_own, NULL);
	struct tw_engine *engine = NULL;
	atomic_int runs = 0;

	heir_threads_begin();
	must(tw_engine_create(NULL, &engine), 0);
	for (int i = 0; i < 10; i++)
		must(tw_schedule(engine, 0, &own_kind, &runs, NULL), 0);
	must(tw_engine_flush(engine, TW_NEVER), 0);
	must(atomic_load(&runs), 10);
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	must(tw_engine_destroy(engine), 0);
}

static void child_destroys(void)
{
	must(tw_clock_set(published_clock, INT64_MAX - 1), 0);
	must(tw_clock_destroy(published_clock), -EBUSY);
	must(tw_engine_destroy(published_moved), 0);
	must(tw_engine_destroy(published_real), 0);
	must(tw_clock_destroy(published_clock), 0);
}

static void child_run(void)
{
	unsigned number;

	for (number = 0; number < ledger.count && number < 1000; number += 50)
		if (ledger.entry[number].accepted)
			child_asks_handle(ledger.entry[number].handle);
	if (published_real != NULL) {
		child_asks_engine(published_real);
		child_asks_engine(published_moved);
		child_asks_process();
	}
	/*
	 * Not with a sanitizer: another thread may have held a lock of the sanitizer's allocator at
	 * the fork, and the child would wait for that lock for ever.
	 */
	if (PLAIN_END_POSSIBLE)
		child_creates();
	if (published_real != NULL) {
		child_asks_engine(published_real);
		child_destroys();
	}
	/* With a sanitizer, exit() would look for leaks, and could wait for such a lock for ever. */
	if (!PLAIN_END_POSSIBLE)
		_exit(0);
	atomic_fetch_add(plain_ends, 1);
	exit(0);
}

/*
 * Returns the child's status. Kills a child that hangs, because it may have blocked all signals and
 * then no alarm would end it.
 */
static int child_await(pid_t child)
{
	int64_t limit_ns = race_now_ns() + HUNG_NS;
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(child, &status, WNOHANG)) == 0) {
		if (race_now_ns() > limit_ns)
			(void)kill(child, SIGKILL);
		tour_sleep_ns(50000);
	}
	RACE_CHECK(ended == child);
	return status;
}

static void fork_once(const char *where)
{
	int status;
	pid_t child;

	(void)pthread_mutex_lock(&published_lock);
	child = fork();
	if (child == 0)
		child_run();
	(void)pthread_mutex_unlock(&published_lock);
	RACE_CHECK(child > 0);
	status = child_await(child);
	if (status != 0)
		fprintf(stderr, "forked %s: status 0x%x\n", where != NULL ? where : "anywhere",
			(unsigned)status);
	RACE_CHECK(status == 0);
	atomic_fetch_add(&forks, 1);
}

static void *forker_body(void *arg)
{
	is_forker = true;
	while (!atomic_load(&over)) {
		const char *where = atomic_load(&standing);

		if (where == NULL && visits_wanted != 0) {
			tour_sleep_ns(20000);
			continue;
		}
		fork_once(where);
		atomic_store(&standing, NULL);
	}
	return arg;
}

static void arm(void *context)
{
	(void)context;
	atomic_store(&over, false);
	RACE_CHECK(tour_thread_make(forker_body, NULL, &forker));
}

static void relent(void *context)
{
	(void)context;
	if (!atomic_exchange(&over, true))
		RACE_CHECK(pthread_join(forker, NULL) == 0);
}

static long long injected(void *context)
{
	size_t number;

	(void)context;
	for (number = 0; number < PLACES && places[number].name != NULL; number++)
		printf("  forked %u times at %s\n", places[number].visits, places[number].name);
	printf("  %lld children ended by exit\n", (long long)*plain_ends);
	fflush(stdout);
	RACE_CHECK(!PLAIN_END_POSSIBLE || *plain_ends > 0);
	return forks;
}

static void fork_run(struct report *report, const char *name, unsigned visits, unsigned repeats)
{
	struct tour_plan plan = {
		.name = name,
		.course = TOUR_STOPS_IN_FAULT,
		.arm = arm,
		.relent = relent,
		.injected = injected,
		.publish = publish,
		.repeats = repeats,
	};

	visits_wanted = visits;
	report_tour(report, &plan);
}

int main(int argc, char **argv)
{
	struct report report = {.exhaustive = argc > 1 && strcmp(argv[1], "long") == 0};

	plain_ends = mmap(NULL, sizeof *plain_ends, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	RACE_CHECK(plain_ends != MAP_FAILED);
	fork_run(&report, "fork at each named point", report.exhaustive ? 300 : 6, 10);
	fork_run(&report, "fork at any moment", 0, report.exhaustive ? 300 : 10);
	printf("%d faults, %d failed, %lld lost\n", report.rows, report.bad_rows, report.lost);
	return report.rows != 2 || report.bad_rows != 0;
}
