/* SPDX-License-Identifier: MIT */
/*
 * Keyed timeouts in virtual time: the result and the effect of each call.
 *
 * Seen to fail with these defects: a replace does not move the timer, or does not call the old
 * entry's hook; a cancel ignores the entry's number (`life`); a key is still counted after its
 * entry has ended.
 */
#include "keyed_scene.h"

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
	/* A replace must also work if the new time is earlier. */
	check_int(key_replace(table, "a", NS_PER_MS, &third), TW_KEYED_REPLACED);
	check_item(&second, TW_KEYED_END_REPLACED, 0);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_item(&third, TW_KEYED_END_FIRED, 1);
	check_true(first.life != second.life && second.life != third.life);
	fixture_advance(&fixture, 100 * NS_PER_MS);
	scene_close(&fixture, table);
}

Test(keyed, cancel_by_key_frees_the_key)
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

/* Each entry of a key has its own number, its life. A cancel that names the life of an earlier
 * entry must not cancel the key's next entry. */
Test(keyed, cancel_of_an_earlier_life_spares_the_next)
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
	/* If a run returns TW_NEVER, the entry keeps its key and waits for a reschedule. */
	fixture_advance(&fixture, 3600 * NS_PER_S);
	check_alive(&item, 3);
	check_int(key_schedule(table, "a", 0, &other), TW_KEYED_PRESENT);
	check_int(tw_keyed_reschedule(table, "a", 1, 0), TW_KEYED_DONE);
	fixture_advance(&fixture, fixture.tick_ns);
	check_item(&item, TW_KEYED_END_FIRED, 4);
	scene_close(&fixture, table);
}

Test(keyed, reschedule_by_key_postpones_the_entry)
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
	/* If the visitor returns non-zero, no more keys may be visited. */
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

/* Keys that differ only at the end, in length, or in zero bytes. Some keys are too long for an
 * entry. */
Test(keyed, keys_differ_in_length_and_in_zero_bytes)
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

/* The table must take more keys than it was made for. */
Test(keyed, more_keys_than_expected_fit)
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
