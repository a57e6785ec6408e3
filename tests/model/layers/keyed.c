/* SPDX-License-Identifier: MIT */
/*
 * Races calls and events of one key against each other: replace, cancel, lookup, stop and a run.
 * Other harnesses free entries that a lookup may still see (E50 to E56). The reclaimer has a file
 * of its own, reclaimer.c.
 *
 * The hash table is a stand-in whose changes are one step each (hash.c). libc compares the keys,
 * and the model does not see these reads.
 *
 * Seen to fail with these defects:
 * - a cancel changes the entry's state word by a load and a store instead of twi_keyed_swap()
 *   (keyed_hand_back);
 * - tw_keyed_cancel returns TW_KEYED_DONE for a timer that stop hands back (keyed_stop_cancel).
 */
#include "keyed/entry.h"
#include "keyed/reclaim.h"
#include "world.h"

#include <errno.h>

/*
 * The record that an entry's end writes for the thread to which the end is reported. This is
 * ordinary memory, so an unordered reader has a race.
 */
struct note {
	unsigned runs;
	unsigned ended[5];
	int64_t again_ns;
	uint64_t life;
	bool renews; /* whether the run puts `second` under the key */
};

#define SOON_NS (4 * WORLD_TICK_NS)

static struct tw_keyed *table;
static struct note first, second, third;
static int told[MODEL_FIBERS];
static bool destroyed;

static const struct tw_keyed_kind *self_kind;

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	struct note *note = arg;

	for (int end = 0; end < 5; end++)
		MODEL_CHECK(note->ended[end] == 0);
	MODEL_CHECK(self->runs == ++note->runs);
	if (note->renews)
		MODEL_CHECK(tw_keyed_replace(table, "k", 1, TW_NEVER, self_kind, &second,
					     &second.life) >= 0);
	return note->again_ns;
}

static void on_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct note *note = arg;

	MODEL_CHECK(self->runs == note->runs);
	note->ended[end]++;
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, on_ended);

static void open_table(void)
{
	struct tw_keyed_options options;

	world_open_layer();
	/* Claims the reclaimer, whose turns the harness's threads make. */
	MODEL_CHECK(twi_reclaim_claim());
	MODEL_CHECK(tw_keyed_options_init(&options, sizeof options) == 0);
	options.seed = 1;
	options.reserve = 1;
	options.allocator = &world_pages;
	MODEL_CHECK(tw_keyed_create(world.engine, &options, &table) == 0);
}

static int put(struct note *note, bool replaces, int64_t delay_ns)
{
	if (replaces)
		return tw_keyed_replace(table, "k", 1, delay_ns, &kind, note, &note->life);
	return tw_keyed_schedule(table, "k", 1, delay_ns, &kind, note, &note->life);
}

/* Opens with the first entry under the key, and due. */
static void open_due(void)
{
	open_table();
	MODEL_CHECK(put(&first, false, 0) == TW_KEYED_DONE);
	world_turn();
	world_time_goes_on();
}

static void open_again(void)
{
	first.again_ns = TW_NEVER;
	open_due();
}

static void open_renewing(void)
{
	self_kind = &kind;
	first.renews = true;
	open_due();
}

static void open_waiting(void)
{
	open_table();
	MODEL_CHECK(put(&first, false, TW_NEVER) == TW_KEYED_DONE);
	world_turn();
}

static void open_working(void)
{
	open_waiting();
	world_life(TW_ENGINE_STARTING);
}

static void open_working_empty(void)
{
	open_table();
	world_life(TW_ENGINE_STARTING);
}

static void turn(void)
{
	world_turn();
}

static void reclaim(void)
{
	(void)twi_reclaim_turn();
}

static void replace_second(void)
{
	told[model_self()] = put(&second, true, TW_NEVER);
	/* If a replace reports success, it has run the first entry's hook. */
	if (told[model_self()] == TW_KEYED_REPLACED)
		MODEL_CHECK(first.ended[TW_KEYED_END_REPLACED] == 1);
}

/* Replaces the entry by one with another deadline, so that a reader can distinguish the two. */
static void replace_second_soon(void)
{
	told[model_self()] = put(&second, true, SOON_NS);
}

/* Replaces while another thread replaces too, so the first entry's hook may still be running. */
static void replace_second_too(void)
{
	told[model_self()] = put(&second, true, TW_NEVER);
}

static void replace_third_too(void)
{
	told[model_self()] = put(&third, true, TW_NEVER);
}

static void schedule_second(void)
{
	told[model_self()] = put(&second, false, TW_NEVER);
}

static void schedule_third(void)
{
	told[model_self()] = put(&third, false, TW_NEVER);
}

static void cancel_any(void)
{
	told[model_self()] = tw_keyed_cancel(table, "k", 1, TW_KEYED_ANY);
	if (told[model_self()] == TW_KEYED_DONE)
		MODEL_CHECK(first.ended[TW_KEYED_END_CANCELLED] +
				    second.ended[TW_KEYED_END_CANCELLED] ==
			    1);
}

static void cancel_first(void)
{
	told[model_self()] = tw_keyed_cancel(table, "k", 1, first.life);
	if (told[model_self()] == TW_KEYED_DONE)
		MODEL_CHECK(first.ended[TW_KEYED_END_CANCELLED] == 1);
}

/* Cancels and schedules. After the cancel, the entry's memory may serve another key. */
static void cancel_and_schedule(void)
{
	cancel_first();
	(void)twi_reclaim_turn();
	MODEL_CHECK(tw_keyed_schedule(table, "other", 5, TW_NEVER, &kind, &second, NULL) == 0);
}

static void get(void)
{
	struct tw_keyed_info info = {.size = sizeof info};

	told[model_self()] = tw_keyed_get(table, "k", 1, &info);
	if (told[model_self()] != TW_KEYED_PRESENT || info.busy != 0)
		return;
	MODEL_CHECK(info.kind == &kind && info.life != 0);
	MODEL_CHECK(info.arg == &first || info.arg == &second);
	MODEL_CHECK((info.arg == &first) == (info.life == first.life));
}

/*
 * Reads deadline and argument, which must belong to the same entry. The first entry has the
 * deadline TW_NEVER, the second one a near deadline.
 */
static void get_deadline(void)
{
	struct tw_keyed_info info = {.size = sizeof info};

	told[model_self()] = tw_keyed_get(table, "k", 1, &info);
	if (told[model_self()] == TW_KEYED_PRESENT && info.busy == 0)
		MODEL_CHECK((info.arg == &first) == (info.deadline_ns == TW_NEVER));
}

static void move(void)
{
	told[model_self()] = tw_keyed_reschedule(table, "k", 1, 2 * WORLD_TICK_NS);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, NULL, NULL, TW_NEVER) == 0);
}

/* Cancels the key of the timer that is handed back. */
static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *timer_kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)arg;
	(void)remaining_ns;
	MODEL_CHECK(tw_keyed_owns(timer_kind));
	told[0] = tw_keyed_cancel(table, "k", 1, TW_KEYED_ANY);
	MODEL_CHECK(told[0] == TW_KEYED_DONE || told[0] == TW_KEYED_ABSENT);
}

/*
 * Opens without the reclaimer's claim. No thread has the claim, so a destroy has to make the
 * reclaimer's turn itself.
 */
static void open_working_alone(void)
{
	open_working();
	twi_reclaim_give_up();
	model_no_threads = true;
}

static void cancel_and_destroy(void)
{
	int code;

	told[model_self()] = tw_keyed_cancel(table, "k", 1, TW_KEYED_ANY);
	code = tw_keyed_destroy(table);
	MODEL_CHECK(code == 0 || code == -EBUSY);
	destroyed = code == 0;
}

static void stop_and_cancel(void)
{
	told[0] = TW_KEYED_ABSENT;
	MODEL_CHECK(tw_engine_stop(world.engine, on_unexpired, NULL, TW_NEVER) == 0);
}

/* Returns the only end of an entry, or -1 if the entry was never accepted. */
static int note_end(const struct note *note)
{
	int how = -1;

	for (int end = 0; end < 5; end++) {
		MODEL_CHECK(note->ended[end] <= 1);
		if (note->ended[end] == 0)
			continue;
		MODEL_CHECK(how < 0);
		how = end;
	}
	return how;
}

static void nothing_left(void)
{
	world_close();
	while (twi_reclaim_turn())
		;
	MODEL_CHECK(tw_keyed_count(table) == 0);
	MODEL_CHECK(tw_keyed_destroy(table) == 0);
}

/*
 * Checks a replace against the expiry: the first entry is either replaced and never runs, or it
 * runs.
 */
static void replaced_or_fired(void)
{
	int how;

	nothing_left();
	how = note_end(&first);
	MODEL_CHECK(note_end(&second) == TW_KEYED_END_STOPPED);
	if (told[2] == TW_KEYED_REPLACED)
		MODEL_CHECK(how == TW_KEYED_END_REPLACED && first.runs == 0);
	else
		MODEL_CHECK(first.runs == 1);
	MODEL_CHECK(how == TW_KEYED_END_REPLACED || how == TW_KEYED_END_FIRED);
}

/*
 * Checks a replace against a run whose callback asks for another run. The first entry must be
 * replaced, before the run or after it.
 */
static void replaced_for_good(void)
{
	nothing_left();
	MODEL_CHECK(told[2] == TW_KEYED_REPLACED || told[2] == TW_KEYED_RUNNING);
	MODEL_CHECK(note_end(&first) == TW_KEYED_END_REPLACED && first.runs <= 1);
	MODEL_CHECK(told[2] == TW_KEYED_REPLACED || first.runs == 1);
	MODEL_CHECK(note_end(&second) == TW_KEYED_END_STOPPED);
}

static void cancelled_or_fired(void)
{
	int how;

	nothing_left();
	how = note_end(&first);
	if (told[2] == TW_KEYED_DONE)
		MODEL_CHECK(how == TW_KEYED_END_CANCELLED && first.runs <= (first.again_ns != 0));
	else
		MODEL_CHECK(first.runs == 1);
	MODEL_CHECK(how == TW_KEYED_END_CANCELLED || how == TW_KEYED_END_FIRED);
}

/*
 * Checks a replace against a cancel by key: the cancel ends the entry that has the key at that
 * moment.
 */
static void replaced_and_cancelled(void)
{
	nothing_left();
	MODEL_CHECK(note_end(&first) >= 0 && note_end(&second) >= 0);
	if (told[2] == TW_KEYED_DONE || told[2] == TW_KEYED_RUNNING)
		MODEL_CHECK(first.ended[TW_KEYED_END_CANCELLED] +
				    second.ended[TW_KEYED_END_CANCELLED] ==
			    1);
	MODEL_CHECK(told[2] != TW_KEYED_ABSENT);
}

static void only_first_cancelled(void)
{
	nothing_left();
	MODEL_CHECK(note_end(&second) == TW_KEYED_END_STOPPED);
	MODEL_CHECK((told[2] == TW_KEYED_ABSENT) == (note_end(&first) == TW_KEYED_END_REPLACED));
}

static void both_replaced(void)
{
	nothing_left();
	MODEL_CHECK(note_end(&first) == TW_KEYED_END_REPLACED);
	MODEL_CHECK(second.ended[TW_KEYED_END_REPLACED] + third.ended[TW_KEYED_END_REPLACED] == 1);
	MODEL_CHECK(second.ended[TW_KEYED_END_STOPPED] + third.ended[TW_KEYED_END_STOPPED] == 1);
}

static void one_scheduled(void)
{
	nothing_left();
	MODEL_CHECK((told[1] == TW_KEYED_DONE) != (told[2] == TW_KEYED_DONE));
	MODEL_CHECK(note_end(&second) + note_end(&third) == TW_KEYED_END_STOPPED - 1);
}

/*
 * Checks schedule-if-absent against a cancel. If the schedule found the key, it added no entry.
 * Otherwise the cancel came first.
 */
static void cancelled_then_scheduled(void)
{
	nothing_left();
	MODEL_CHECK(note_end(&first) == TW_KEYED_END_CANCELLED);
	MODEL_CHECK((told[1] == TW_KEYED_PRESENT) == (note_end(&second) == -1));
}

/* Checks stop against a call that adds an entry: the entry is stopped, or the call is rejected. */
static void put_or_rejected(void)
{
	nothing_left();
	MODEL_CHECK(told[1] >= 0 || told[1] == -ESHUTDOWN);
	MODEL_CHECK((told[1] < 0) == (note_end(&second) == -1));
	MODEL_CHECK(note_end(&second) == -1 || note_end(&second) == TW_KEYED_END_STOPPED);
}

/*
 * Checks stop against a cancel and a destroy. The hand-back or the cancel ends the entry, and does
 * so before the destroy.
 */
static void cancelled_or_stopped(void)
{
	bool cancelled = told[2] == TW_KEYED_DONE;

	world_close();
	if (!destroyed)
		MODEL_CHECK(tw_keyed_destroy(table) == 0);
	MODEL_CHECK(cancelled || told[2] == TW_KEYED_ABSENT);
	MODEL_CHECK(note_end(&first) ==
		    (cancelled ? TW_KEYED_END_CANCELLED : TW_KEYED_END_STOPPED));
}

/* Checks a cancel against one by the hand-back hook. Exactly one of the two succeeds. */
static void cancelled_once(void)
{
	nothing_left();
	MODEL_CHECK((told[0] == TW_KEYED_DONE) != (told[2] == TW_KEYED_DONE));
	MODEL_CHECK(note_end(&first) == TW_KEYED_END_CANCELLED);
}

/* Checks stop against a cancel and a replace: each entry ends once and is freed once. */
static void ended_at_most_once(void)
{
	nothing_left();
	(void)note_end(&first);
	(void)note_end(&second);
}

static void all_ended(void)
{
	nothing_left();
	MODEL_CHECK(note_end(&first) >= 0);
}

/* Looks up the key, which must be there at any time, because a replace leaves no gap. */
static void never_absent(void)
{
	all_ended();
	MODEL_CHECK(told[2] != TW_KEYED_ABSENT);
}

static void destroy_if_free(void)
{
	int code = tw_keyed_destroy(table);

	MODEL_CHECK(code == 0 || code == -EBUSY);
	destroyed = code == 0;
	if (destroyed)
		MODEL_CHECK(note_end(&first) == TW_KEYED_END_FIRED);
}

/* Makes the reclaimer's turns until no more entries can come. */
static void reclaim_on(void)
{
	(void)twi_reclaim_turn();
	model_wait_idle();
	(void)twi_reclaim_turn();
}

static void destroyed_once(void)
{
	if (destroyed)
		world_close();
	else
		nothing_left();
	MODEL_CHECK(note_end(&first) == TW_KEYED_END_FIRED);
}

MODEL_HARNESS(keyed_replace_expire, .proves = "a replace and the expiry: one end, as the code says",
	      .setup = open_due, .thread = {turn, replace_second}, .finish = replaced_or_fired,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_replace_again,
	      .proves = "a replace and a run whose callback asks for another run: one end",
	      .setup = open_again, .thread = {turn, replace_second}, .finish = replaced_for_good,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_cancel_expire, .proves = "a cancel and the expiry: one end, as the code says",
	      .setup = open_due, .thread = {turn, cancel_any}, .finish = cancelled_or_fired,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_cancel_again,
	      .proves = "a cancel and a run whose callback asks for another run: one end",
	      .setup = open_again, .thread = {turn, cancel_any}, .finish = cancelled_or_fired,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_replace_cancel,
	      .proves = "a replace and a cancel: the cancel ends the entry that has the key",
	      .setup = open_waiting, .thread = {replace_second, cancel_any},
	      .finish = replaced_and_cancelled, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_cancel_life, .proves = "a cancel of one life never ends the next life",
	      .setup = open_waiting, .thread = {replace_second, cancel_first},
	      .finish = only_first_cancelled, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_replace_replace,
	      .proves = "two replaces end two entries, and one entry keeps the key",
	      .setup = open_waiting, .thread = {replace_second_too, replace_third_too},
	      .finish = both_replaced, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_schedule_schedule, .proves = "of two schedules of an absent key, one succeeds",
	      .setup = open_table, .thread = {schedule_second, schedule_third},
	      .finish = one_scheduled, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_schedule_cancel, .proves = "a key is free when its entry has ended",
	      .setup = open_waiting, .thread = {schedule_second, cancel_first},
	      .finish = cancelled_then_scheduled, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_get, .proves = "a look-up during a replace returns fields of one entry",
	      .setup = open_waiting, .thread = {replace_second, get}, .finish = never_absent,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(keyed_get_deadline,
	      .proves = "a look-up never returns the next life's deadline for an earlier life",
	      .setup = open_waiting, .thread = {replace_second_soon, get_deadline},
	      .finish = never_absent, .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_get_running, .proves = "a key that its own callback replaces is never absent",
	      .setup = open_renewing, .thread = {turn, get}, .finish = never_absent,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_cancel_running,
	      .proves = "a cancel during a replace by the callback ends one of the two entries",
	      .setup = open_renewing, .thread = {turn, cancel_any}, .finish = never_absent,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_move_running,
	      .proves = "a reschedule during a replace by the callback moves one of the two",
	      .setup = open_renewing, .thread = {turn, move}, .finish = never_absent,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_move, .proves = "a reschedule during a replace moves one of the two entries",
	      .setup = open_waiting, .thread = {replace_second, move}, .finish = never_absent,
	      .preemptions = 1, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_reclaim, .proves = "memory is used again only when no look-up can see it",
	      .setup = open_waiting, .thread = {cancel_and_schedule, get}, .finish = all_ended,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(keyed_retire,
	      .proves = "entries that two threads retire during a reclaimer's turn are all freed",
	      .setup = open_due, .thread = {turn, replace_second, reclaim}, .finish = all_ended,
	      .preemptions = 1, .weak = 0, .random_runs = 500);
MODEL_HARNESS(keyed_stop_replace,
	      .proves = "stop and a replace: the entry is stopped, or the call is rejected",
	      .setup = open_working, .thread = {replace_second, stop}, .worker = world_work,
	      .finish = put_or_rejected, .preemptions = 1, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(keyed_stop_schedule,
	      .proves = "stop and a schedule: the entry is stopped, or the call is rejected",
	      .setup = open_working_empty, .thread = {schedule_second, stop}, .worker = world_work,
	      .finish = put_or_rejected, .preemptions = 1, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(keyed_stop_cancel,
	      .proves = "stop, cancel and destroy: the entry ends once, before the destroy",
	      .setup = open_working_alone, .thread = {stop, cancel_and_destroy},
	      .worker = world_work, .finish = cancelled_or_stopped, .preemptions = 1, .weak = 0,
	      .random_runs = 1000);
MODEL_HARNESS(keyed_stop_replaced,
	      .proves = "stop, cancel and a replace: each entry ends once and is freed once",
	      .setup = open_working, .thread = {stop, cancel_any, replace_second_too},
	      .worker = world_work, .finish = ended_at_most_once, .preemptions = 1, .weak = 0,
	      .random_runs = 1000);
MODEL_HARNESS(keyed_hand_back,
	      .proves = "if a cancel and the hand-back hook's cancel race, one succeeds",
	      .setup = open_working, .thread = {stop_and_cancel, cancel_any}, .worker = world_work,
	      .finish = cancelled_once, .preemptions = 1, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(keyed_destroy, .proves = "no thread touches a table that was destroyed",
	      .setup = open_due, .thread = {turn, destroy_if_free, reclaim_on},
	      .finish = destroyed_once, .preemptions = 1, .weak = 1, .random_runs = 500);
