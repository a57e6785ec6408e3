/* SPDX-License-Identifier: MIT */
/*
 * Calls that a keyed timeout's own callback and hook may make, calls in a visit, and callbacks and
 * hooks that end their thread.
 *
 * Seen to fail with this defect: a run whose entry was cancelled keeps the key.
 */
#include "keyed_scene.h"

#include <pthread.h>

static struct item next_item;
static atomic_int found;

static void cancel_own(const struct tw_keyed_self *self, struct item *item)
{
	(void)item;
	atomic_store(&found, tw_keyed_cancel(self->table, self->key, self->key_bytes, self->life));
}

static void replace_own(const struct tw_keyed_self *self, struct item *item)
{
	(void)item;
	atomic_store(&found, tw_keyed_replace(self->table, self->key, self->key_bytes, NS_PER_MS,
					      &item_kind, &next_item, NULL));
}

static void schedule_own(const struct tw_keyed_self *self, struct item *item)
{
	(void)item;
	atomic_store(&found, tw_keyed_schedule(self->table, self->key, self->key_bytes, NS_PER_MS,
					       &item_kind, &next_item, NULL));
}

static void look_own(const struct tw_keyed_self *self, struct item *item)
{
	struct tw_keyed_info info = {.size = sizeof info};
	int outcome = tw_keyed_get(self->table, self->key, self->key_bytes, &info);

	(void)item;
	if (outcome == TW_KEYED_PRESENT && info.busy == 1 && info.arg == NULL &&
	    tw_keyed_reschedule(self->table, self->key, self->key_bytes, 0) == TW_KEYED_RUNNING)
		atomic_store(&found, 77);
}

/* Makes a run that calls `inside` and then asks for another run. */
static void run_inside(struct fixture *fixture, struct tw_keyed *table, struct item *item,
		       void (*inside)(const struct tw_keyed_self *, struct item *))
{
	item_init(item, fixture->engine);
	item_init(&next_item, fixture->engine);
	item->inside = inside;
	item->scripted = 1;
	item->again_ns[0] = NS_PER_MS;
	atomic_store(&found, -1);
	check_int(key_schedule(table, "own", 0, item), TW_KEYED_DONE);
	fixture_advance(fixture, fixture->tick_ns);
}

Test(keyed_callbacks, cancel_and_replace_in_own_callback_return_running)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);

	run_inside(&fixture, table, &item, cancel_own);
	check_int(found, TW_KEYED_RUNNING);
	check_item(&item, TW_KEYED_END_CANCELLED, 1);
	check_int(tw_keyed_count(table), 0);

	run_inside(&fixture, table, &item, replace_own);
	check_int(found, TW_KEYED_RUNNING);
	check_item(&item, TW_KEYED_END_REPLACED, 1);
	check_int(tw_keyed_count(table), 1);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&next_item, TW_KEYED_END_FIRED, 1);

	run_inside(&fixture, table, &item, schedule_own);
	check_int(found, TW_KEYED_PRESENT);
	check_alive(&item, 1);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&item, TW_KEYED_END_FIRED, 2);

	run_inside(&fixture, table, &item, look_own);
	check_int(found, 77);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&item, TW_KEYED_END_FIRED, 2);
	scene_close(&fixture, table);
}

/*
 * Cancels its own entry in the callback, and schedules the key again, which must be free before the
 * callback returns.
 */
static void cancel_and_schedule_own(const struct tw_keyed_self *self, struct item *item)
{
	cancel_own(self, item);
	if (tw_keyed_get(self->table, self->key, self->key_bytes, NULL) == TW_KEYED_ABSENT &&
	    tw_keyed_cancel(self->table, self->key, self->key_bytes, TW_KEYED_ANY) ==
		    TW_KEYED_ABSENT)
		schedule_own(self, item);
}

Test(keyed_callbacks, a_cancelled_run_has_left_its_key)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	run_inside(&fixture, table, &item, cancel_and_schedule_own);
	check_int(found, TW_KEYED_DONE);
	check_item(&item, TW_KEYED_END_CANCELLED, 1);
	check_int(tw_keyed_count(table), 1);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&next_item, TW_KEYED_END_FIRED, 1);
	scene_close(&fixture, table);
}

/*
 * In the next test, the hook of an entry that has fired schedules the same key again, like a cache
 * that refreshes its entries. After any other end, the hook tries to destroy the table.
 */
static struct tw_keyed *hook_table;

static void on_end_again(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct item *item = arg;

	on_item_end(self, arg, end);
	if (end == TW_KEYED_END_FIRED)
		atomic_store(&found, tw_keyed_schedule(self->table, self->key, self->key_bytes,
						       NS_PER_MS, &item_kind, item + 1, NULL));
	else
		atomic_store(&found, tw_keyed_destroy(hook_table));
}

Test(keyed_callbacks, hook_may_schedule_but_not_destroy_its_table)
{
	static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_item, on_end_again);
	struct fixture fixture;
	struct item items[2];

	fixture_open(&fixture, NULL);
	hook_table = table_open(&fixture);
	item_init(&items[0], fixture.engine);
	item_init(&items[1], fixture.engine);
	check_int(tw_keyed_schedule(hook_table, "a", 1, 0, &kind, &items[0], NULL), TW_KEYED_DONE);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&items[0], TW_KEYED_END_FIRED, 1);
	check_int(found, TW_KEYED_DONE);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&items[1], TW_KEYED_END_FIRED, 1);
	item_init(&items[0], fixture.engine);
	check_int(tw_keyed_schedule(hook_table, "a", 1, 0, &kind, &items[0], NULL), TW_KEYED_DONE);
	check_int(key_cancel(hook_table, "a"), TW_KEYED_DONE);
	check_int(found, -EBUSY);
	check_item(&items[0], TW_KEYED_END_CANCELLED, 0);
	scene_close(&fixture, hook_table);
}

/*
 * Ends its thread in the callback. The entry must end too. The engine is then in the state FAILED,
 * and stop must end the other entries.
 */
static int64_t on_item_exit(const struct tw_keyed_self *self, void *arg)
{
	(void)on_item(self, arg);
	pthread_exit(NULL);
}

Test(keyed_callbacks, callback_that_ends_its_thread_ends_its_entry_once)
{
	static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_item_exit, on_item_end);
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item, other;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	item_init(&other, fixture.engine);
	check_int(tw_keyed_schedule(table, "a", 1, 0, &kind, &item, NULL), TW_KEYED_DONE);
	check_int(key_schedule(table, "b", NS_PER_S, &other), TW_KEYED_DONE);
	check_int(tw_clock_set(fixture.clock, fixture.now_ns + 5 * NS_PER_MS), 0);
	check_true(wait_until_at_least(&item.ended, 1));
	check_item(&item, TW_KEYED_END_FIRED, 1);
	check_int(tw_engine_stop(fixture.engine, NULL, NULL, TW_NEVER), 0);
	check_item(&other, TW_KEYED_END_STOPPED, 0);
	check_int(tw_keyed_destroy(table), 0);
	fixture_destroy(&fixture);
}

/*
 * Ends its thread in the hook. The entry must still be released. The call that ran the hook does
 * not return.
 */
static void on_end_exit(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	on_item_end(self, arg, end);
	pthread_exit(NULL);
}

static const struct tw_keyed_kind exit_kind = TW_KEYED_KIND(on_item, on_end_exit);

static void *cancel_main(void *argument)
{
	(void)key_cancel(argument, "a");
	return argument;
}

static void *replace_main(void *argument)
{
	(void)key_replace(argument, "a", NS_PER_S, &next_item);
	return argument;
}

static void in_a_thread_that_ends(void *(*main)(void *), struct tw_keyed *table)
{
	void *result = table;
	pthread_t thread;

	check_int(pthread_create(&thread, NULL, main, table), 0);
	check_int(pthread_join(thread, &result), 0);
	check_true(result == NULL);
}

Test(keyed_callbacks, hook_that_ends_its_thread_ends_its_entry_once)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	item_init(&next_item, fixture.engine);
	check_int(tw_keyed_schedule(table, "a", 1, NS_PER_S, &exit_kind, &item, NULL),
		  TW_KEYED_DONE);
	in_a_thread_that_ends(cancel_main, table);
	check_item(&item, TW_KEYED_END_CANCELLED, 0);
	check_int(tw_keyed_count(table), 0);

	item_init(&item, fixture.engine);
	check_int(tw_keyed_schedule(table, "a", 1, NS_PER_S, &exit_kind, &item, NULL),
		  TW_KEYED_DONE);
	in_a_thread_that_ends(replace_main, table);
	check_item(&item, TW_KEYED_END_REPLACED, 0);
	check_alive(&next_item, 0);
	check_int(tw_keyed_count(table), 1);
	scene_close(&fixture, table);
	check_item(&next_item, TW_KEYED_END_STOPPED, 0);
}

/* In the next test, a visit cancels or replaces the visited key, or schedules another key. */
enum { VISITED = 8 };
static struct item visited_items[VISITED], later_items[VISITED];

static int visit_and_change(void *context, const void *key, size_t key_bytes,
			    const struct tw_keyed_info *info)
{
	struct item *item = info->arg;
	long number = item - visited_items;
	struct tw_keyed *table = context;

	/* If the argument is not one of these items, an earlier visit has scheduled the entry. */
	if (number < 0 || number >= VISITED)
		return 0;
	if (number % 3 == 0) {
		check_int(tw_keyed_cancel(table, key, key_bytes, info->life), TW_KEYED_DONE);
		check_item(item, TW_KEYED_END_CANCELLED, 0);
	} else if (number % 3 == 1) {
		check_int(tw_keyed_replace(table, key, key_bytes, NS_PER_S, &item_kind,
					   &later_items[number], NULL),
			  TW_KEYED_REPLACED);
		check_item(item, TW_KEYED_END_REPLACED, 0);
	} else {
		check_int(tw_keyed_schedule(table, &number, sizeof number, NS_PER_S, &item_kind,
					    &later_items[number], NULL),
			  TW_KEYED_DONE);
	}
	return 0;
}

Test(keyed_callbacks, visit_may_cancel_replace_and_add)
{
	struct fixture fixture;
	struct tw_keyed *table;
	int64_t visits;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	for (int i = 0; i < VISITED; i++) {
		item_init(&visited_items[i], fixture.engine);
		item_init(&later_items[i], fixture.engine);
		check_int(tw_keyed_schedule(table, &i, sizeof i, NS_PER_S, &item_kind,
					    &visited_items[i], NULL),
			  TW_KEYED_DONE);
	}
	visits = tw_keyed_each(table, visit_and_change, table);
	check_true(visits >= VISITED && visits <= 2 * VISITED);
	/* Of eight keys, 0, 3 and 6 were cancelled, and 1, 4 and 7 were replaced. The visits of 2
	 * and 5 each added one key. */
	check_int(tw_keyed_count(table), 7);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (int i = 0; i < VISITED; i++) {
		if (i % 3 == 2)
			check_item(&visited_items[i], TW_KEYED_END_FIRED, 1);
		if (i % 3 != 0)
			check_item(&later_items[i], TW_KEYED_END_FIRED, 1);
		else
			check_alive(&later_items[i], 0);
	}
	scene_close(&fixture, table);
}
