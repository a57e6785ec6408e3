/* SPDX-License-Identifier: MIT */
/*
 * Stop and destroy must wait for every thread that may still touch the engine. In each test a
 * thread is stopped at a point where it may still touch the engine. The stop or destroy of the
 * engine must not end before the thread continues.
 *
 * twi_worker_finish() waits for two grace periods. In a test of the second grace period, the
 * stopped thread's section must begin after the first grace period has ended. So a hand-back lets
 * the thread begin that section, and waits until the thread has stopped.
 *
 * Seen to fail with these defects (in parentheses: the tests):
 * - twi_worker_finish() waits for no second grace period (both cancels, in the wheel and in a ring;
 *   the executor);
 * - twi_worker_finish() waits for the second grace period before in_flight_wait() (the executor
 *   that stop waits for);
 * - in_flight_wait() does not check the count again after it was woken (the executor that stop
 *   waits for);
 * - in_flight_end() has no section (the executor);
 * - twi_worker_finish() sets `sweeping` after the first grace period, or cancel does not read it
 *   (after the announcement);
 * - cancel reads `sweeping` after its swap (before the announcement);
 * - twi_worker_died() has no section (the worker that died);
 * - clock_detach() waits for no grace period (the mover);
 * - twi_worker_finish() does not wait for pins, or the rescheduler sets no pin (both reschedules).
 */
#include "base/atomic.h"
#include "race.h"
#include "rings.h"
#include "stand.h"
#include "thread/futex.h"
#include "worker/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel.h>

#define NS_PER_MS INT64_C(1000000)

enum {
	PATIENCE_MS = 20000,
	/* how long a thread must remain in its wait */
	WAITS_MS = 50,
};

static struct tw_engine *engine;
static struct tw_clock *virtual_clock;
static struct stand stand;
static struct tw_handle handle[2];
static struct tw_due due;
static _Atomic uint32_t fired, unexpired, dispatched;
/* A thread that the hand-back starts. It cancels the timeout that was not handed back yet. */
static pthread_t other;
static _Atomic bool other_begun;
static struct tw_handle other_handle;
static int other_result;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void engine_make(struct tw_options *options)
{
	stand.stands = stand.released = false;
	fired = unexpired = dispatched = 0;
	other_begun = false;
	RACE_CHECK(tw_clock_create_virtual(0, &virtual_clock) == 0);
	options->clock = virtual_clock;
	RACE_CHECK(tw_engine_create(options, &engine) == 0);
}

static void engine_open(tw_dispatch_hook *dispatch, tw_thread_hook *thread)
{
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.dispatch = dispatch;
	options.thread = thread;
	engine_make(&options);
}

static void engine_close(const char *what)
{
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	RACE_CHECK(tw_clock_destroy(virtual_clock) == 0);
	printf("%s\n", what);
}

static void *cancel_main(void *argument)
{
	(void)argument;
	stand_arm(&stand);
	other_result = tw_cancel(other_handle);
	stand_disarm();
	return NULL;
}

static void *executor_main(void *argument)
{
	(void)argument;
	stand_arm(&stand);
	other_result = tw_due_run(&due);
	stand_disarm();
	return NULL;
}

/* Handles a hand-back. The first one comes after the first grace period. */
static void on_unexpired(void *context, struct tw_handle self, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	void *(**other_main)(void *) = context;

	(void)its_kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&unexpired, 1);
	if (other_main == NULL || atomic_exchange(&other_begun, true))
		return;
	other_handle = self.node == handle[0].node ? handle[1] : handle[0];
	RACE_CHECK(pthread_create(&other, NULL, *other_main, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
}

/* Checks that stop does not end while the thread is stopped, and ends when the thread continues. */
static void stop_waits(void *(*other_main)(void *))
{
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, &other_main, 0) == -ETIMEDOUT);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, WAITS_MS * NS_PER_MS) == -ETIMEDOUT);
	RACE_CHECK(tw_engine_state(engine) == TW_ENGINE_STOPPING);
	stand_release(&stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(pthread_join(other, NULL) == 0);
}

/* A thread that cancels a timeout of the wheel is held inside tw_cancel while stop sweeps. */
static void cancel_while_swept(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	stand.point = "cancel:swapped";
	engine_open(NULL, NULL);
	RACE_CHECK(tw_engine_start(engine) == 0 && tw_engine_flush(engine, TW_NEVER) == 0);
	for (int i = 0; i < 2; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handle[i]) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	stop_waits(cancel_main);
	RACE_CHECK(other_result == TW_CANCEL_DONE && unexpired == 1);
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.cancelled == 1 && stats.unexpired == 1 && stats.pending == 0);
	engine_close("stop waits for a cancel in the wheel that began in the sweep");
}

static size_t accept_one(void *context, const struct tw_due *offered, size_t count)
{
	(void)context;
	RACE_CHECK(count == 1);
	due = offered[0];
	atomic_store(&dispatched, 1);
	return 1;
}

/* Opens an engine with one timeout that an executor has, and one in the wheel. */
static void executor_open(void)
{
	stand.point = "due:counted";
	engine_open(accept_one, NULL);
	RACE_CHECK(tw_schedule(engine, 1, &kind, NULL, NULL) == 0);
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handle[0]) == 0);
	RACE_CHECK(tw_clock_set(virtual_clock, 2 * NS_PER_MS) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(atomic_load(&dispatched) == 1);
}

static void executor_while_swept(void)
{
	executor_open();
	stop_waits(executor_main);
	RACE_CHECK(other_result == 0 && fired == 1 && unexpired == 1);
	engine_close("stop waits for an executor that has counted its callback down");
}

static void some_time(void)
{
	for (int64_t until_ms = now_ms() + WAITS_MS; now_ms() < until_ms;)
		nap();
}

/*
 * Lets the executor's section begin when stop already waits for the executor. A futex wait may end
 * without a wake-up, so stop must then check the count again.
 */
static void executor_that_is_waited_for(void)
{
	struct twi_worker *worker;

	executor_open();
	worker = (struct twi_worker *)(void *)engine;
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	some_time();
	RACE_CHECK(unexpired == 1);
	twi_futex_wake(&worker->in_flight);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, WAITS_MS * NS_PER_MS) == -ETIMEDOUT);
	RACE_CHECK(pthread_create(&other, NULL, executor_main, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	twi_futex_wake(&worker->in_flight);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, WAITS_MS * NS_PER_MS) == -ETIMEDOUT);
	stand_release(&stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(pthread_join(other, NULL) == 0);
	RACE_CHECK(other_result == 0 && fired == 1);
	engine_close("stop waits for an executor, awake or not");
}

static void on_arm(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	stand_arm(&stand);
}

static const struct tw_kind arm = TW_KIND(on_arm, NULL);

static uint64_t pushed_to_rings(const struct twi_worker *worker)
{
	uint64_t pushed = 0;

	for (int i = 0; i < TWI_LANES; i++)
		pushed += twi_ring_pushed(&worker->near.lane[i].ring);
	return pushed;
}

/*
 * Stops the worker when it has announced the sweep (`sweeping` is set). A cancel that begins then
 * must leave the node to the sweep. It must not push the node, because the worker may already have
 * emptied the queues for the last time.
 */
static void cancel_after_the_announcement(void)
{
	struct twi_worker *worker;
	uint64_t before;

	stand.point = "finish:sweeping";
	engine_open(NULL, NULL);
	worker = (struct twi_worker *)(void *)engine;
	for (int i = 0; i < 2; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handle[i]) == 0);
	RACE_CHECK(tw_schedule(engine, 1, &arm, NULL, NULL) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(tw_clock_set(virtual_clock, 2 * NS_PER_MS) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	before = pushed_to_rings(worker);
	RACE_CHECK(tw_cancel(handle[0]) == TW_CANCEL_DONE);
	for (int i = 0; i < TWI_LANES; i++)
		RACE_CHECK(twi_mpsc_last_sc(&worker->near.lane[i].cancelled) ==
			   &worker->near.lane[i].cancelled_out.stub);
	RACE_CHECK(pushed_to_rings(worker) == before);
	stand_release(&stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(unexpired == 1);
	engine_close("cancels leave their nodes to a sweep that is announced");
}

static _Atomic bool pushed;

static void on_passed(const char *point)
{
	if (strcmp(point, "ring_push:written") == 0)
		atomic_store(&pushed, true);
}

/*
 * Stops a cancel that has read `sweeping` before the announcement. It must push the node to the
 * worker, even if the announcement comes before its swap. The timeout may be out of the wheel
 * already, and then only the queue has it.
 */
static void cancel_before_the_announcement(void)
{
	struct twi_worker *worker;

	stand.point = "cancel:swapped";
	engine_open(NULL, NULL);
	worker = (struct twi_worker *)(void *)engine;
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &other_handle) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
	atomic_store(&pushed, false);
	stand.passed = on_passed;
	RACE_CHECK(pthread_create(&other, NULL, cancel_main, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	while (!twi_load_acquire(&worker->sweeping))
		nap();
	stand_release(&stand);
	RACE_CHECK(pthread_join(other, NULL) == 0);
	stand.passed = NULL;
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(other_result == TW_CANCEL_DONE && unexpired == 0);
	RACE_CHECK(atomic_load(&pushed));
	engine_close("cancels that looked before tell the worker");
}

static struct stand finisher_stand;
static _Atomic bool owned, swept;

/*
 * The main function of a loop's owner. It takes nothing out of a ring before it finishes the
 * engine.
 */
static void *finisher_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_loop_enter(engine) == 0 && tw_engine_poll(engine, 0) == 0);
	atomic_store(&owned, true);
	while (!atomic_load(&swept))
		nap();
	stand_arm(&finisher_stand);
	RACE_CHECK(tw_engine_poll(engine, 0) == -ESHUTDOWN);
	stand_disarm();
	return NULL;
}

static void loop_open(pthread_t *ret_finisher)
{
	struct tw_options options;

	finisher_stand = (struct stand){.point = "collect:seen"};
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.flags = TW_ENGINE_LOOP;
	engine_make(&options);
	engine_use_rings(engine);
	RACE_CHECK(pthread_create(ret_finisher, NULL, finisher_main, NULL) == 0);
	while (!atomic_load(&owned))
		nap();
}

/*
 * Stops a cancel in a ring. Two timeouts are in the ring when the sweep begins. The finisher reads
 * the first one while a canceller takes the second. After that no thread finds the second, and its
 * canceller has stopped before it touches the engine.
 */
static void cancel_in_a_ring(void)
{
	pthread_t finisher;

	stand.point = "cancel:swapped";
	loop_open(&finisher);
	for (int i = 0; i < 2; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &handle[i]) == 0);
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	atomic_store(&swept, true);
	RACE_CHECK(stand_await(&finisher_stand, PATIENCE_MS));
	other_handle = handle[1];
	RACE_CHECK(pthread_create(&other, NULL, cancel_main, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	stand_release(&finisher_stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, WAITS_MS * NS_PER_MS) == -ETIMEDOUT);
	stand_release(&stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(pthread_join(other, NULL) == 0 && pthread_join(finisher, NULL) == 0);
	RACE_CHECK(other_result == TW_CANCEL_DONE && unexpired == 1);
	engine_close("stop waits for a cancel in a ring that began in the sweep");
}

static void *postpone_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_thread_attach() == 0);
	stand_arm(&stand);
	other_result = tw_reschedule_at(other_handle, TW_NEVER);
	stand_disarm();
	return NULL;
}

/*
 * Stops the rescheduling thread. Meanwhile all other timeouts are handed back, and another engine
 * is stopped and destroyed.
 */
static void postponement(const char *point, int outcome, const char *what)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct tw_engine *bystander;

	stand.point = point;
	engine_open(NULL, NULL);
	RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &other_handle) == 0);
	RACE_CHECK(tw_engine_create(NULL, &bystander) == 0);
	RACE_CHECK(pthread_create(&other, NULL, postpone_main, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	RACE_CHECK(tw_engine_start(bystander) == 0);
	RACE_CHECK(tw_engine_stop(bystander, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(tw_engine_destroy(bystander) == 0);
	while (atomic_load(&unexpired) == 0)
		nap();
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, WAITS_MS * NS_PER_MS) == -ETIMEDOUT);
	stand_release(&stand);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, PATIENCE_MS * NS_PER_MS) == 0);
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(pthread_join(other, NULL) == 0);
	RACE_CHECK(other_result == outcome);
	RACE_CHECK(stats.rescheduled == (outcome == TW_RESCHEDULE_DONE));
	engine_close(what);
}

static void postponements(void)
{
	postponement("reschedule:seen", TW_RESCHEDULE_CANCELLED,
		     "stop waits for a reschedule that is about to swap");
	postponement("reschedule:swapped", TW_RESCHEDULE_DONE,
		     "stop waits for a reschedule that has not counted");
}

/*
 * Stands for a user's hook that creates threads. No thread joins this one, so only the library can
 * wait for it.
 */
static int detached_thread(void *context, void *(*body)(void *), void *arg)
{
	pthread_t thread;

	(void)context;
	RACE_CHECK(pthread_create(&thread, NULL, body, arg) == 0);
	return pthread_detach(thread);
}

static void on_end_thread(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	stand_arm(&stand);
	pthread_exit(NULL);
}

static const struct tw_kind end_thread = TW_KIND(on_end_thread, NULL);

static void *stop_main(void *argument)
{
	(void)argument;
	other_result = tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	atomic_store(&other_begun, true);
	return NULL;
}

static void worker_that_died(void)
{
	stand.point = "died:told";
	engine_open(NULL, detached_thread);
	RACE_CHECK(tw_schedule(engine, 1, &end_thread, NULL, NULL) == 0);
	RACE_CHECK(tw_clock_set(virtual_clock, 2 * NS_PER_MS) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_state(engine) == TW_ENGINE_FAILED);
	RACE_CHECK(pthread_create(&other, NULL, stop_main, NULL) == 0);
	for (int64_t until_ms = now_ms() + WAITS_MS; now_ms() < until_ms;)
		RACE_CHECK(!atomic_load(&other_begun));
	stand_release(&stand);
	RACE_CHECK(pthread_join(other, NULL) == 0);
	RACE_CHECK(other_result == 0);
	engine_close("stop waits for a worker that has told of its end");
}

static void *mover_main(void *argument)
{
	(void)argument;
	stand_arm(&stand);
	other_result = tw_clock_set(virtual_clock, NS_PER_MS);
	stand_disarm();
	return NULL;
}

static void *destroy_main(void *argument)
{
	(void)argument;
	RACE_CHECK(tw_engine_destroy(engine) == 0);
	atomic_store(&other_begun, true);
	return NULL;
}

/*
 * Stops the thread that moves the clock. The engine was never started. Otherwise a grace period of
 * stop could hide that destroy waits for none.
 */
static void mover_of_the_clock(void)
{
	pthread_t destroyer;

	stand.point = "clock_set:moved";
	engine_open(NULL, NULL);
	RACE_CHECK(pthread_create(&other, NULL, mover_main, NULL) == 0);
	RACE_CHECK(stand_await(&stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	RACE_CHECK(pthread_create(&destroyer, NULL, destroy_main, NULL) == 0);
	for (int64_t until_ms = now_ms() + WAITS_MS; now_ms() < until_ms;)
		RACE_CHECK(!atomic_load(&other_begun));
	stand_release(&stand);
	RACE_CHECK(pthread_join(destroyer, NULL) == 0);
	RACE_CHECK(pthread_join(other, NULL) == 0);
	RACE_CHECK(other_result == 0);
	RACE_CHECK(tw_clock_destroy(virtual_clock) == 0);
	printf("destroy waits for who moves the clock\n");
}

int main(void)
{
	race_watchdog(100);
	cancel_while_swept();
	cancel_in_a_ring();
	executor_while_swept();
	executor_that_is_waited_for();
	cancel_after_the_announcement();
	cancel_before_the_announcement();
	postponements();
	worker_that_died();
	mover_of_the_clock();
	return 0;
}
