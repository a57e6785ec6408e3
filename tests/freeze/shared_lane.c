/* SPDX-License-Identifier: MIT */
/*
 * Threads beyond the near numbers share a lane if there is no memory for lanes of their own. One of
 * the lane's threads stops in the middle of a push, first of a schedule, then of a cancel. This
 * cuts the lane: pushes of other threads to this lane stay hidden from the worker until the stopped
 * thread continues. Meanwhile the calls of the other threads must complete, and timeouts of other
 * lanes must fire. The worker must sometimes look again, without spinning, and a flush must report
 * that the worker has not seen everything. When the stopped thread continues, the worker must see
 * all pushes. A thread stopped in the middle of a batch hides no pushes of other threads, because
 * its chain is private until it is pushed.
 *
 * Seen to fail with these defects:
 * - the worker serves tickets although a lane is cut, so flush returns 0;
 * - the worker stays awake for these tickets, so it spins;
 * - the worker does not look at a cut lane again before the next tick, so a thread that waits in a
 *   flush is not notified.
 */
#include "no_lanes.h"
#include "race.h"
#include "slowdown.h"
#include "stand.h"

#include <errno.h>
#include <pthread.h>
#include <tickwheel.h>

enum { HOLDERS = 70, NS_PER_MS = 1000000, LOOK_MS = 100, PATIENCE_MS = 20000 };

static struct tw_engine *engine;
static struct stand stand;
static _Atomic bool holders_go;
static _Atomic int holders_there, fired;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* The job of one thread: it schedules a timeout that is due, or cancels one. */
struct job {
	struct tw_handle victim; /* the timeout to cancel; zeros: the job schedules */
	bool stands;
	bool batch; /* whether the job schedules two timeouts by one call */
};

static const struct tw_item two_due[2] = {{0, &kind, NULL}, {0, &kind, NULL}};

static void *job_main(void *argument)
{
	const struct job *job = argument;

	RACE_CHECK(tw_thread_attach() == 0);
	if (job->stands)
		stand_arm(&stand);
	if (job->batch)
		RACE_CHECK(tw_schedule_many(engine, two_due, 2, NULL, NULL) == 2);
	else if (job->victim.node == NULL)
		RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	else
		RACE_CHECK(tw_cancel(job->victim) == TW_CANCEL_DONE);
	return NULL;
}

static pthread_t job_begin(struct job *job)
{
	pthread_t thread;

	RACE_CHECK(pthread_create(&thread, NULL, job_main, job) == 0);
	return thread;
}

static void *holder_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_thread_attach() == 0);
	atomic_fetch_add(&holders_there, 1);
	while (!atomic_load(&holders_go))
		nap();
	return NULL;
}

static uint64_t turns(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	return stats.turns;
}

static void fired_wait(int count)
{
	while (atomic_load(&fired) < count)
		nap();
}

/*
 * Stops the first job. Meanwhile the second completes, but its push is hidden. A third job, in
 * another lane, is served.
 */
static void round_run(struct job *first, struct job *second, int hidden)
{
	int before = atomic_load(&fired);
	pthread_t threads[2];
	uint64_t begin;

	stand = (struct stand){.point = "mpsc_push:exchanged"};
	first->stands = true;
	threads[0] = job_begin(first);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	threads[1] = job_begin(second);
	RACE_CHECK(pthread_join(threads[1], NULL) == 0);
	RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	fired_wait(before + 1);
	begin = turns();
	RACE_CHECK(tw_engine_flush(engine, LOOK_MS * NS_PER_MS) == -ETIMEDOUT);
	RACE_CHECK(turns() - begin <= 4 * LOOK_MS * slowdown());
	RACE_CHECK(atomic_load(&fired) == before + 1);
	stand_release(&stand);
	RACE_CHECK(pthread_join(threads[0], NULL) == 0);
	fired_wait(before + 1 + hidden);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
}

/*
 * Stops a thread in the middle of a batch. Other threads' pushes to the lane must be seen
 * meanwhile, and must fire.
 */
static void batch_run(void)
{
	struct job jobs[2] = {{.stands = true, .batch = true}, {.stands = false}};
	int before = atomic_load(&fired);
	pthread_t threads[2];

	stand = (struct stand){.point = "batch:chained"};
	threads[0] = job_begin(&jobs[0]);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	threads[1] = job_begin(&jobs[1]);
	RACE_CHECK(pthread_join(threads[1], NULL) == 0);
	fired_wait(before + 1);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(atomic_load(&fired) == before + 1);
	stand_release(&stand);
	RACE_CHECK(pthread_join(threads[0], NULL) == 0);
	fired_wait(before + 3);
}

static void *flusher_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	return NULL;
}

/*
 * Makes a cut while the next tick is an hour away. A thread that already waits in a flush does not
 * wake the worker again, so the worker must look again by itself.
 */
static void far_tick_run(void)
{
	struct job jobs[2] = {{.stands = true}, {.stands = false}};
	struct tw_options options;
	pthread_t threads[3];

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = UINT64_C(3600) * 1000 * NS_PER_MS;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	/* The new worker takes the lane that the last one has given back. */
	RACE_CHECK(tw_engine_start(engine) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	stand = (struct stand){.point = "mpsc_push:exchanged"};
	threads[0] = job_begin(&jobs[0]);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	threads[1] = job_begin(&jobs[1]);
	RACE_CHECK(pthread_join(threads[1], NULL) == 0);
	RACE_CHECK(pthread_create(&threads[2], NULL, flusher_main, NULL) == 0);
	/*
	 * Gives the flusher time to begin its wait. If the time is too short, the test only checks
	 * less.
	 */
	for (int i = 0; i < 100; i++)
		nap();
	stand_release(&stand);
	RACE_CHECK(pthread_join(threads[0], NULL) == 0);
	RACE_CHECK(pthread_join(threads[2], NULL) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

int main(void)
{
	struct job jobs[4] = {{.stands = false}};
	pthread_t holders[HOLDERS];

	race_watchdog(60);
	no_lanes_set();
	RACE_CHECK(tw_engine_create(NULL, &engine) == 0);
	for (int i = 2; i < 4; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &jobs[i].victim) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	for (int i = 0; i < HOLDERS; i++)
		RACE_CHECK(pthread_create(&holders[i], NULL, holder_main, NULL) == 0);
	while (atomic_load(&holders_there) < HOLDERS)
		nap();
	round_run(&jobs[0], &jobs[1], 2);
	round_run(&jobs[2], &jobs[3], 0);
	batch_run();
	RACE_CHECK(tw_engine_pending(engine) == 0);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	far_tick_run();
	atomic_store(&holders_go, true);
	for (int i = 0; i < HOLDERS; i++)
		RACE_CHECK(pthread_join(holders[i], NULL) == 0);
	return 0;
}
