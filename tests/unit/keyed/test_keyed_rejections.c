/* SPDX-License-Identifier: MIT */
/*
 * Unusual inputs of keyed timeouts, failed allocations, a full engine, forked children, and the
 * reclaimer's thread. Each call must return its code, and leave no entry or memory.
 *
 * Seen to fail with these defects: a check is left out (of flags, expected keys, the length of a
 * key, or a fork); an entry stays if its timer is rejected or its key cannot be copied; a copy is
 * not released; the reclaimer is not notified of entries; the reclaimer does not end.
 */
#include "child.h"
#include "fault.h"
#include "keyed_scene.h"

#include <dirent.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

struct scene {
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;
};

static void scene_open(struct scene *scene)
{
	fixture_open(&scene->fixture, NULL);
	scene->table = table_open(&scene->fixture);
	item_init(&scene->item, scene->fixture.engine);
}

/* Closes the scene. The rejected calls must have had no effect. */
static void scene_end(struct scene *scene)
{
	check_alive(&scene->item, 0);
	check_int(tw_keyed_count(scene->table), 0);
	check_int(tw_engine_pending(scene->fixture.engine), 0);
	scene_close(&scene->fixture, scene->table);
}

static void rejects(struct scene *scene, const void *key, size_t key_bytes, int64_t delay_ns,
		    const struct tw_keyed_kind *kind, int code)
{
	uint64_t life = 7;

	check_int(tw_keyed_schedule(scene->table, key, key_bytes, delay_ns, kind, &scene->item,
				    &life),
		  code);
	check_int(
		tw_keyed_replace(scene->table, key, key_bytes, delay_ns, kind, &scene->item, &life),
		code);
	check_int(life, 7);
}

Test(keyed_rejections, bad_arguments_are_rejected)
{
	static const char key[257];
	struct tw_keyed_info info = {.size = sizeof info};
	struct tw_keyed_kind kind = item_kind;
	struct scene scene;

	scene_open(&scene);
	rejects(&scene, NULL, 1, 0, &item_kind, -EINVAL);
	rejects(&scene, key, 0, 0, &item_kind, -EINVAL);
	rejects(&scene, key, 257, 0, &item_kind, -EINVAL);
	rejects(&scene, key, 1, 0, NULL, -EINVAL);
	rejects(&scene, key, 1, INT64_MIN, &item_kind, -ERANGE);
	kind.callback = NULL;
	rejects(&scene, key, 1, 0, &kind, -EINVAL);
	kind = item_kind;
	kind.flags = 1;
	rejects(&scene, key, 1, 0, &kind, -EINVAL);
	kind = item_kind;
	kind.size = sizeof kind - 1;
	rejects(&scene, key, 1, 0, &kind, -EINVAL);
	check_int(tw_keyed_schedule(NULL, key, 1, 0, &item_kind, NULL, NULL), -EINVAL);
	check_int(tw_keyed_replace(NULL, key, 1, 0, &item_kind, NULL, NULL), -EINVAL);
	check_int(tw_keyed_cancel(NULL, key, 1, TW_KEYED_ANY), -EINVAL);
	check_int(tw_keyed_cancel(scene.table, NULL, 1, TW_KEYED_ANY), -EINVAL);
	check_int(tw_keyed_cancel(scene.table, key, 0, TW_KEYED_ANY), -EINVAL);
	check_int(tw_keyed_cancel(scene.table, key, 257, TW_KEYED_ANY), -EINVAL);
	check_int(tw_keyed_reschedule(NULL, key, 1, 0), -EINVAL);
	check_int(tw_keyed_reschedule(scene.table, key, 0, 0), -EINVAL);
	check_int(tw_keyed_reschedule(scene.table, key, 1, INT64_MIN), -ERANGE);
	check_int(tw_keyed_get(NULL, key, 1, &info), -EINVAL);
	check_int(tw_keyed_get(scene.table, key, 257, &info), -EINVAL);
	info.size--;
	check_int(tw_keyed_get(scene.table, key, 1, &info), -EINVAL);
	info.size = 4097;
	check_int(tw_keyed_get(scene.table, key, 1, &info), -EINVAL);
	check_int(tw_keyed_count(NULL), -EINVAL);
	check_int(tw_keyed_each(scene.table, NULL, NULL), -EINVAL);
	check_int(tw_keyed_each(NULL, NULL, NULL), -EINVAL);
	check_int(tw_keyed_destroy(NULL), 0);
	scene_end(&scene);
}

/*
 * Structs of a newer header. A kind must be rejected if a field that this library does not know is
 * not zero.
 */
Test(keyed_rejections, newer_kind_is_rejected_unless_its_tail_is_zero)
{
	struct {
		struct tw_keyed_kind kind;
		uint64_t more;
	} kind = {.kind = item_kind};
	struct {
		struct tw_keyed_info info;
		uint64_t more;
	} info = {.info = {.size = sizeof info}, .more = 5};
	struct scene scene;

	scene_open(&scene);
	kind.kind.size = sizeof kind;
	kind.more = 1;
	rejects(&scene, "a", 1, 0, &kind.kind, -E2BIG);
	kind.kind.size = 4097;
	rejects(&scene, "a", 1, 0, &kind.kind, -E2BIG);
	kind.kind.size = sizeof kind;
	kind.more = 0;
	check_int(tw_keyed_schedule(scene.table, "a", 1, NS_PER_S, &kind.kind, &scene.item, NULL),
		  0);
	check_int(tw_keyed_get(scene.table, "a", 1, &info.info), TW_KEYED_PRESENT);
	check_int(info.info.size, sizeof info);
	check_int(info.more, 0);
	check_true(info.info.arg == &scene.item);
	check_int(key_cancel(scene.table, "a"), TW_KEYED_DONE);
	check_item(&scene.item, TW_KEYED_END_CANCELLED, 0);
	scene_close(&scene.fixture, scene.table);
}

static int create_with(struct tw_engine *engine, const struct tw_keyed_options *options)
{
	struct tw_keyed *table = NULL;
	int result = tw_keyed_create(engine, options, &table);

	check_true((result == 0) == (table != NULL));
	check_int(tw_keyed_destroy(table), 0);
	return result;
}

Test(keyed_rejections, create_rejects_bad_options)
{
	static const struct tw_allocator half = {.allocate = NULL};
	struct tw_keyed_options options, good;
	struct {
		struct tw_keyed_options options;
		uint64_t more;
	} newer = {.more = 1};
	struct tw_keyed *table = NULL;
	struct fixture fixture;

	fixture_open(&fixture, NULL);
	check_int(tw_keyed_options_init(NULL, sizeof options), -EINVAL);
	check_int(tw_keyed_options_init(&options, sizeof options - 1), -EINVAL);
	check_int(tw_keyed_options_init(&options, 4097), -E2BIG);
	check_int(tw_keyed_options_init(&good, sizeof good), 0);
	check_int(tw_keyed_create(NULL, &good, &table), -EINVAL);
	check_int(tw_keyed_create(fixture.engine, &good, NULL), -EINVAL);
	check_int(create_with(fixture.engine, NULL), 0);
	check_int(create_with(fixture.engine, &good), 0);
#define REJECTED(field, value, code)                                                               \
	do {                                                                                       \
		options = good;                                                                    \
		options.field = (value);                                                           \
		check_int(create_with(fixture.engine, &options), (code));                          \
	} while (0)
	REJECTED(size, sizeof options - 1, -EINVAL);
	REJECTED(size, 4097, -E2BIG);
	REJECTED(flags, 1, -EINVAL);
	REJECTED(expected_keys, 0, -EINVAL);
	REJECTED(expected_keys, TW_KEYED_KEYS_MAX + 1, -EINVAL);
	REJECTED(key_bytes_max, 0, -EINVAL);
	REJECTED(key_bytes_max, TW_KEYED_KEY_BYTES_MAX + 1, -EINVAL);
	REJECTED(allocator, &half, -EINVAL);
	REJECTED(key_bytes_max, TW_KEYED_KEY_BYTES_MAX, 0);
	REJECTED(expected_keys, 1, 0);
	REJECTED(reserve, UINT64_C(1) + TW_KEYED_KEYS_MAX, -EINVAL);
	REJECTED(reserve, UINT64_MAX, -EINVAL);
	newer.options = good;
	newer.options.size = sizeof newer;
	check_int(create_with(fixture.engine, &newer.options), -E2BIG);
	newer.more = 0;
	check_int(create_with(fixture.engine, &newer.options), 0);
	fixture_close(&fixture);
}

Test(keyed_rejections, negative_delay_and_result_are_due_at_once)
{
	struct scene scene;

	scene_open(&scene);
	scene.item.scripted = 1;
	scene.item.again_ns[0] = -5;
	check_int(key_schedule(scene.table, "a", -NS_PER_S, &scene.item), TW_KEYED_DONE);
	fixture_advance(&scene.fixture, scene.fixture.tick_ns);
	check_item(&scene.item, TW_KEYED_END_FIRED, 1);
	scene_close(&scene.fixture, scene.table);
}

/*
 * For each k, the k-th call of the table's allocator fails. The table allocates itself, entries,
 * and copies of long keys.
 */
Test(keyed_rejections, failed_allocations_leave_nothing_behind)
{
	enum { KEYS = 100 };
	static const char key[200] = "long";
	static struct item items[KEYS];
	struct tw_keyed_options options;
	struct fixture fixture;
	struct fault fault;
	bool failed = true;

	fixture_open(&fixture, NULL);
	fault_init(&fault);
	check_int(tw_keyed_options_init(&options, sizeof options), 0);
	options.allocator = &fault.allocator;
	options.reserve = 1;
	for (int k = 1; failed; k++) {
		struct tw_keyed *table = NULL;
		int rejected = 0, accepted = 0;

		fault_arm(&fault, k, 1);
		failed = false;
		if (tw_keyed_create(fixture.engine, &options, &table) != 0) {
			check_int(atomic_load(&fault.live_bytes), 0);
			failed = true;
			continue;
		}
		for (int i = 0; i < KEYS; i++) {
			int code = tw_keyed_schedule(table, key, (size_t)(100 + i), NS_PER_S,
						     &item_kind, &items[i], NULL);

			item_init(&items[i], fixture.engine);
			check_true(code == 0 || code == -ENOMEM);
			rejected += code == -ENOMEM;
			accepted += code == 0;
		}
		failed = rejected != 0;
		check_at_most(rejected, 1);
		check_int(tw_keyed_count(table), accepted);
		fixture_advance(&fixture, 2 * NS_PER_S);
		for (int i = 0; i < KEYS; i++)
			check_int(items[i].ended, items[i].runs);
		check_int(tw_keyed_destroy(table), 0);
		check_int(atomic_load(&fault.live_bytes), 0);
		check_int(atomic_load(&fault.bad_releases), 0);
		if (!failed)
			check_at_least(k, KEYS);
	}
	fixture_close(&fixture);
}

/*
 * An engine at its limit must reject one more key, but allow a replace. An entry that runs again
 * must keep its place under the limit.
 */
Test(keyed_rejections, full_engine_rejects_a_key_but_allows_a_replace)
{
	struct tw_options options = fixture_options();
	struct item first, second, third;
	struct fixture fixture;
	struct tw_keyed *table;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	table = table_open(&fixture);
	item_init(&first, fixture.engine);
	item_init(&second, fixture.engine);
	item_init(&third, fixture.engine);
	second.scripted = 1;
	second.again_ns[0] = NS_PER_MS;
	check_int(key_schedule(table, "a", NS_PER_MS, &first), TW_KEYED_DONE);
	check_int(key_schedule(table, "b", NS_PER_MS, &third), -EAGAIN);
	check_int(key_replace(table, "b", NS_PER_MS, &third), -EAGAIN);
	check_int(key_replace(table, "a", NS_PER_MS, &second), TW_KEYED_REPLACED);
	check_item(&first, TW_KEYED_END_REPLACED, 0);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_alive(&second, 1);
	fixture_advance(&fixture, 3 * NS_PER_MS);
	check_item(&second, TW_KEYED_END_FIRED, 2);
	check_alive(&third, 0);
	scene_close(&fixture, table);
}

/*
 * Schedules a timeout in the callback. That timeout takes the entry's place under the limit. Then
 * the entry asks for another run, for which no place is left.
 */
static void take_place(const struct tw_keyed_self *self, struct item *item)
{
	(void)self;
	(void)tw_schedule(item->engine, NS_PER_S, &count_kind, &item->wrong, NULL);
}

Test(keyed_rejections, no_place_for_the_next_run)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	options.pending_limit = 1;
	fixture_open(&fixture, &options);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	item.scripted = 1;
	item.again_ns[0] = NS_PER_MS;
	item.inside = take_place;
	check_int(key_schedule(table, "a", 0, &item), TW_KEYED_DONE);
	fixture_advance(&fixture, fixture.tick_ns);
	check_item(&item, TW_KEYED_END_DROPPED, 1);
	check_int(tw_keyed_count(table), 0);
	scene_close(&fixture, table);
}

/* Makes the calls in a forked child. Returns 0 if all results are right. */
static int child_codes(struct scene *scene, struct tw_keyed *empty)
{
	struct tw_keyed_info info = {.size = sizeof info};
	struct tw_keyed *table = NULL;

	if (key_schedule(scene->table, "b", 0, &scene->item) != -ECHILD ||
	    key_replace(scene->table, "a", 0, &scene->item) != -ECHILD ||
	    key_cancel(scene->table, "a") != -ECHILD ||
	    tw_keyed_reschedule(scene->table, "a", 1, 0) != -ECHILD)
		return 1;
	if (key_get(scene->table, "a", &info) != -ECHILD)
		return 2;
	if (tw_keyed_create(scene->fixture.engine, NULL, &table) != -ECHILD)
		return 3;
	if (tw_keyed_count(scene->table) != 1 || tw_keyed_destroy(scene->table) != -EBUSY)
		return 4;
	return tw_keyed_destroy(empty) == 0 && scene->item.ended == 0 ? 0 : 5;
}

Test(keyed_rejections, forked_child_is_rejected_and_the_parent_goes_on)
{
	struct tw_keyed *empty;
	struct scene scene;
	int status = -1;
	pid_t child;

	scene_open(&scene);
	empty = table_open(&scene.fixture);
	check_int(key_schedule(scene.table, "a", NS_PER_MS, &scene.item), TW_KEYED_DONE);
	child = quiet_fork();
	if (child == 0)
		child_end(child_codes(&scene, empty));
	check_int(waitpid(child, &status, 0), child);
	check_true(WIFEXITED(status));
	check_int(WEXITSTATUS(status), 0);
	/* The parent's entry must still run. */
	fixture_advance(&scene.fixture, 3 * NS_PER_MS);
	check_item(&scene.item, TW_KEYED_END_FIRED, 1);
	check_int(tw_keyed_destroy(empty), 0);
	scene_close(&scene.fixture, scene.table);
}

/* Counts the threads of this process whose names begin with `prefix`. */
static int threads_named(const char *prefix)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *task;
	int count = 0;

	check_true(tasks != NULL);
	while ((task = readdir(tasks)) != NULL) {
		char path[300], name[32] = "";
		FILE *file;

		snprintf(path, sizeof path, "/proc/self/task/%s/comm", task->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof name, file) != NULL)
			count += strncmp(name, prefix, strlen(prefix)) == 0;
		(void)fclose(file);
	}
	(void)closedir(tasks);
	return count;
}

/*
 * Waits until there are `count` reclaimers, because a thread sets its name only when it begins, and
 * ends some time after it is notified.
 */
static void reclaimers_await(int count)
{
	for (int i = 0; i < 10000 && threads_named("tw-reclaim") != count; i++)
		sleep_ns(NS_PER_MS);
	check_int(threads_named("tw-reclaim"), count);
}

Test(keyed_rejections, tables_share_one_reclaimer)
{
	struct fixture fixture;
	struct tw_keyed *tables[3];
	int before;

	fixture_open(&fixture, NULL);
	check_int(tw_engine_start(fixture.engine), 0);
	reclaimers_await(0);
	before = threads_named("");
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 3; i++)
			tables[i] = table_open(&fixture);
		/* A second reclaimer counts here even before it has set its name. */
		check_int(threads_named(""), before + 1);
		reclaimers_await(1);
		for (int i = 0; i < 3; i++)
			check_int(tw_keyed_destroy(tables[i]), 0);
		reclaimers_await(0);
	}
	fixture_close(&fixture);
}

/* Rejects everything. The engine drops rejected timeouts. */
static size_t take_none(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	return 0;
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)self;
	(void)arg;
	atomic_fetch_add((atomic_int *)context, tw_keyed_owns(kind));
}

Test(keyed_rejections, dropped_by_an_executor)
{
	struct tw_options options = fixture_options();
	atomic_int dropped = 0;
	struct fixture fixture;
	struct tw_keyed *table;
	struct item item;

	options.dispatch = take_none;
	options.rejection = TW_REJECTION_DROP;
	options.on_drop = on_drop;
	options.drop_context = &dropped;
	fixture_open(&fixture, &options);
	table = table_open(&fixture);
	item_init(&item, fixture.engine);
	check_int(key_schedule(table, "a", 0, &item), TW_KEYED_DONE);
	fixture_advance(&fixture, 2 * NS_PER_MS);
	check_int(dropped, 1);
	check_item(&item, TW_KEYED_END_DROPPED, 0);
	check_int(key_get(table, "a", NULL), TW_KEYED_ABSENT);
	scene_close(&fixture, table);
}
