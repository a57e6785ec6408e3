/* SPDX-License-Identifier: MIT */
/*
 * The layers above the engine: keys, retries, groups. ThreadSanitizer must not report any access of
 * these. usage: layers [SCENE]
 */
#include "pool.h"

/* The next scenes use keyed timeouts. */

static atomic_int key_runs;

static int64_t key_callback(const struct tw_keyed_self *self, void *arg)
{
	int *value = arg;

	must(self->key_bytes == 0 || ((const char *)self->key)[0] != 0);
	++*value;
	atomic_fetch_add_explicit(&key_runs, 1, memory_order_relaxed);
	return *value < 10 ? MS : TW_KEYED_END;
}

static void key_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	int *value = arg;

	(void)end;
	must(((const char *)self->key)[0] != 0 && *value >= 0);
	*value = -1;
	free(value);
	done_note();
}

static const struct tw_keyed_kind key_kind = TW_KEYED_KIND(key_callback, key_ended);

static struct tw_keyed *table;
static const char *const keys[] = {
	"short", "another",
	"a key that is a good deal longer than thirty-six bytes, so that it is copied",
	"a second one that is a good deal longer than thirty-six bytes, and copied too"};

enum { KEYS = 4, KEY_ROUNDS = 400, CHURNERS = 3 };

static int key_visit(void *context, const void *key, size_t key_bytes,
		     const struct tw_keyed_info *info)
{
	volatile char last = 0;

	(void)info;
	for (size_t i = 0; i < key_bytes; i++)
		last = ((const char *)key)[i];
	*(int *)context += last != 0;
	return 0;
}

static int *value_new(void)
{
	int *value = malloc(sizeof *value);

	must(value != NULL);
	*value = 0;
	return value;
}

static void key_turn(unsigned number, unsigned round)
{
	const char *key = keys[(number + round * 7) % KEYS];
	struct tw_keyed_info info = {.size = sizeof info};
	int *value = value_new();
	int visits = 0;
	int outcome =
		round % 3 == 0
			? tw_keyed_replace(table, key, strlen(key), MS, &key_kind, value, NULL)
			: tw_keyed_schedule(table, key, strlen(key), MS, &key_kind, value, NULL);

	must(outcome >= 0);
	if (outcome == TW_KEYED_PRESENT)
		free(value);
	must(tw_keyed_get(table, key, strlen(key), &info) >= 0);
	if (round % 5 == 0)
		must(tw_keyed_cancel(table, key, strlen(key), TW_KEYED_ANY) >= 0);
	else if (round % 5 == 1)
		must(tw_keyed_reschedule(table, key, strlen(key), 2 * MS) >= 0);
	else if (round % 5 == 2)
		must(tw_keyed_each(table, key_visit, &visits) >= 0);
}

static void *key_churn(void *number)
{
	for (unsigned round = 0; round < KEY_ROUNDS; round++) {
		key_turn(*(unsigned *)number, round);
		if (round % 16 == 0)
			nap();
	}
	return NULL;
}

static void table_begin(struct tw_engine *engine)
{
	must(tw_keyed_create(engine, NULL, &table) == 0);
}

static void table_end(void)
{
	await(tw_keyed_destroy(table) == 0);
}

static void keyed_churn_on(struct tw_options *options)
{
	static unsigned numbers[CHURNERS] = {0, 1, 2};
	struct tw_engine *engine = engine_begin(options);
	pthread_t churners[CHURNERS];

	table_begin(engine);
	for (int i = 0; i < CHURNERS; i++)
		churners[i] = thread_begin(key_churn, &numbers[i]);
	for (int i = 0; i < CHURNERS; i++)
		thread_end(churners[i]);
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	table_end();
	must(tw_engine_destroy(engine) == 0);
}

static void keyed_churn(void)
{
	keyed_churn_on(NULL);
}

static void keyed_in_executors(void)
{
	struct tw_options options = options_default();
	struct pool pool;

	pool_begin(&pool);
	options.dispatch = pool_dispatch;
	options.dispatch_context = &pool;
	keyed_churn_on(&options);
	pool_end(&pool);
}

/*
 * In the next scene, another thread replaces an entry, whose hook writes. Destroy must publish
 * these writes.
 */

static int key_values[2];
static int key_end_seen;

static int64_t silent_callback(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	must(*(int *)arg == 1);
	return TW_KEYED_END;
}

static void seen_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	(void)self;
	must(*(int *)arg == 1);
	*(int *)arg = 2;
	if (end == TW_KEYED_END_FIRED)
		key_end_seen = 1;
	done_note();
}

static const struct tw_keyed_kind seen_kind = TW_KEYED_KIND(silent_callback, seen_ended);

static void *other_replaces(void *unused)
{
	step_await(1);
	key_values[1] = 1;
	must(tw_keyed_replace(table, "key", 3, 0, &seen_kind, &key_values[1], NULL) ==
	     TW_KEYED_REPLACED);
	return unused;
}

static void keyed_replace_and_destroy(void)
{
	struct tw_engine *engine = engine_begin(NULL);
	pthread_t other;

	table_begin(engine);
	other = thread_begin(other_replaces, NULL);
	key_values[0] = 1;
	must(tw_keyed_schedule(table, "key", 3, TW_NEVER, &seen_kind, &key_values[0], NULL) ==
	     TW_KEYED_DONE);
	step(1);
	await(done_now() == 2);
	table_end();
	must(key_end_seen == 1 && key_values[1] == 2);
	thread_end(other);
	must(key_values[0] == 2);
	engine_end(engine);
}

/*
 * In the next scene, another thread replaces an entry in place, and a lookup must see the new
 * argument. Then that thread visits the key, and this thread cancels the entry.
 */

static int place_values[2];

static void *other_replaces_in_place(void *unused)
{
	step_await(1);
	place_values[1] = 1;
	must(tw_keyed_replace(table, keys[2], strlen(keys[2]), TW_NEVER, &seen_kind,
			      &place_values[1], NULL) == TW_KEYED_REPLACED);
	step(2);
	step_await(3);
	must(tw_keyed_each(table, key_visit, &place_values[0]) == 1);
	step(4);
	return unused;
}

static void keyed_get_and_each(void)
{
	struct tw_keyed_info info = {.size = sizeof info};
	struct tw_engine *engine = engine_begin(NULL);
	const char *key = keys[2];
	pthread_t other;

	table_begin(engine);
	other = thread_begin(other_replaces_in_place, NULL);
	place_values[0] = 1;
	must(tw_keyed_schedule(table, key, strlen(key), TW_NEVER, &seen_kind, &place_values[0],
			       NULL) == TW_KEYED_DONE);
	step(1);
	step_await(2);
	await(tw_keyed_get(table, key, strlen(key), &info) == TW_KEYED_PRESENT && info.busy == 0);
	must(*(int *)info.arg == 1);
	step(3);
	step_await(4);
	must(tw_keyed_cancel(table, key, strlen(key), TW_KEYED_ANY) == TW_KEYED_DONE);
	table_end();
	thread_end(other);
	engine_end(engine);
}

/*
 * The next scenes use retries: another thread completes an attempt, or a task is cancelled or
 * dropped. Destroy must publish the writes of all of these.
 */

static struct tw_retry *queue;
static _Atomic(void *) open_task;
static atomic_ullong open_generation, open_attempt;
static int answers[4] = {1}, tries;

static int retry_attempt(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	must(*(int *)arg == 1 && answers[attempt - 1] == 1);
	tries++;
	atomic_store_explicit(&open_generation, self.generation, memory_order_relaxed);
	atomic_store_explicit(&open_attempt, self.attempt, memory_order_relaxed);
	atomic_store_explicit(&open_task, self.task, memory_order_relaxed);
	step((int)attempt);
	return TW_RETRY_PENDING;
}

static void retry_ended(void *arg, enum tw_retry_end end, uint64_t attempts)
{
	(void)attempts;
	(void)end;
	*(int *)arg = 2;
	done_note();
}

static const int64_t delays[] = {MS, MS, MS};
static const struct tw_retry_schedule retry_schedule = TW_RETRY_TABLE(delays);
static const struct tw_retry_kind retry_kind =
	TW_RETRY_KIND(retry_attempt, retry_ended, &retry_schedule, 0);

static void *other_completes(void *unused)
{
	for (int at = 1; at <= 3; at++) {
		struct tw_retry_handle handle;

		step_await(at);
		handle = (struct tw_retry_handle){
			.task = atomic_load_explicit(&open_task, memory_order_relaxed),
			.generation = atomic_load_explicit(&open_generation, memory_order_relaxed),
			.attempt = atomic_load_explicit(&open_attempt, memory_order_relaxed)};
		answers[at] = 1;
		must(tw_retry_complete(handle, at < 3 ? TW_RETRY_AGAIN : TW_RETRY_DONE) == 0);
	}
	return unused;
}

static void *other_submits(void *value)
{
	step_await(10);
	must(tw_retry_submit(queue, TW_NEVER, &retry_kind, value, NULL) == 0);
	return NULL;
}

static void retries(void)
{
	struct tw_engine *engine = engine_begin(NULL);
	struct tw_retry_options options;
	static int value, oldest, newest;
	struct tw_retry_handle handle;
	pthread_t others[2];

	must(tw_retry_options_init(&options, sizeof options) == 0);
	options.pending_limit = 1;
	options.policy = TW_RETRY_DROP_OLDEST;
	must(tw_retry_create(engine, &options, &queue) == 0);
	newest = 1;
	others[0] = thread_begin(other_completes, NULL);
	others[1] = thread_begin(other_submits, &newest);
	value = 1;
	must(tw_retry_submit(queue, 0, &retry_kind, &value, &handle) == 0);
	await(done_now() == 1);
	await(tw_retry_cancel(handle) == TW_RETRY_CANCEL_ENDED);
	must(value == 2 && tries == 3);
	oldest = 1;
	must(tw_retry_submit(queue, TW_NEVER, &retry_kind, &oldest, NULL) == 0);
	step(10);
	await(done_now() == 2);
	must(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	await(tw_retry_destroy(queue) == 0);
	must(oldest == 2 && newest == 2);
	must(tw_engine_destroy(engine) == 0);
	thread_end(others[0]);
	thread_end(others[1]);
}

static int retry_once(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)self;
	(void)attempt;
	must(*(int *)arg == 1);
	return TW_RETRY_DONE;
}

static void retry_destroy(void)
{
	static const struct tw_retry_kind kind =
		TW_RETRY_KIND(retry_once, retry_ended, &retry_schedule, 0);
	struct tw_engine *engine = engine_begin(NULL);
	static int value = 1;

	must(tw_retry_create(engine, NULL, &queue) == 0);
	must(tw_retry_submit(queue, 0, &kind, &value, NULL) == 0);
	await(done_now() == 1);
	await(tw_retry_destroy(queue) == 0);
	must(value == 2);
	engine_end(engine);
}

/* The next scene uses a group. */

enum { GROUP_THREADS = 3, GROUP_TIMEOUTS = 100 };

static struct tw_group *group;
static int group_values[GROUP_THREADS][GROUP_TIMEOUTS];

static void group_callback(struct tw_handle self, void *arg)
{
	(void)self;
	must(*(int *)arg == 1);
	*(int *)arg = 2;
	done_note();
}

static void *group_schedules(void *values)
{
	static const struct tw_kind kind = TW_KIND(group_callback, NULL);
	int *value = values;

	for (int i = 0; i < GROUP_TIMEOUTS; i++) {
		value[i] = 1;
		must(tw_group_schedule(group, 0, &kind, &value[i], NULL) == 0);
	}
	return NULL;
}

static void groups(void)
{
	struct tw_group_options options;
	pthread_t threads[GROUP_THREADS];

	must(tw_group_options_init(&options, sizeof options) == 0);
	options.engines = 2;
	must(tw_group_create(&options, &group) == 0);
	for (int i = 0; i < GROUP_THREADS; i++)
		threads[i] = thread_begin(group_schedules, group_values[i]);
	await(done_now() == GROUP_THREADS * GROUP_TIMEOUTS);
	must(tw_group_stop(group, NULL, NULL, TW_NEVER) == 0);
	for (int i = 0; i < GROUP_THREADS * GROUP_TIMEOUTS; i++)
		must(group_values[i / GROUP_TIMEOUTS][i % GROUP_TIMEOUTS] == 2);
	must(tw_group_destroy(group) == 0);
	for (int i = 0; i < GROUP_THREADS; i++)
		thread_end(threads[i]);
}

static const struct scene scenes[] = {
	{"keyed_churn", keyed_churn},
	{"keyed_in_executors", keyed_in_executors},
	{"keyed_replace_and_destroy", keyed_replace_and_destroy},
	{"keyed_get_and_each", keyed_get_and_each},
	{"retries", retries},
	{"retry_destroy", retry_destroy},
	{"groups", groups},
};

int main(int argc, char **argv)
{
	return SCENES_RUN(scenes, argc, argv);
}
