/* SPDX-License-Identifier: MIT */
/*
 * A thread stops while it holds an entry of a table of keys, or is about to take one. Meanwhile the
 * key is cancelled, replaced or scheduled, the entry's timer expires, or the engine is stopped. No
 * other thread may wait for the stopped thread. When it continues, it must find the changes, and
 * each entry must end once, as the calls reported.
 *
 * Seen to fail with these defects, each at its point:
 * - after a replace in place, a cancel of the old entry ends the new one;
 * - an expiry that finds the entry held is forgotten;
 * - a dead entry keeps its key;
 * - a cancel does not check the life again;
 * - an entry is freed before its timer has expired or was handed back;
 * - the hook of the old entry is not called if the hook of the new entry ends the thread;
 * - an entry is freed before stop has called the timer's finaliser.
 */
#include "layer.h"

#include <errno.h>
#include <string.h>

#define FAR_NS (1000 * (int64_t)TICK_NS)

enum { STAND_PATIENCE_MS = 20000 };

static struct tw_keyed *table;

struct item {
	unsigned runs;
	_Atomic unsigned ended;
	_Atomic int end;
	uint64_t life;
	bool exits; /* its hook ends the thread that calls it */
};

static struct item first, second, third;

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	struct item *item = arg;

	RACE_CHECK(self->runs == ++item->runs && item->ended == 0);
	return TW_KEYED_END;
}

static void on_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct item *item = arg;

	RACE_CHECK(self->runs == item->runs && self->key_bytes == 1);
	atomic_store(&item->end, (int)end);
	RACE_CHECK(atomic_fetch_add(&item->ended, 1) == 0);
	if (item->exits)
		pthread_exit(NULL);
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, on_ended);

static int put(struct item *item, bool replaces, int64_t delay_ns)
{
	if (replaces)
		return tw_keyed_replace(table, "k", 1, delay_ns, &kind, item, &item->life);
	return tw_keyed_schedule(table, "k", 1, delay_ns, &kind, item, &item->life);
}

static void scene_open(bool dispatching)
{
	memset(&first, 0, sizeof first);
	memset(&second, 0, sizeof second);
	memset(&third, 0, sizeof third);
	layer_open(dispatching);
	RACE_CHECK(tw_keyed_create(engine, NULL, &table) == 0);
	RACE_CHECK(tw_engine_start(engine) == 0);
}

/* Opens with the first entry under the key. */
static void scene_open_waiting(int64_t delay_ns)
{
	scene_open(false);
	RACE_CHECK(put(&first, false, delay_ns) == TW_KEYED_DONE);
}

/* Checks that all entries are free: each was given back once. */
static void scene_close(void)
{
	stop();
	RACE_CHECK(tw_keyed_count(table) == 0);
	RACE_CHECK(tw_keyed_destroy(table) == 0);
	layer_close();
}

static void ended_as(const struct item *item, enum tw_keyed_end end, unsigned runs)
{
	RACE_CHECK(item->ended == 1 && item->end == (int)end && item->runs == runs);
}

static void alive(const struct item *item)
{
	RACE_CHECK(item->ended == 0 && item->runs == 0);
}

static int cancel_any(void)
{
	return tw_keyed_cancel(table, "k", 1, TW_KEYED_ANY);
}

static int call_replace(void)
{
	return put(&second, true, FAR_NS);
}

static int call_replace_now(void)
{
	return put(&second, true, 0);
}

static int call_schedule(void)
{
	return put(&first, false, FAR_NS);
}

static int call_cancel(void)
{
	return cancel_any();
}

static int call_cancel_first(void)
{
	return tw_keyed_cancel(table, "k", 1, first.life);
}

static int call_move(void)
{
	return tw_keyed_reschedule(table, "k", 1, 0);
}

/*
 * Stops a replace while a cancel ends the old entry, so that the key is free. The replace then
 * gives the key to the new entry.
 */
static void replace_against_cancel(const char *point, int (*cancel)(void))
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, point, call_replace);
	RACE_CHECK(cancel() == TW_KEYED_RUNNING);
	RACE_CHECK(cancel() == TW_KEYED_ABSENT);
	RACE_CHECK(tw_keyed_get(table, "k", 1, NULL) == TW_KEYED_ABSENT);
	victim_go_on(&victim, TW_KEYED_DONE);
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	alive(&second);
	RACE_CHECK(tw_keyed_cancel(table, "k", 1, second.life) == TW_KEYED_DONE);
	scene_close();
}

/*
 * Stops a replace while a second one finds the entry held. The second adds a new entry, which is
 * replaced later.
 */
static void replace_against_replace(void)
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, "keyed:filled", call_replace);
	RACE_CHECK(put(&third, true, FAR_NS) == TW_KEYED_RUNNING);
	RACE_CHECK(first.ended == 0);
	victim_go_on(&victim, TW_KEYED_REPLACED);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	ended_as(&third, TW_KEYED_END_REPLACED, 0);
	alive(&second);
	RACE_CHECK(tw_keyed_count(table) == 1);
	scene_close();
	ended_as(&second, TW_KEYED_END_STOPPED, 0);
}

static void replace_against_stop(const char *point)
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, point, call_replace);
	stop();
	RACE_CHECK(first.ended == 0 && tw_keyed_destroy(table) == -EBUSY);
	victim_go_on(&victim, -ESHUTDOWN);
	ended_as(&first, TW_KEYED_END_STOPPED, 0);
	alive(&second);
	scene_close();
}

/*
 * Stops a replace while the old entry's timer expires. This must not end the new entry, which waits
 * for its own time.
 */
static void replace_against_old_time(void)
{
	struct victim victim;

	scene_open_waiting(0);
	victim_stop(&victim, "keyed:replacing", call_replace);
	advance(2);
	victim_go_on(&victim, TW_KEYED_REPLACED);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	advance(100);
	alive(&second);
	advance(1000);
	ended_as(&second, TW_KEYED_END_FIRED, 1);
	scene_close();
}

/*
 * Stops a replace until the new deadline has passed. The new entry must run as soon as the replace
 * is done.
 */
static void replace_against_new_time(void)
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, "keyed:filled", call_replace_now);
	advance(2);
	alive(&second);
	victim_go_on(&victim, TW_KEYED_REPLACED);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	advance(1);
	ended_as(&second, TW_KEYED_END_FIRED, 1);
	scene_close();
}

/* Stops a schedule while its entry is in the table and still held. */
static void schedule_against_cancel(void)
{
	struct victim victim;

	scene_open(false);
	victim_stop(&victim, "keyed:letting_go", call_schedule);
	RACE_CHECK(put(&second, false, FAR_NS) == TW_KEYED_PRESENT);
	RACE_CHECK(cancel_any() == TW_KEYED_RUNNING);
	RACE_CHECK(put(&second, false, FAR_NS) == TW_KEYED_DONE);
	victim_go_on(&victim, TW_KEYED_DONE);
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	alive(&second);
	scene_close();
}

static void schedule_against_replace(void)
{
	struct victim victim;

	scene_open(false);
	victim_stop(&victim, "keyed:letting_go", call_schedule);
	RACE_CHECK(put(&second, true, FAR_NS) == TW_KEYED_RUNNING);
	victim_go_on(&victim, TW_KEYED_DONE);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	alive(&second);
	scene_close();
}

static void schedule_against_stop(void)
{
	struct victim victim;

	scene_open(false);
	victim_stop(&victim, "keyed:letting_go", call_schedule);
	stop();
	RACE_CHECK(first.ended == 0 && tw_keyed_destroy(table) == -EBUSY);
	victim_go_on(&victim, TW_KEYED_DONE);
	ended_as(&first, TW_KEYED_END_STOPPED, 0);
	scene_close();
}

/*
 * Stops a replace of an entry whose expiry is at an executor, so that the replace adds a new entry.
 * Then the old entry runs before the replace can end it.
 */
static void ousting_against_run(void)
{
	struct victim victim;

	scene_open(true);
	RACE_CHECK(put(&first, false, 0) == TW_KEYED_DONE);
	advance(1);
	RACE_CHECK(dues == 1);
	victim_stop(&victim, "keyed:ousting", call_replace);
	RACE_CHECK(tw_due_run(&due) == 0);
	ended_as(&first, TW_KEYED_END_FIRED, 1);
	victim_go_on(&victim, TW_KEYED_DONE);
	alive(&second);
	scene_close();
}

/* Makes a replacing thread end both entries. The hook of the first one ends the thread. */
static void ousting_ends_its_thread(void)
{
	struct victim victim;

	scene_open(true);
	RACE_CHECK(put(&first, false, 0) == TW_KEYED_DONE);
	advance(1);
	RACE_CHECK(dues == 1);
	second.exits = true;
	victim_stop(&victim, "keyed:letting_go", call_replace);
	RACE_CHECK(cancel_any() == TW_KEYED_RUNNING);
	victim_go_on(&victim, VICTIM_LEFT);
	ended_as(&second, TW_KEYED_END_CANCELLED, 0);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	RACE_CHECK(tw_due_run(&due) == 0);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	scene_close();
}

static void cancel_against_replace(int (*call)(void), int result)
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, "keyed:cancelling", call);
	RACE_CHECK(put(&second, true, FAR_NS) == TW_KEYED_REPLACED);
	victim_go_on(&victim, result);
	ended_as(&first, TW_KEYED_END_REPLACED, 0);
	if (result == TW_KEYED_DONE)
		ended_as(&second, TW_KEYED_END_CANCELLED, 0);
	else
		alive(&second);
	scene_close();
}

/*
 * Stops a reschedule while its entry ends and another one gets the key. The reschedule must move
 * the other entry.
 */
static void move_against_cancel(void)
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, "keyed:moving", call_move);
	RACE_CHECK(cancel_any() == TW_KEYED_DONE);
	RACE_CHECK(put(&second, false, FAR_NS) == TW_KEYED_DONE);
	victim_go_on(&victim, TW_KEYED_DONE);
	advance(2);
	ended_as(&second, TW_KEYED_END_FIRED, 1);
	scene_close();
}

/* Stops a thread whose entry is dead but still in the table. Its key must be free. */
static void ending_against_schedule(void)
{
	struct victim victim;

	scene_open_waiting(FAR_NS);
	victim_stop(&victim, "keyed:ending", call_cancel);
	RACE_CHECK(tw_keyed_get(table, "k", 1, NULL) == TW_KEYED_ABSENT);
	RACE_CHECK(put(&second, false, FAR_NS) == TW_KEYED_DONE);
	victim_go_on(&victim, TW_KEYED_DONE);
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	alive(&second);
	RACE_CHECK(tw_keyed_count(table) == 1);
	scene_close();
}

/*
 * Stops the owner before it leaves the entry. An executor runs the timer before, or after, the
 * owner leaves the entry.
 */
static void leaving_against_timer(bool before)
{
	struct victim victim;

	scene_open(true);
	RACE_CHECK(put(&first, false, 0) == TW_KEYED_DONE);
	advance(1);
	RACE_CHECK(dues == 1);
	victim_stop(&victim, "keyed:leaving", call_cancel);
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	if (before)
		RACE_CHECK(tw_due_run(&due) == 0);
	RACE_CHECK(tw_keyed_destroy(table) == -EBUSY);
	victim_go_on(&victim, TW_KEYED_DONE);
	if (!before) {
		RACE_CHECK(tw_keyed_destroy(table) == -EBUSY);
		RACE_CHECK(tw_due_run(&due) == 0);
	}
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	scene_close();
}

/* The callback arms this stand on the worker, which then stops at it inside the hand-back. */
static struct stand worker_stand;

static int64_t on_run_armed(const struct tw_keyed_self *self, void *arg)
{
	stand_arm(&worker_stand);
	return on_run(self, arg);
}

static void *stop_main(void *unused)
{
	stop();
	return unused;
}

/*
 * Cancels after stop has taken the timer. The timer's finaliser has not run yet, and will be the
 * last to touch the entry.
 */
static void cancel_against_hand_back(void)
{
	static const struct tw_keyed_kind armed = TW_KEYED_KIND(on_run_armed, on_ended);
	pthread_t stopper;

	scene_open_waiting(FAR_NS);
	memset(&worker_stand, 0, sizeof worker_stand);
	worker_stand.point = "hand_back:taken";
	RACE_CHECK(tw_keyed_schedule(table, "a", 1, 0, &armed, &third, NULL) == TW_KEYED_DONE);
	advance(1);
	ended_as(&third, TW_KEYED_END_FIRED, 1);
	RACE_CHECK(pthread_create(&stopper, NULL, stop_main, NULL) == 0);
	RACE_CHECK(stand_await(&worker_stand, STAND_PATIENCE_MS));
	RACE_CHECK(cancel_any() == TW_KEYED_DONE);
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	RACE_CHECK(tw_keyed_destroy(table) == -EBUSY);
	stand_release(&worker_stand);
	RACE_CHECK(pthread_join(stopper, NULL) == 0);
	ended_as(&first, TW_KEYED_END_CANCELLED, 0);
	scene_close();
}

int main(void)
{
	race_watchdog(60);
	replace_against_cancel("keyed:replacing", call_cancel);
	replace_against_cancel("keyed:filled", call_cancel);
	replace_against_cancel("keyed:replacing", call_cancel_first);
	replace_against_replace();
	replace_against_stop("keyed:replacing");
	replace_against_stop("keyed:filled");
	replace_against_old_time();
	replace_against_new_time();
	schedule_against_cancel();
	schedule_against_replace();
	schedule_against_stop();
	ousting_against_run();
	ousting_ends_its_thread();
	cancel_against_replace(call_cancel, TW_KEYED_DONE);
	cancel_against_replace(call_cancel_first, TW_KEYED_ABSENT);
	move_against_cancel();
	ending_against_schedule();
	leaving_against_timer(true);
	leaving_against_timer(false);
	cancel_against_hand_back();
	return 0;
}
