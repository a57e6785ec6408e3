/* SPDX-License-Identifier: MIT */
/*
 * Keyed timeouts in virtual time: what each call finds and does, how entries end, and what they may do
 * in their own callback.
 *
 * Seen to fail: a replace that does not move the timer, one that forgets the old hook, a cancel that
 * does not look at the life, an entry given back before its timer has come, one that is never given
 * back because nobody takes note that it has left the table, a key that counts for ever.
 */
#include "keyed_scene.h"

#include <pthread.h>

Test(keyed, fires_once_and_frees_its_key)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	check_int(key_schedule(table, "a", 5 * NS_PER_MS, &item), TW_KEYED_DONE);
	check_int(tw_keyed_count(table), 1);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_alive(&item, 0);
	fixture_advance(&fixture, fixture.tick_ns);
	check_item(&item, TW_KEYED_END_FIRED, 1);
	check_int(item.key_bytes, 1);
	check_int(item.key[0], 'a');
	check_int(tw_keyed_count(table), 0);
	check_int(key_get(table, "a", NULL), TW_KEYED_ABSENT);
	check_int(key_cancel(table, "a"), TW_KEYED_ABSENT);
	scene_close(&fixture, table);
}

Test(keyed, if_absent_keeps_the_first)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item first, second;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&first, fixture.engine);
	item_init(&second, fixture.engine);
	check_int(key_schedule(table, "a", 5 * NS_PER_MS, &first), TW_KEYED_DONE);
	check_int(key_schedule(table, "a", NS_PER_MS, &second), TW_KEYED_PRESENT);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_item(&first, TW_KEYED_END_FIRED, 1);
	check_alive(&second, 0);
	check_int(key_schedule(table, "a", NS_PER_MS, &second), TW_KEYED_DONE);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_item(&second, TW_KEYED_END_FIRED, 1);
	scene_close(&fixture, table);
}

Test(keyed, replace_ends_the_old_one)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item first, second, third;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&first, fixture.engine);
	item_init(&second, fixture.engine);
	item_init(&third, fixture.engine);
	check_int(key_replace(table, "a", 5 * NS_PER_MS, &first), TW_KEYED_DONE);
	check_int(key_replace(table, "a", 50 * NS_PER_MS, &second), TW_KEYED_REPLACED);
	check_item(&first, TW_KEYED_END_REPLACED, 0);
	check_int(tw_keyed_count(table), 1);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_advance(&fixture, 20 * NS_PER_MS);
	check_alive(&second, 0);
	/* To an earlier time, too. */
	check_int(key_replace(table, "a", NS_PER_MS, &third), TW_KEYED_REPLACED);
	check_item(&second, TW_KEYED_END_REPLACED, 0);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_item(&third, TW_KEYED_END_FIRED, 1);
	check_true(first.life != second.life && second.life != third.life);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	scene_close(&fixture, table);
}

Test(keyed, cancel_by_key)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	check_int(key_cancel(table, "a"), TW_KEYED_ABSENT);
	check_int(key_schedule(table, "a", NS_PER_MS, &item), TW_KEYED_DONE);
	check_int(key_cancel(table, "b"), TW_KEYED_ABSENT);
	check_int(key_cancel(table, "a"), TW_KEYED_DONE);
	check_item(&item, TW_KEYED_END_CANCELLED, 0);
	check_int(tw_keyed_count(table), 0);
	check_int(tw_engine_pending(fixture.engine), 0);
	check_int(key_cancel(table, "a"), TW_KEYED_ABSENT);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	scene_close(&fixture, table);
}

/* A cancel that means an earlier entry of the key misses the next one. */
Test(keyed, cancel_of_one_life)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item first, second;
	uint64_t life[2];

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&first, fixture.engine);
	item_init(&second, fixture.engine);
	check_int(tw_keyed_schedule(table, "key", 3, NS_PER_MS, &item_kind, &first, &life[0]),
		  TW_KEYED_DONE);
	check_int(tw_keyed_replace(table, "key", 3, NS_PER_MS, &item_kind, &second, &life[1]),
		  TW_KEYED_REPLACED);
	check_int(first.life, life[0]);
	check_true(life[0] != 0 && life[1] != 0 && life[0] != life[1]);
	check_int(tw_keyed_cancel(table, "key", 3, life[0]), TW_KEYED_ABSENT);
	check_alive(&second, 0);
	check_int(tw_keyed_cancel(table, "key", 3, life[1]), TW_KEYED_DONE);
	check_item(&second, TW_KEYED_END_CANCELLED, 0);
	scene_close(&fixture, table);
}

Test(keyed, runs_again_under_its_key)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item, other;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	item_init(&other, fixture.engine);
	item.scripted = 3;
	item.again_ns[0] = 10 * NS_PER_MS;
	item.again_ns[1] = 20 * NS_PER_MS;
	item.again_ns[2] = TW_NEVER;
	check_int(key_schedule(table, "a", 0, &item), TW_KEYED_DONE);
	fixture_advance(&fixture, fixture.tick_ns);
	check_alive(&item, 1);
	check_int(key_schedule(table, "a", 0, &other), TW_KEYED_PRESENT);
	fixture_advance(&fixture, 10 * NS_PER_MS);
	check_alive(&item, 1);
	fixture_advance(&fixture, fixture.tick_ns);
	check_alive(&item, 2);
	check_int(tw_engine_pending(fixture.engine), 1);
	fixture_advance(&fixture, 20 * NS_PER_MS + fixture.tick_ns);
	check_alive(&item, 3);
	/* It keeps its key, and waits for somebody to say so. */
	fixture_advance(&fixture, 3600 * NS_PER_S);
	check_alive(&item, 3);
	check_int(key_schedule(table, "a", 0, &other), TW_KEYED_PRESENT);
	check_int(tw_keyed_reschedule(table, "a", 1, 0), TW_KEYED_DONE);
	fixture_advance(&fixture, fixture.tick_ns);
	check_item(&item, TW_KEYED_END_FIRED, 4);
	scene_close(&fixture, table);
}

Test(keyed, reschedule_by_key)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	check_int(tw_keyed_reschedule(table, "a", 1, NS_PER_MS), TW_KEYED_ABSENT);
	check_int(key_schedule(table, "a", 5 * NS_PER_MS, &item), TW_KEYED_DONE);
	for (int i = 0; i < 10; i++) {
		fixture_advance(&fixture, 4 * NS_PER_MS);
		check_int(tw_keyed_reschedule(table, "a", 1, 5 * NS_PER_MS), TW_KEYED_DONE);
	}
	check_alive(&item, 0);
	fixture_advance(&fixture, 5 * NS_PER_MS + fixture.tick_ns);
	check_item(&item, TW_KEYED_END_FIRED, 1);
	scene_close(&fixture, table);
}

static int count_visit(void *context, const void *key, size_t key_bytes,
		       const struct tw_keyed_info *info)
{
	int *seen = context;

	check_int(key_bytes, 2);
	check_true(info->arg != NULL && info->busy == 0);
	seen[((const char *)key)[1] - '0']++;
	return seen[10] != 0 && --seen[10] == 0;
}

Test(keyed, get_count_and_each)
{
	struct fixture fixture;
	struct tw_keyed *table;
	struct tw_keyed_info info;
	struct item items[10];
	int seen[11] = {0};
	int sum = 0;

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	for (int i = 0; i < 10; i++) {
		char key[3] = {'k', (char)('0' + i), 0};

		item_init(&items[i], fixture.engine);
		check_int(key_schedule(table, key, (i + 1) * NS_PER_S, &items[i]), TW_KEYED_DONE);
	}
	check_int(tw_keyed_count(table), 10);
	check_int(key_get(table, "k3", &info), TW_KEYED_PRESENT);
	check_true(info.arg == &items[3] && info.kind == &item_kind);
	check_int(info.busy, 0);
	check_int(info.deadline_ns, fixture.now_ns + 4 * NS_PER_S);
	check_true(info.life != 0);
	check_int(tw_keyed_reschedule(table, "k3", 2, TW_NEVER), TW_KEYED_DONE);
	check_int(key_get(table, "k3", &info), TW_KEYED_PRESENT);
	check_int(info.deadline_ns, TW_NEVER);
	check_int(tw_keyed_each(table, count_visit, seen), 10);
	for (int i = 0; i < 10; i++)
		check_int(seen[i], 1);
	/* Until it says so. */
	memset(seen, 0, sizeof seen);
	seen[10] = 4;
	check_int(tw_keyed_each(table, count_visit, seen), 4);
	for (int i = 0; i < 10; i++)
		sum += seen[i];
	check_int(sum, 4);
	fixture_stop(&fixture);
	for (int i = 0; i < 10; i++)
		check_item(&items[i], TW_KEYED_END_STOPPED, 0);
	scene_close(&fixture, table);
}

/* Keys that only differ at the end, in length, in bytes of zero; longer than an entry has room for. */
Test(keyed, keys_are_bytes)
{
	static char keys[257];
	struct fixture fixture;
	struct tw_keyed *table;
	static struct item items[256];

	fixture_open(&fixture, NULL);
	table = table_open(&fixture);
	for (size_t i = 0; i < 256; i++) {
		item_init(&items[i], fixture.engine);
		check_int(tw_keyed_schedule(table, keys, i + 1, NS_PER_S, &item_kind, &items[i],
					    NULL),
			  TW_KEYED_DONE);
	}
	check_int(tw_keyed_count(table), 256);
	keys[199] = 1;
	check_int(tw_keyed_get(table, keys, 200, NULL), TW_KEYED_ABSENT);
	check_int(tw_keyed_get(table, keys, 199, NULL), TW_KEYED_PRESENT);
	keys[199] = 0;
	for (size_t i = 0; i < 256; i += 2) {
		check_int(tw_keyed_cancel(table, keys, i + 1, TW_KEYED_ANY), TW_KEYED_DONE);
		check_item(&items[i], TW_KEYED_END_CANCELLED, 0);
		check_int(items[i].key_bytes, i + 1);
	}
	check_int(tw_keyed_count(table), 128);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (size_t i = 1; i < 256; i += 2)
		check_item(&items[i], TW_KEYED_END_FIRED, 1);
	scene_close(&fixture, table);
}

/* More keys than the table was made for. */
Test(keyed, more_keys_than_expected)
{
	enum { KEYS = 5000 };
	static struct item items[KEYS];
	struct tw_keyed_options options;
	struct fixture fixture;
	struct tw_keyed *table;

	fixture_open(&fixture, NULL);
	check_int(tw_keyed_options_init(&options, sizeof options), 0);
	options.expected_keys = 3;
	options.reserve = 100;
	check_int(tw_keyed_create(fixture.engine, &options, &table), 0);
	for (int i = 0; i < KEYS; i++) {
		item_init(&items[i], fixture.engine);
		check_int(tw_keyed_schedule(table, &i, sizeof i, NS_PER_S, &item_kind, &items[i],
					    NULL),
			  TW_KEYED_DONE);
	}
	check_int(tw_keyed_count(table), KEYS);
	for (int i = 0; i < KEYS; i += 3)
		check_int(tw_keyed_cancel(table, &i, sizeof i, TW_KEYED_ANY), TW_KEYED_DONE);
	fixture_advance(&fixture, 2 * NS_PER_S);
	for (int i = 0; i < KEYS; i++)
		check_item(&items[i], i % 3 ? TW_KEYED_END_FIRED : TW_KEYED_END_CANCELLED,
			   i % 3 != 0);
	scene_close(&fixture, table);
}

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

/* A run that does `inside`, and then would run again. */
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

Test(keyed, in_its_own_callback)
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

/* The key of a cancelled entry is free while its callback runs on. */
static void cancel_and_schedule_own(const struct tw_keyed_self *self, struct item *item)
{
	cancel_own(self, item);
	if (tw_keyed_get(self->table, self->key, self->key_bytes, NULL) == TW_KEYED_ABSENT &&
	    tw_keyed_cancel(self->table, self->key, self->key_bytes, TW_KEYED_ANY) ==
		    TW_KEYED_ABSENT)
		schedule_own(self, item);
}

Test(keyed, a_cancelled_run_has_left_its_key)
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

/* The hook schedules the same key again, as a cache does that refreshes. */
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

Test(keyed, in_its_hook)
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

/* An executor's queue: what has expired and not run yet. */
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

/* Scheduled, expired, and still in the executor's queue. */
static void item_queue(struct fixture *fixture, struct tw_keyed *table, struct item *item)
{
	item_init(item, fixture->engine);
	check_int(key_schedule(table, "a", 0, item), TW_KEYED_DONE);
	fixture_advance(fixture, fixture->tick_ns);
	check_int(due_count, 1);
	check_alive(item, 0);
}

Test(keyed, what_is_on_its_way_does_not_arrive)
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

/* A late hook stands in the place of a callback of the engine's, not of one of the table's. */
static void on_late(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg,
		    int64_t late_by_ns)
{
	(void)self;
	(void)arg;
	(void)late_by_ns;
	atomic_fetch_add((atomic_int *)context, tw_keyed_owns(kind));
}

Test(keyed, late_hook)
{
	struct tw_options options = fixture_options();
	static atomic_int told;
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	options.late_ns = NS_PER_MS;
	options.late = on_late;
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

Test(keyed, stop_ends_all)
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

/* A callback that ends its thread has ended its entry; the engine fails, stop ends the others. */
static int64_t on_item_exit(const struct tw_keyed_self *self, void *arg)
{
	(void)on_item(self, arg);
	pthread_exit(NULL);
}

Test(keyed, a_callback_that_ends_its_thread)
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

Test(keyed, two_tables_are_two)
{
	struct fixture fixture;
	struct tw_keyed *left, *right;
	struct item first, second;

	fixture_open(&fixture, NULL);
	left = table_open(&fixture);
	right = table_open(&fixture);
	item_init(&first, fixture.engine);
	item_init(&second, fixture.engine);
	check_int(key_schedule(left, "a", NS_PER_MS, &first), TW_KEYED_DONE);
	check_int(key_schedule(right, "a", NS_PER_MS, &second), TW_KEYED_DONE);
	check_int(key_cancel(left, "a"), TW_KEYED_DONE);
	check_int(tw_keyed_destroy(left), 0);
	fixture_advance(&fixture, 5 * NS_PER_MS);
	check_item(&second, TW_KEYED_END_FIRED, 1);
	scene_close(&fixture, right);
}
