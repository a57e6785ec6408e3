/* SPDX-License-Identifier: MIT */
/*
 * One thread is stopped at a test point inside a public call. While it stands there, every call of
 * every other thread must complete, and what is in the wheel must fire on time.
 *
 * The known exceptions, each shown here with what it delays:
 *   - between exchange and link of a push, later pushes of the same lane are not seen: with a lane
 *     per thread, that is the stopped thread alone;
 *   - inside a read-side section (every push is), stop waits: it answers -ETIMEDOUT, and ends when
 *     the thread goes on;
 *   - between start's change of state and the making of the thread, nothing of that engine fires, as
 *     it has no worker yet; schedules and cancels complete;
 *   - a thread stopped inside stop itself, before it has closed the engine, is waited for by other
 * stops.
 *
 * Seen to fail: with tickets that wait for a cut of any lane (settle of other threads hung).
 */
#include "base/test_point.h"
#include "slowdown.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>
#include <unistd.h>

enum {
	WHEELED = 64,
	ON_TIME_MS = 60,
	TRIES = 200000,
	/* Generous: a loaded machine is late by itself; the thread stands for much longer. */
	LATE_MS = 1500,
};

/* Whether stop ends while the thread stands. */
enum stop_answer { STOP_ENDS, STOP_WAITS };

struct freeze {
	const char *call;
	void (*run)(void);
	const char *point;
	enum stop_answer stop;
	bool fresh; /* the engine is not started yet */
};

static struct tw_engine *engine;
static const struct freeze *current;
static _Thread_local bool is_victim;
static _Atomic bool frozen, released, victim_done;
static _Atomic uint64_t fired, handed_back;
static uint64_t accepted, cancelled; /* by the main thread */
static uint64_t victim_accepted, victim_cancelled;

static void fail(const char *what)
{
	fprintf(stderr, "frozen in %s at %s: %s\n", current->call, current->point, what);
	fflush(NULL);
	_exit(1);
}

static void nap(void)
{
	(void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

void twi_test_point(const char *name)
{
	if (!is_victim || frozen || strcmp(name, current->point) != 0)
		return;
	atomic_store(&frozen, true);
	while (!atomic_load(&released))
		nap();
}

static void on_expire(struct tw_handle handle, void *arg)
{
	(void)handle;
	(void)arg;
	atomic_fetch_add(&fired, 1);
}

static void on_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)kind;
	(void)arg;
	(void)remaining_ns;
	atomic_fetch_add(&handed_back, 1);
}

static const struct tw_kind kind = TW_KIND(on_expire, NULL);

/* What the victim does, over and over, until it stands at the point. */

static struct tw_handle victim_schedule_one(void)
{
	struct tw_handle handle = {0};

	if (tw_schedule(engine, TW_NEVER, &kind, NULL, &handle) == 0)
		victim_accepted++;
	return handle;
}

static void run_schedule(void)
{
	(void)victim_schedule_one();
}

static void run_cancel(void)
{
	struct tw_handle handle = victim_schedule_one();

	/* Alternately in ingress and in the wheel. */
	if (victim_accepted % 2 == 0)
		(void)tw_engine_settle(engine, TW_NEVER);
	victim_cancelled += handle.birth != 0 && tw_cancel(handle) == TW_CANCEL_DONE;
}

static void run_settle(void)
{
	(void)tw_engine_settle(engine, TW_NEVER);
}

static void run_detach(void)
{
	(void)victim_schedule_one();
	(void)tw_thread_detach();
}

static void run_start(void)
{
	(void)tw_engine_start(engine);
}

static void run_stop(void)
{
	(void)tw_engine_stop(engine, on_hand_back, NULL, 0);
}

static const struct freeze freezes[] = {
	{"schedule", run_schedule, "pool:refill", STOP_ENDS, false},
	{"schedule", run_schedule, "slab:installing", STOP_ENDS, false},
	{"schedule", run_schedule, "schedule:open", STOP_WAITS, false},
	{"schedule", run_schedule, "mpsc_push:exchanged", STOP_WAITS, false},
	{"schedule", run_schedule, "schedule:pushed", STOP_WAITS, false},
	{"cancel", run_cancel, "cancel:read", STOP_WAITS, false},
	{"cancel", run_cancel, "cancel:won", STOP_WAITS, false},
	{"settle", run_settle, "park:waking", STOP_ENDS, false},
	{"settle", run_settle, "settle:waiting", STOP_ENDS, false},
	{"detach", run_detach, "depot:giving", STOP_ENDS, false},
	{"start", run_start, "start:starting", STOP_WAITS, true},
	{"first schedule", run_schedule, "start:starting", STOP_WAITS, true},
	{"stop", run_stop, "stop:claimed", STOP_WAITS, false},
	{"stop", run_stop, "stop:closed", STOP_ENDS, false},
};

static void *victim_main(void *argument)
{
	(void)argument;
	is_victim = true;
	for (uint64_t try = 0; try < TRIES && !atomic_load(&frozen); try++)
		current->run();
	atomic_store(&victim_done, true);
	return NULL;
}

static void wheel_fill(void)
{
	for (int i = 0; i < WHEELED; i++) {
		if (tw_schedule(engine, ON_TIME_MS * INT64_C(1000000), &kind, NULL, NULL) != 0)
			fail("the wheel could not be filled");
		accepted++;
	}
	if (tw_engine_settle(engine, TW_NEVER) != 0)
		fail("the engine did not settle");
}

/* Every public call that a server makes, by another thread than the one that stands. */
static void others_call(void)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct tw_timeout seen = {.size = sizeof seen};
	struct tw_handle handle;
	int result;

	for (int i = 0; i < 1000; i++) {
		result = i % 2 == 0 ? tw_schedule(engine, TW_NEVER, &kind, NULL, &handle)
				    : tw_schedule_at(engine, TW_NEVER, &kind, NULL, &handle);
		if (result == -ESHUTDOWN)
			continue;
		if (result != 0 || tw_timeout_get(handle, &seen) != 0 ||
		    tw_timeout_state(handle) != TW_STATE_INIT)
			fail("a schedule of another thread failed");
		accepted++;
		if (i % 100 == 50 && !current->fresh && tw_engine_settle(engine, TW_NEVER) != 0)
			fail("a settle of another thread failed");
		if ((i % 3 == 0 ? tw_cancel_wait(handle, TW_NEVER) : tw_cancel(handle)) !=
		    TW_CANCEL_DONE)
			fail("a cancel of another thread failed");
		cancelled++;
	}
	if (tw_stats_get(engine, &stats) != 0 || tw_engine_pending(engine) < 0 ||
	    tw_engine_state(engine) < 0 || tw_engine_start(engine) == -EINVAL)
		fail("a question of another thread failed");
	(void)tw_thread_detach();
	(void)tw_thread_attach();
}

static int64_t now_ms(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000) + now.tv_nsec / 1000000;
}

/* What was in the wheel fires (or, in a stop, is handed back) while the thread stands. */
static int64_t wheel_wait(int64_t begin_ms)
{
	while (atomic_load(&fired) + atomic_load(&handed_back) < WHEELED) {
		if (now_ms() - begin_ms > ON_TIME_MS + LATE_MS * (int64_t)slowdown())
			fail("timeouts in the wheel are late");
		nap();
	}
	return now_ms() - begin_ms - ON_TIME_MS;
}

static void stop_while_frozen(void)
{
	int result = tw_engine_stop(engine, on_hand_back, NULL, INT64_C(100000000));

	if (result != (current->stop == STOP_ENDS ? 0 : -ETIMEDOUT))
		fail(result == 0 ? "stop ended, and should have waited" : "stop did not end");
}

static void freeze_account(void)
{
	if (accepted + victim_accepted !=
	    atomic_load(&fired) + atomic_load(&handed_back) + cancelled + victim_cancelled)
		fail("a timeout was lost, or ended twice");
}

static void state_reset(const struct freeze *freeze)
{
	current = freeze;
	frozen = released = victim_done = false;
	fired = handed_back = 0;
	accepted = cancelled = victim_accepted = victim_cancelled = 0;
}

static void freeze_run(const struct freeze *freeze)
{
	pthread_t victim;
	int64_t late_ms = 0;
	int64_t begin_ms;

	state_reset(freeze);
	if (tw_engine_create(NULL, &engine) != 0)
		fail("no engine");
	begin_ms = now_ms();
	if (!freeze->fresh)
		wheel_fill();
	if (pthread_create(&victim, NULL, victim_main, NULL) != 0)
		fail("no thread");
	while (!atomic_load(&frozen)) {
		if (atomic_load(&victim_done))
			fail("the point was never passed");
		nap();
	}
	others_call();
	if (!freeze->fresh)
		late_ms = wheel_wait(begin_ms);
	stop_while_frozen();
	atomic_store(&released, true);
	(void)pthread_join(victim, NULL);
	if (tw_engine_stop(engine, on_hand_back, NULL, TW_NEVER) != 0)
		fail("stop did not end");
	freeze_account();
	if (tw_engine_destroy(engine) != 0)
		fail("destroy failed");
	printf("%-15s %-20s others complete, wheel at most %3ld ms late, stop %s\n", freeze->call,
	       freeze->point, (long)late_ms,
	       freeze->stop == STOP_ENDS ? "ends" : "waits for the thread");
}

int main(void)
{
	for (size_t i = 0; i < sizeof freezes / sizeof freezes[0]; i++) {
		alarm(30 * slowdown());
		freeze_run(&freezes[i]);
	}
	return 0;
}
