/* SPDX-License-Identifier: MIT */
/*
 * Races of a program in its own callbacks. ThreadSanitizer must report each. The library reports
 * its ordering edges to ThreadSanitizer, but must not hide these races.
 *
 * usage: races SCENE; ThreadSanitizer's report names the function that has the scene's name.
 */
#include "pool.h"

static int counter;

/*
 * Makes the first access. The steps make the two accesses come one after the other, but do not
 * order memory. So ThreadSanitizer must report the race in each run.
 */
static void counts_here(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	counter++;
	step(step_now() + 1);
}

static const struct tw_kind count_kind = TW_KIND(counts_here, NULL);

static void callback_and_main(void)
{
	struct tw_engine *engine = engine_begin(NULL);

	must(tw_schedule(engine, 0, &count_kind, NULL, NULL) == 0);
	step_await(1);
	counter++;
	engine_end(engine);
}

/* Uses two engines alternately, so that each engine's timeouts get the memory of the other's. */
static void two_engines(void)
{
	struct tw_engine *engines[2] = {engine_begin(NULL), engine_begin(NULL)};

	for (int i = 0; i < 6; i++) {
		must(tw_schedule(engines[i % 2], 0, &count_kind, NULL, NULL) == 0);
		step_await(i + 1);
		await(tw_engine_pending(engines[i % 2]) == 0);
	}
	engine_end(engines[0]);
	engine_end(engines[1]);
}

static void two_executor_threads(void)
{
	struct tw_options options = options_default();
	struct tw_engine *engine;
	struct pool pool;

	pool_begin(&pool);
	options.dispatch = pool_dispatch;
	options.dispatch_context = &pool;
	engine = engine_begin(&options);
	for (int i = 0; i < 4; i++) {
		must(tw_schedule(engine, 0, &count_kind, NULL, NULL) == 0);
		step_await(i + 1);
	}
	engine_end(engine);
	pool_end(&pool);
}

static void reads_argument(struct tw_handle self, void *arg)
{
	(void)self;
	step_await(1);
	must(*(int *)arg == 2);
	step(2);
}

static void written_after_schedule(void)
{
	static const struct tw_kind kind = TW_KIND(reads_argument, NULL);
	struct tw_engine *engine = engine_begin(NULL);
	static int value = 1;

	must(tw_schedule(engine, 0, &kind, &value, NULL) == 0);
	value = 2;
	step(1);
	step_await(2);
	engine_end(engine);
}

static void writes_late(struct tw_handle self, void *arg)
{
	(void)self;
	step(1);
	step_await(2);
	*(volatile int *)arg = 3;
	step(3);
}

static void freed_while_it_runs(void)
{
	static const struct tw_kind kind = TW_KIND(writes_late, NULL);
	struct tw_engine *engine = engine_begin(NULL);
	int *value = malloc(sizeof *value);
	struct tw_handle handle;

	must(tw_schedule(engine, 0, &kind, value, &handle) == 0);
	step_await(1);
	must(tw_cancel(handle) == TW_CANCEL_RUNNING);
	free(value);
	step(2);
	step_await(3);
	engine_end(engine);
}

static int64_t key_counts(const struct tw_keyed_self *self, void *arg)
{
	(void)self;
	(void)arg;
	counter++;
	step(1);
	return TW_KEYED_END;
}

static void key_and_main(void)
{
	static const struct tw_keyed_kind kind = TW_KEYED_KIND(key_counts, NULL);
	struct tw_engine *engine = engine_begin(NULL);
	struct tw_keyed *table;

	must(tw_keyed_create(engine, NULL, &table) == 0);
	must(tw_keyed_schedule(table, "key", 3, 0, &kind, NULL, NULL) == TW_KEYED_DONE);
	step_await(1);
	counter++;
	await(tw_keyed_destroy(table) == 0);
	engine_end(engine);
}

static int retry_counts(struct tw_retry_handle self, void *arg, uint64_t attempt)
{
	(void)self;
	(void)arg;
	(void)attempt;
	counter++;
	step(1);
	return TW_RETRY_DONE;
}

static void retry_and_main(void)
{
	static const struct tw_retry_schedule schedule = TW_RETRY_READY(TW_RETRY_FORM_FAILBACK);
	static const struct tw_retry_kind kind = TW_RETRY_KIND(retry_counts, NULL, &schedule, 0);
	struct tw_engine *engine = engine_begin(NULL);
	struct tw_retry *queue;

	must(tw_retry_create(engine, NULL, &queue) == 0);
	must(tw_retry_submit(queue, 0, &kind, NULL, NULL) == 0);
	step_await(1);
	counter++;
	await(tw_retry_destroy(queue) == 0);
	engine_end(engine);
}

static const struct scene scenes[] = {
	{"callback_and_main", callback_and_main},
	{"two_engines", two_engines},
	{"two_executor_threads", two_executor_threads},
	{"written_after_schedule", written_after_schedule},
	{"freed_while_it_runs", freed_while_it_runs},
	{"key_and_main", key_and_main},
	{"retry_and_main", retry_and_main},
};

int main(int argc, char **argv)
{
	if (argc == 2)
		return SCENES_RUN(scenes, argc, argv);
	for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++)
		printf("%s\n", scenes[i].name);
	return 0;
}
