/* SPDX-License-Identifier: MIT */
/*
 * A thread stops between its load of a state word and its compare-and-swap. Another thread changes
 * the word meanwhile. The swap must then fail, and the thread must do what the new state requires.
 *
 * Seen to fail with these defects: the compare-and-swap of one function is a load and a store. The
 * test of that function's step finds the defect. The functions are the two named node_transfer()
 * (from the link queue and from the ring), node_expire(), node_take_back(), pending_cancel() (in
 * ingress and in the wheel), due_claim(), word_again(), word_end(), word_wait(), and
 * twi_worker_died().
 */
#include "race.h"
#include "ringless.h"
#include "stand.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <tickwheel.h>

#define NS_PER_MS INT64_C(1000000)
#define PATIENCE_NS (20000 * NS_PER_MS)

enum { PATIENCE_MS = 20000, REUSES = 1000, NAPS = 100 };

static struct tw_engine *engine;
static struct tw_clock *virtual_clock;
static struct stand worker_stand, other_stand;
static struct tw_handle handle, reused;
static struct tw_due due;
static _Atomic bool armed;
static _Atomic uint32_t fired, unexpired, accepted;
static pthread_t other;
static int other_result, run_result;

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

static void on_arm(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	stand_arm(&worker_stand);
	atomic_store(&armed, true);
}

static void on_arm_and_end(struct tw_handle self, void *arg)
{
	on_arm(self, arg);
	pthread_exit(NULL);
}

/*
 * Runs on the worker, which has just got the block of the ended timeout. Schedules until a new
 * timeout has this block.
 */
static void on_reuse(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	reused = (struct tw_handle){0};
	for (int i = 0; i < REUSES && reused.node != handle.node; i++)
		RACE_CHECK(tw_schedule(engine, TW_NEVER, &kind, NULL, &reused) == 0);
}

/* This kind is INLINE, so that it runs on the worker even if there is an executor. */
static const struct tw_kind arm = TW_KIND_INLINE(on_arm, NULL);
static const struct tw_kind arm_and_end = TW_KIND(on_arm_and_end, NULL);
static const struct tw_kind reuse = TW_KIND(on_reuse, NULL);

static void on_unexpired(void *context, struct tw_handle self, const struct tw_kind *its_kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)self;
	(void)its_kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&unexpired, 1);
}

static size_t accept_one(void *context, const struct tw_due *offered, size_t count)
{
	(void)context;
	RACE_CHECK(count == 1);
	due = offered[0];
	atomic_store(&accepted, 1);
	return 1;
}

/* Notes the offered timeout, and rejects it. */
static size_t reject_one(void *context, const struct tw_due *offered, size_t count)
{
	(void)accept_one(context, offered, count);
	return 0;
}

static void open_engine(const char *worker_point, const char *other_point,
			tw_dispatch_hook *dispatch)
{
	struct tw_options options;

	worker_stand = (struct stand){.point = worker_point};
	other_stand = (struct stand){.point = other_point};
	fired = unexpired = accepted = 0;
	armed = false;
	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	RACE_CHECK(tw_clock_create_virtual(0, &virtual_clock) == 0);
	options.clock = virtual_clock;
	options.dispatch = dispatch;
	options.rejection = dispatch == reject_one ? TW_REJECTION_REQUEUE : TW_REJECTION_RUN;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_engine_start(engine) == 0);
	RACE_CHECK(tw_engine_flush(engine, TW_NEVER) == 0);
}

/* Stops the engine, and checks how each timeout ended. */
static void close_engine(const char *what, uint64_t expired, uint64_t cancelled, uint64_t back)
{
	struct tw_stats stats = {.size = sizeof stats};

	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, PATIENCE_NS) == 0);
	RACE_CHECK(tw_stats_get(engine, &stats) == 0);
	RACE_CHECK(stats.expired == expired && stats.cancelled == cancelled);
	RACE_CHECK(stats.unexpired == back && stats.pending == 0);
	RACE_CHECK(atomic_load(&unexpired) == back);
	RACE_CHECK(tw_engine_destroy(engine) == 0 && tw_clock_destroy(virtual_clock) == 0);
	printf("%s\n", what);
}

static void flush(void)
{
	RACE_CHECK(tw_engine_flush(engine, PATIENCE_NS) == 0);
}

static void clock_to(int64_t now_ms_of_engine)
{
	RACE_CHECK(tw_clock_set(virtual_clock, now_ms_of_engine * NS_PER_MS) == 0);
}

static void schedule(int64_t delay_ms, const struct tw_kind *its_kind)
{
	RACE_CHECK(tw_schedule(engine, delay_ms * NS_PER_MS, its_kind, NULL, &handle) == 0);
}

/* Schedules a callback that runs on the worker at 2 ms, and arms the worker's stand there. */
static void arm_worker(void)
{
	RACE_CHECK(tw_schedule(engine, 1, &arm, NULL, NULL) == 0);
	flush();
	clock_to(2);
	while (!atomic_load(&armed))
		nap();
}

static void *cancel_main(void *argument)
{
	(void)argument;
	stand_arm(&other_stand);
	other_result = tw_cancel(handle);
	stand_disarm();
	return NULL;
}

static void *wait_main(void *argument)
{
	(void)argument;
	stand_arm(&other_stand);
	other_result = tw_cancel_wait(handle, PATIENCE_NS);
	stand_disarm();
	return NULL;
}

static void *run_main(void *stand)
{
	stand_arm(stand);
	run_result = tw_due_run(&due);
	stand_disarm();
	return NULL;
}

static void other_start(void *(*body)(void *), struct stand *stand)
{
	RACE_CHECK(pthread_create(&other, NULL, body, stand) == 0);
	RACE_CHECK(stand_await(stand, PATIENCE_MS));
}

static int other_end(struct stand *stand)
{
	stand_release(stand);
	RACE_CHECK(pthread_join(other, NULL) == 0);
	return other_result;
}

/* Stops the worker while it takes the timeout from the ring, or from the link queue. */
static void transfer_against_cancel(const char *point)
{
	open_engine(point, NULL, NULL);
	arm_worker();
	schedule(5, &kind);
	RACE_CHECK(tw_engine_flush(engine, 0) == -ETIMEDOUT);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	stand_release(&worker_stand);
	flush();
	close_engine("transfer looks, cancel takes", 1, 1, 0);
}

/*
 * Stops the worker while it takes a timeout from the ring. Meanwhile the timeout is cancelled, and
 * the canceller uses the node for its next timeout, which must be transferred.
 */
static void transfer_against_reuse(void)
{
	struct tw_handle first;

	open_engine("collect:seen", NULL, NULL);
	arm_worker();
	schedule(5, &kind);
	RACE_CHECK(tw_engine_flush(engine, 0) == -ETIMEDOUT);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
	first = handle;
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	schedule(50, &kind);
	RACE_CHECK(handle.node == first.node && handle.generation != first.generation);
	RACE_CHECK(tw_cancel(first) == TW_CANCEL_STALE);
	stand_release(&worker_stand);
	flush();
	clock_to(9);
	flush();
	RACE_CHECK(fired == 0);
	clock_to(60);
	flush();
	RACE_CHECK(fired == 1);
	close_engine("transfer looks, the block is used again", 2, 1, 0);
}

static void expire_against_cancel(void)
{
	open_engine("expire:seen", NULL, NULL);
	arm_worker();
	schedule(5, &kind);
	flush();
	clock_to(9);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	stand_release(&worker_stand);
	flush();
	RACE_CHECK(fired == 0);
	close_engine("expire looks, cancel takes", 1, 1, 0);
}

static void hand_back_against_cancel(void)
{
	open_engine("hand_back:seen", NULL, NULL);
	arm_worker();
	schedule(5, &kind);
	flush();
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	stand_release(&worker_stand);
	close_engine("hand-back looks, cancel takes", 1, 1, 0);
}

/*
 * Stops a cancel while the timeout is transferred. The cancel must continue like a cancel in the
 * wheel. Does the same without a ring, because a cancel then expects another state.
 */
static void cancel_against_transfer(void)
{
	open_engine(NULL, "cancel:seen", NULL);
	schedule(5, &kind);
	other_start(cancel_main, &other_stand);
	flush();
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_DONE);
	flush();
	clock_to(9);
	flush();
	RACE_CHECK(fired == 0);
	close_engine("cancel looks, transfer takes", 0, 1, 0);
}

static void cancel_against_expire(void)
{
	open_engine(NULL, "cancel:wheeled", NULL);
	schedule(5, &kind);
	flush();
	other_start(cancel_main, &other_stand);
	clock_to(9);
	flush();
	RACE_CHECK(fired == 1);
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_EXPIRED);
	close_engine("cancel looks, expire takes", 1, 0, 0);
}

static void cancel_against_cancel(const char *point, bool in_wheel)
{
	open_engine(NULL, point, NULL);
	schedule(5, &kind);
	if (in_wheel)
		flush();
	other_start(cancel_main, &other_stand);
	RACE_CHECK(tw_cancel(handle) == TW_CANCEL_DONE);
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_CANCELLED);
	close_engine("cancel looks, another cancel takes", 0, 1, 0);
}

/*
 * Stops a cancel while the block of its timeout becomes the block of another timeout. The stale
 * handle must not cancel this other timeout.
 */
static void cancel_against_reuse(const char *point, bool in_wheel)
{
	uint64_t made;

	open_engine(NULL, point, NULL);
	schedule(5, &kind);
	if (in_wheel)
		flush();
	other_start(cancel_main, &other_stand);
	clock_to(9);
	flush();
	RACE_CHECK(fired == 1);
	RACE_CHECK(tw_schedule(engine, 1, &reuse, NULL, NULL) == 0);
	flush();
	clock_to(12);
	flush();
	RACE_CHECK(reused.node == handle.node && reused.generation != handle.generation);
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_STALE);
	RACE_CHECK(tw_timeout_state(reused) == TW_STATE_INIT);
	made = (uint64_t)tw_engine_pending(engine);
	close_engine("cancel looks, the block is used again", 2, 0, made);
}

static void dispatch_one(void)
{
	schedule(5, &kind);
	clock_to(9);
	flush();
	RACE_CHECK(accepted == 1);
}

static void run_against_run(void)
{
	open_engine(NULL, "due:seen", accept_one);
	dispatch_one();
	other_start(run_main, &other_stand);
	RACE_CHECK(tw_due_run(&due) == 0);
	(void)other_end(&other_stand);
	RACE_CHECK(run_result == -ESTALE);
	RACE_CHECK(fired == 1);
	close_engine("a run looks, another run takes", 1, 0, 0);
}

/*
 * Lets the waiter set its bit after the last load of the state word by the run, and before the
 * run's end. The waiter must be woken.
 */
static void end_against_waiter(void)
{
	struct stand run_stand = {.point = "run:ending"};
	pthread_t runner;

	open_engine(NULL, "cancel_wait:waiting", accept_one);
	dispatch_one();
	other_start(run_main, &run_stand);
	runner = other;
	other_start(wait_main, &other_stand);
	stand_release(&other_stand);
	/* Gives the waiter time to fall asleep. */
	for (int i = 0; i < NAPS; i++)
		nap();
	stand_release(&run_stand);
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_EXPIRED);
	RACE_CHECK(pthread_join(runner, NULL) == 0);
	RACE_CHECK(run_result == 0);
	close_engine("the end of a run looks, a waiter comes", 1, 0, 0);
}

static void waiter_against_end(void)
{
	open_engine(NULL, "cancel_wait:seen", accept_one);
	dispatch_one();
	other_start(wait_main, &other_stand);
	RACE_CHECK(tw_due_run(&due) == 0);
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_EXPIRED);
	close_engine("a waiter looks, the run ends", 1, 0, 0);
}

/* Stops the worker just before it makes the timeout pending again. */
static void reject(void)
{
	open_engine("due:again", "cancel_wait:waiting", reject_one);
	arm_worker();
	schedule(5, &kind);
	flush();
	clock_to(9);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
}

static void rejection_against_run(void)
{
	reject();
	RACE_CHECK(tw_due_run(&due) == 0);
	stand_release(&worker_stand);
	flush();
	clock_to(20);
	flush();
	RACE_CHECK(fired == 1);
	close_engine("a rejection looks, a run takes", 2, 0, 0);
}

static void rejection_against_waiter(void)
{
	reject();
	other_start(wait_main, &other_stand);
	stand_release(&other_stand);
	/* Gives the waiter time to fall asleep. */
	for (int i = 0; i < NAPS; i++)
		nap();
	stand_release(&worker_stand);
	RACE_CHECK(other_end(&other_stand) == TW_CANCEL_DONE);
	RACE_CHECK(fired == 0);
	close_engine("a rejection looks, a waiter comes", 1, 1, 0);
}

static void death_against_stop(void)
{
	open_engine("died:seen", NULL, NULL);
	schedule(5, &kind);
	RACE_CHECK(tw_schedule(engine, 1, &arm_and_end, NULL, NULL) == 0);
	flush();
	clock_to(2);
	RACE_CHECK(stand_await(&worker_stand, PATIENCE_MS));
	RACE_CHECK(tw_engine_stop(engine, on_unexpired, NULL, 0) == -ETIMEDOUT);
	stand_release(&worker_stand);
	close_engine("a worker that ends looks, stop takes", 1, 0, 1);
}

int main(void)
{
	race_watchdog(100);
	ringless_set(true);
	transfer_against_cancel("transfer:taken");
	ringless_set(false);
	transfer_against_cancel("collect:seen");
	transfer_against_reuse();
	expire_against_cancel();
	hand_back_against_cancel();
	cancel_against_transfer();
	ringless_set(true);
	cancel_against_transfer();
	cancel_against_cancel("cancel:seen", false);
	cancel_against_reuse("cancel:seen", false);
	ringless_set(false);
	cancel_against_expire();
	cancel_against_cancel("cancel:seen", false);
	cancel_against_cancel("cancel:wheeled", true);
	cancel_against_reuse("cancel:seen", false);
	cancel_against_reuse("cancel:wheeled", true);
	run_against_run();
	end_against_waiter();
	waiter_against_end();
	rejection_against_run();
	rejection_against_waiter();
	death_against_stop();
	return 0;
}
