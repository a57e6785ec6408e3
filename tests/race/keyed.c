/* SPDX-License-Identifier: MIT */
/*
 * Keyed timeouts. usage: race_keyed [operations] [seed] [seconds]. Ends after this many operations
 * or seconds (0: no bound).
 *
 * One key has an entry from before the round until stop, because its callback replaces it by the
 * next entry. No lookup and no reschedule may find that key absent.
 *
 * A round has an engine and a table of a few keys. Two threads schedule, replace and cancel, each
 * on keys of its own and on keys that they share. The program counts the results of their calls. A
 * third thread cancels, by key and by life, and moves deadlines. A fourth looks up and iterates.
 * Callbacks run on the worker or in two executors, and some ask to run again. Meanwhile the engine
 * is stopped.
 *
 * Allowed outcomes: each accepted entry ends exactly once, and nothing of it runs after its hook.
 * Its runs never overlap. No run begins after a cancel or replace returned "done" or "replaced",
 * because then the hook has run. After "running", only a run that was about to begin may begin. A
 * cancel for one life ends that life or none. A lookup reports the key that was asked for, and the
 * argument and the life of one entry. The ends match the results that were returned. When stop has
 * returned and the threads are joined, no key has an entry, and the table can be destroyed.
 *
 * A run writes ordinary memory in its argument. The next run, on any thread, and the hook read it,
 * so ThreadSanitizer checks the order between them too.
 *
 * Seen to fail with these defects, most of them in the build with delays only:
 * - after a replace in place, a cancel of the old entry ends the new one;
 * - an expiry that finds the entry held is forgotten;
 * - `stop` is not checked;
 * - a dead entry keeps its key, or stays in the table;
 * - a lookup reports a key as absent while it is being replaced;
 * - an entry is freed although its timer can still expire or be handed back, or is never freed;
 * - a cancel by life ends whichever life has the key;
 * - a replace does not call the old entry's hook;
 * - twi_keyed_swap() is a load and a store.
 */
#include "dues.h"
#include "race.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

enum {
	ITEMS = 1500, /* how many items a round has */
	KEYS = 24,    /* a third for each writer, and a third that both use */
	WRITERS = 2,
	TICK_NS = 2000,
	EXECUTORS = 2,
	ENDS = 5,
	LONG_KEY_BYTES = 48,
	PINNED = KEYS + 1,
};

struct item {
	_Atomic uint32_t key;  /* its key, from 1 */
	_Atomic uint64_t life; /* its life; 0: not known yet */
	_Atomic bool inside;
	_Atomic uint64_t begun;
	_Atomic uint64_t last; /* the number of the last run that may begin; 0: no bound */
	_Atomic uint32_t ends;
	_Atomic uint32_t end;
	uint64_t runs;   /* ordinary memory, written by the runs */
	uint64_t random; /* ordinary memory too, used by the callbacks */
};

static struct tw_engine *engine;
static struct tw_keyed *table;
static struct item items[ITEMS];
static _Atomic uint64_t issued;
static _Atomic uint64_t accepted, operations, cancel_done, replace_done;
static _Atomic uint64_t ended[ENDS];
static _Atomic bool over, stopping;
static uint64_t total[ENDS];
static _Atomic uint64_t total_running, total_present, total_moved, total_seen, total_again;

/* Writes the name of a key, which is short or long. Returns its length. */
static size_t key_name(uint32_t key, char *ret_name)
{
	memset(ret_name, 'k', LONG_KEY_BYTES);
	memcpy(ret_name, &key, sizeof key);
	return key % 2 ? LONG_KEY_BYTES : sizeof key;
}

static bool name_is(uint32_t key, const void *name, size_t bytes)
{
	char right[LONG_KEY_BYTES];

	return bytes == key_name(key, right) && memcmp(right, name, bytes) == 0;
}

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	struct item *item = arg;
	uint64_t dice;

	RACE_CHECK(!atomic_exchange(&item->inside, true));
	RACE_CHECK(atomic_load(&item->ends) == 0);
	RACE_CHECK(self->runs == ++item->runs);
	RACE_CHECK(atomic_load(&item->last) == 0 || item->runs <= atomic_load(&item->last));
	RACE_CHECK(name_is(atomic_load(&item->key), self->key, self->key_bytes));
	atomic_store(&item->begun, item->runs);
	dice = race_random(&item->random) % 8;
	if (dice % 3 == 0)
		(void)sched_yield();
	atomic_store(&item->inside, false);
	if (dice < 4)
		return TW_KEYED_END;
	atomic_fetch_add(&total_again, 1);
	return dice == 4 ? TW_NEVER : (int64_t)(1 + race_random(&item->random) % 4000);
}

static void on_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct item *item = arg;

	RACE_CHECK(!atomic_load(&item->inside));
	RACE_CHECK(self->runs == item->runs);
	RACE_CHECK(name_is(atomic_load(&item->key), self->key, self->key_bytes));
	atomic_store(&item->end, (uint32_t)end);
	RACE_CHECK(atomic_fetch_add(&item->ends, 1) == 0);
	atomic_fetch_add(&ended[end], 1);
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, on_ended);

static const struct tw_keyed_kind pinned_kind;

static struct item *item_take(uint32_t key, uint64_t *random)
{
	uint64_t number = atomic_fetch_add(&issued, 1);

	if (number >= ITEMS)
		return NULL;
	items[number].random = race_random(random) | 1;
	atomic_store(&items[number].key, key);
	return &items[number];
}

/* Runs for the key that must always have an entry: gives the key to the next entry. */
static int64_t on_run_pinned(const struct tw_keyed_self *self, void *arg)
{
	struct item *item = arg;
	struct item *next = item_take(PINNED, &item->random);
	int outcome;

	(void)on_run(self, arg);
	if (next == NULL)
		return TW_NEVER;
	outcome = tw_keyed_replace(table, self->key, self->key_bytes,
				   (int64_t)(race_random(&item->random) % 4000), &pinned_kind, next,
				   NULL);
	if (outcome == -ESHUTDOWN)
		return TW_NEVER;
	RACE_CHECK(outcome == TW_KEYED_RUNNING || outcome == TW_KEYED_DONE);
	atomic_fetch_add(&accepted, 1);
	return TW_KEYED_END;
}

static const struct tw_keyed_kind pinned_kind = TW_KEYED_KIND(on_run_pinned, on_ended);

/*
 * Checks a result for the caller's own entry. Apart from the caller, only the entry's expiry, the
 * thread that moves deadlines, or stop may end the entry.
 */
static void own_ended(struct item *item, int outcome)
{
	if (item == NULL)
		return;
	if (outcome == TW_KEYED_RUNNING) {
		/* One run that was about to begin may still begin. */
		atomic_store(&item->last, atomic_load(&item->begun) + 1);
	} else if (outcome == TW_KEYED_REPLACED) {
		RACE_CHECK(atomic_load(&item->ends) == 1);
		RACE_CHECK(atomic_load(&item->end) == TW_KEYED_END_REPLACED);
	}
}

static bool writer_put(uint32_t key, struct item **own, uint64_t *random)
{
	struct item *item = item_take(key, random);
	int64_t delay_ns = (int64_t)(race_random(random) % 6000);
	char name[LONG_KEY_BYTES];
	size_t bytes = key_name(key, name);
	uint64_t life = 0;
	int outcome;

	if (item == NULL)
		return false;
	if (race_random(random) % 3 == 0)
		outcome = tw_keyed_schedule(table, name, bytes, delay_ns, &kind, item, &life);
	else
		outcome = tw_keyed_replace(table, name, bytes, delay_ns, &kind, item, &life);
	atomic_fetch_add(&operations, 1);
	if (outcome == -ESHUTDOWN)
		return false;
	RACE_CHECK(outcome >= 0 && outcome != TW_KEYED_ABSENT);
	if (outcome == TW_KEYED_PRESENT) {
		atomic_fetch_add(&total_present, 1);
		return true;
	}
	atomic_fetch_add(&accepted, 1);
	if (outcome == TW_KEYED_REPLACED)
		atomic_fetch_add(&replace_done, 1);
	own_ended(own[key], outcome);
	own[key] = item;
	RACE_CHECK(life != 0);
	atomic_store(&item->life, life);
	return true;
}

static void writer_cancel(uint32_t key, struct item **own)
{
	char name[LONG_KEY_BYTES];
	size_t bytes = key_name(key, name);
	int outcome = tw_keyed_cancel(table, name, bytes, TW_KEYED_ANY);

	RACE_CHECK(outcome == TW_KEYED_DONE || outcome == TW_KEYED_RUNNING ||
		   outcome == TW_KEYED_ABSENT);
	atomic_fetch_add(&operations, 1);
	if (outcome == TW_KEYED_DONE) {
		atomic_fetch_add(&cancel_done, 1);
		RACE_CHECK(atomic_load(&own[key]->ends) == 1);
		RACE_CHECK(atomic_load(&own[key]->end) == TW_KEYED_END_CANCELLED);
	}
	own_ended(own[key], outcome);
}

static void *write_main(void *argument)
{
	static _Atomic uint32_t writers;
	uint32_t writer = atomic_fetch_add(&writers, 1) % WRITERS;
	uint64_t random = (uint64_t)(uintptr_t)argument | 1;
	struct item *own[KEYS + 1] = {NULL}, *none[KEYS + 1] = {NULL};
	bool goes_on = true;

	while (goes_on) {
		uint32_t key = (uint32_t)(race_random(&random) % (KEYS / 3));
		uint64_t dice = race_random(&random) % 8;

		if (dice == 0)
			writer_cancel(1 + key + writer * (KEYS / 3), own);
		else if (dice < 6)
			goes_on = writer_put(1 + key + writer * (KEYS / 3), own, &random);
		else {
			none[1 + key + WRITERS * (KEYS / 3)] = NULL;
			goes_on = writer_put(1 + key + WRITERS * (KEYS / 3), none, &random);
		}
		if (race_random(&random) % 16 == 0)
			(void)sched_yield();
	}
	return NULL;
}

/*
 * Cancels only keys that both writers use: either by key, or by the life of one accepted item,
 * which any thread may have ended.
 */
static void any_cancel(uint32_t key, uint64_t *random)
{
	char name[LONG_KEY_BYTES];
	size_t bytes = key_name(key, name);
	uint64_t count = atomic_load(&issued);
	struct item *item = &items[race_random(random) % (count < ITEMS ? count + 1 : ITEMS)];
	uint64_t life = atomic_load(&item->life);
	int outcome;

	if (life == 0 || atomic_load(&item->key) != key || race_random(random) % 2)
		life = TW_KEYED_ANY;
	outcome = tw_keyed_cancel(table, name, bytes, life);
	if (outcome != TW_KEYED_ABSENT)
		atomic_fetch_add(&operations, 1);
	if (outcome == TW_KEYED_RUNNING) {
		atomic_fetch_add(&total_running, 1);
		if (life != TW_KEYED_ANY)
			atomic_store(&item->last, atomic_load(&item->begun) + 1);
	} else if (outcome == TW_KEYED_DONE) {
		atomic_fetch_add(&cancel_done, 1);
		if (life != TW_KEYED_ANY)
			RACE_CHECK(atomic_load(&item->end) == TW_KEYED_END_CANCELLED &&
				   atomic_load(&item->ends) == 1);
	} else {
		RACE_CHECK(outcome == TW_KEYED_ABSENT);
	}
}

static void pinned_move(uint64_t *random)
{
	char name[LONG_KEY_BYTES];
	int outcome = tw_keyed_reschedule(table, name, key_name(PINNED, name),
					  (int64_t)(race_random(random) % 5000));

	RACE_CHECK(outcome == TW_KEYED_DONE || outcome == TW_KEYED_RUNNING ||
		   atomic_load(&stopping));
}

static void *cancel_main(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument | 1;

	while (!atomic_load(&over)) {
		uint32_t key = 1 + (uint32_t)(race_random(&random) % KEYS);
		char name[LONG_KEY_BYTES];

		if (key > WRITERS * (KEYS / 3) && race_random(&random) % 2 == 0)
			any_cancel(key, &random);
		else if (tw_keyed_reschedule(table, name, key_name(key, name),
					     (int64_t)(race_random(&random) % 5000)) ==
			 TW_KEYED_DONE)
			atomic_fetch_add(&total_moved, 1);
		pinned_move(&random);
		if (race_random(&random) % 4 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static int on_visit(void *context, const void *key, size_t key_bytes,
		    const struct tw_keyed_info *info)
{
	struct item *item = info->arg;
	uint64_t life;

	(void)context;
	if (info->busy != 0)
		return 0;
	RACE_CHECK(item >= items && item < items + ITEMS);
	RACE_CHECK(name_is(atomic_load(&item->key), key, key_bytes));
	life = atomic_load(&item->life);
	RACE_CHECK(life == 0 || life == info->life);
	atomic_fetch_add(&total_seen, 1);
	return 0;
}

static void *look_main(void *argument)
{
	uint64_t random = (uint64_t)(uintptr_t)argument | 1;

	while (!atomic_load(&over)) {
		uint32_t key = 1 + (uint32_t)(race_random(&random) % (KEYS + 8));
		struct tw_keyed_info info = {.size = sizeof info};
		char name[LONG_KEY_BYTES];
		size_t bytes = key_name(key < PINNED ? key : PINNED, name);
		int outcome = tw_keyed_get(table, name, bytes, &info);

		RACE_CHECK(
			outcome == TW_KEYED_PRESENT ||
			(outcome == TW_KEYED_ABSENT && (key < PINNED || atomic_load(&stopping))));
		if (outcome == TW_KEYED_PRESENT)
			(void)on_visit(NULL, name, bytes, &info);
		if (race_random(&random) % 16 == 0)
			RACE_CHECK(tw_keyed_each(table, on_visit, NULL) <= ITEMS);
		RACE_CHECK(tw_keyed_count(table) <= ITEMS);
		if (race_random(&random) % 4 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static void pinned_put(void)
{
	uint64_t random = 1;
	struct item *item = item_take(PINNED, &random);
	char name[LONG_KEY_BYTES];

	RACE_CHECK(tw_keyed_schedule(table, name, key_name(PINNED, name), 0, &pinned_kind, item,
				     NULL) == TW_KEYED_DONE);
	atomic_fetch_add(&accepted, 1);
}

static void round_open(bool dispatches)
{
	struct tw_keyed_options table_options;
	struct tw_options options;

	RACE_CHECK(tw_options_init(&options, sizeof options) == 0);
	options.tick_ns = TICK_NS;
	options.dispatch = dispatches ? dues_dispatch : NULL;
	RACE_CHECK(tw_engine_create(&options, &engine) == 0);
	RACE_CHECK(tw_keyed_options_init(&table_options, sizeof table_options) == 0);
	table_options.expected_keys = KEYS / 4;
	RACE_CHECK(tw_keyed_create(engine, &table_options, &table) == 0);
	memset(items, 0, sizeof items);
	atomic_store(&over, false);
	dues_open();
	atomic_store(&issued, 0);
	atomic_store(&accepted, 0);
	atomic_store(&cancel_done, 0);
	atomic_store(&replace_done, 0);
	for (int end = 0; end < ENDS; end++)
		atomic_store(&ended[end], 0);
	atomic_store(&stopping, false);
	pinned_put();
}

static void round_close(void)
{
	uint64_t sum = 0;

	for (int end = 0; end < ENDS; end++) {
		sum += ended[end];
		total[end] += ended[end];
	}
	RACE_CHECK(sum == accepted);
	RACE_CHECK(ended[TW_KEYED_END_CANCELLED] >= cancel_done);
	RACE_CHECK(ended[TW_KEYED_END_REPLACED] >= replace_done);
	RACE_CHECK(ended[TW_KEYED_END_DROPPED] == 0);
	RACE_CHECK(tw_keyed_count(table) == 0);
	RACE_CHECK(tw_keyed_destroy(table) == 0);
	RACE_CHECK(tw_engine_pending(engine) == 0);
	RACE_CHECK(tw_engine_destroy(engine) == 0);
}

static void round_run(uint64_t *random)
{
	bool dispatches = race_random(random) % 2 == 0;
	uint64_t stop_at = 1 + race_random(random) % ITEMS;
	void *(*const bodies[])(void *) = {write_main, write_main, cancel_main,
					   look_main,  dues_main,  dues_main};
	size_t threads = sizeof bodies / sizeof *bodies - (dispatches ? 0 : EXECUTORS);
	pthread_t thread[sizeof bodies / sizeof *bodies];

	round_open(dispatches);
	race_start(thread, bodies, threads, random);
	while (atomic_load(&issued) < stop_at)
		(void)sched_yield();
	atomic_store(&stopping, true);
	RACE_CHECK(tw_engine_stop(engine, NULL, NULL, TW_NEVER) == 0);
	/* The writers end when the engine has stopped, or when no items are left. */
	race_join(thread, WRITERS);
	atomic_store(&over, true);
	dues_close();
	race_join(thread + WRITERS, threads - WRITERS);
	round_close();
}

static bool all_seen(void)
{
	for (int end = 0; end < ENDS; end++)
		if (total[end] == 0 && end != TW_KEYED_END_DROPPED)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	uint64_t rounds = race_rounds(argc, argv, 3, &operations, round_run, all_seen);

	printf("%" PRIu64 " rounds, %" PRIu64 " operations: %" PRIu64 " fired, %" PRIu64
	       " cancelled, %" PRIu64 " replaced, %" PRIu64 " stopped; %" PRIu64
	       " present, %" PRIu64 " cancels of what ran, %" PRIu64 " moved, %" PRIu64
	       " seen, %" PRIu64 " again; lost 0\n",
	       rounds, operations, total[TW_KEYED_END_FIRED], total[TW_KEYED_END_CANCELLED],
	       total[TW_KEYED_END_REPLACED], total[TW_KEYED_END_STOPPED], total_present,
	       total_running, total_moved, total_seen, total_again);
	RACE_CHECK(rounds < RACE_ROUNDS || all_seen());
	return 0;
}
