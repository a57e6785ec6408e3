/* SPDX-License-Identifier: MIT */
/*
 * How keyed timeouts end: while their expiry waits in an executor's queue, when the expiry is late,
 * and by stop.
 *
 * Seen to fail with these defects: an entry is given back before its timer has run; an entry is
 * never given back, because no thread records that the entry has left the table.
 */
#include "keyed_scene.h"

#include <pthread.h>

/* An executor's queue, with timeouts that have expired and have not run yet. */
enum { DUES = 16 };
static struct tw_due dues[DUES];
static size_t due_count;

static size_t on_dispatch(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	memcpy(&dues[due_count], due, count * sizeof *due);
	due_count += count;
	return count;
}

static void dues_run(void)
{
	size_t count = due_count;

	due_count = 0;
	for (size_t i = 0; i < count; i++)
		check_int(tw_due_run(&dues[i]), 0);
}

static void open_with_executor(struct fixture *fixture)
{
	struct tw_options options = fixture_options();

	due_count = 0;
	options.dispatch = on_dispatch;
	fixture_open(fixture, &options);
}

/* Schedules the item and lets it expire, so that it waits in the executor's queue. */
static void item_queue(struct fixture *fixture, struct tw_keyed *table, struct item *item)
{
	item_init(item, fixture->engine);
	check_int(key_schedule(table, "a", 0, item), TW_KEYED_DONE);
	fixture_advance(fixture, fixture->tick_ns);
	check_int(due_count, 1);
	check_alive(item, 0);
}

Test(keyed_ends, ended_entry_in_an_executor_does_not_run)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item, other;

	open_with_executor(&fixture);
	table = table_open(&fixture);

	item_queue(&fixture, table, &item);
	check_int(key_cancel(table, "a"), TW_KEYED_DONE);
	check_item(&item, TW_KEYED_END_CANCELLED, 0);
	check_int(tw_keyed_destroy(table), -EBUSY);
	dues_run();
	check_item(&item, TW_KEYED_END_CANCELLED, 0);

	item_queue(&fixture, table, &item);
	item_init(&other, fixture.engine);
	check_int(key_replace(table, "a", NS_PER_MS, &other), TW_KEYED_REPLACED);
	check_item(&item, TW_KEYED_END_REPLACED, 0);
	dues_run();
	check_item(&item, TW_KEYED_END_REPLACED, 0);
	check_alive(&other, 0);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	dues_run();
	check_item(&other, TW_KEYED_END_FIRED, 1);

	item_queue(&fixture, table, &item);
	check_int(tw_keyed_reschedule(table, "a", 1, NS_PER_S), TW_KEYED_RUNNING);
	dues_run();
	check_item(&item, TW_KEYED_END_FIRED, 1);
	scene_close(&fixture, table);
}

/*
 * The late hook counts its calls for timers of a table. It must not be called instead of an entry's
 * callback.
 */
static void on_late(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		    int64_t late_by_ns)
{
	(void)self;
	(void)arg;
	(void)late_by_ns;
	atomic_fetch_add((atomic_int *)context, tw_keyed_owns(kind));
}

Test(keyed_ends, late_hook_does_not_replace_the_callback)
{
	struct tw_options options = fixture_options();
	static atomic_int told;
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	options.late_ns = NS_PER_MS;
	options.on_late = on_late;
	options.late_context = &told;
	fixture_open(&fixture, &options);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	check_int(key_schedule(table, "a", 0, &item), TW_KEYED_DONE);
	fixture_advance(&fixture, NS_PER_S);
	check_int(told, 1);
	check_item(&item, TW_KEYED_END_FIRED, 1);
	check_int(tw_keyed_owns(&probe_kind), 0);
	scene_close(&fixture, table);
}

Test(keyed_ends, stop_ends_all)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item items[100];

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	for (int i = 0; i < 100; i++) {
		item_init(&items[i], fixture.engine);
		check_int(tw_keyed_schedule(table, &i, sizeof i, i % 2 ? TW_NEVER : NS_PER_S,
					    &item_kind, &items[i], NULL),
			  TW_KEYED_DONE);
	}
	check_int(tw_keyed_destroy(table), -EBUSY);
	fixture_stop(&fixture);
	for (int i = 0; i < 100; i++)
		check_item(&items[i], TW_KEYED_END_STOPPED, 0);
	check_int(tw_keyed_count(table), 0);
	check_int(key_schedule(table, "a", 0, &items[0]), -ESHUTDOWN);
	check_int(key_replace(table, "a", 0, &items[0]), -ESHUTDOWN);
	check_int(key_cancel(table, "a"), TW_KEYED_ABSENT);
	check_int(tw_keyed_reschedule(table, "a", 1, 0), TW_KEYED_ABSENT);
	check_int(key_get(table, "a", NULL), TW_KEYED_ABSENT);
	scene_close(&fixture, table);
}

/*
 * A hand-back hook that cancels three keys. One of them belongs to the timer that is being handed
 * back.
 */
struct canceller {
	struct tw_keyed *table;
	bool elsewhere; /* whether the hook makes the calls in another thread, which it joins */
	int calls;
	int outcome[3];
	int rejected;
	int destroyed;
};

static const char *const cancelled_keys[] = {"a", "b", "c"};

static void *keys_cancel(void *argument)
{
	struct canceller *canceller = argument;

	for (int i = 0; i < 3; i++)
		canceller->outcome[i] = key_cancel(canceller->table, cancelled_keys[i]);
	canceller->rejected = key_schedule(canceller->table, "a", 0, NULL);
	canceller->destroyed = tw_keyed_destroy(canceller->table);
	return NULL;
}

static void on_unexpired(void *context, struct tw_handle self, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	struct canceller *canceller = context;
	pthread_t thread;

	(void)self;
	(void)arg;
	(void)remaining_ns;
	if (canceller->calls++ != 0 || tw_keyed_owns(kind) == 0)
		return;
	if (!canceller->elsewhere)
		(void)keys_cancel(canceller);
	else if (pthread_create(&thread, NULL, keys_cancel, canceller) == 0)
		(void)pthread_join(thread, NULL);
}

/*
 * Cancels when stop has taken the timer, but the timer's finaliser has not run yet. The finaliser
 * must be the last to use the entry. If the cancel freed the entry, the table could be destroyed
 * before the finaliser runs.
 */
static void cancelled_in_hand_back(bool elsewhere)
{
	struct canceller canceller = {.elsewhere = elsewhere, .outcome = {-1, -1, -1}};
	struct fixture fixture;
	struct tw_keyed *table;
	struct item items[3];

	fixture_open(&fixture, NULL);
	canceller.table = table = table_open(&fixture);
	for (int i = 0; i < 3; i++) {
		item_init(&items[i], fixture.engine);
		check_int(key_schedule(table, cancelled_keys[i], (i + 1) * fixture.tick_ns,
				       &items[i]),
			  TW_KEYED_DONE);
	}
	check_int(tw_engine_stop(fixture.engine, on_unexpired, &canceller, PATIENCE_NS), 0);
	check_int(canceller.calls, 1);
	check_int(canceller.rejected, -ESHUTDOWN);
	check_int(canceller.destroyed, -EBUSY);
	for (int i = 0; i < 3; i++) {
		check_int(canceller.outcome[i], TW_KEYED_DONE);
		check_item(&items[i], TW_KEYED_END_CANCELLED, 0);
	}
	scene_close(&fixture, table);
}

Test(keyed_ends, hand_back_hook_may_cancel)
{
	cancelled_in_hand_back(false);
}

Test(keyed_ends, another_thread_may_cancel_during_the_hand_back)
{
	cancelled_in_hand_back(true);
}
