/* SPDX-License-Identifier: MIT */
/*
 * Keyed entries that follow a script and record what happens to them. Include once per test
 * program.
 */
#ifndef TESTS_KEYED_SCENE_H
#define TESTS_KEYED_SCENE_H

#include "probe.h"

#include <errno.h>
#include <string.h>

enum { ITEM_KEY_BYTES = 64 };

struct item {
	struct tw_engine *engine;
	/*
	 * The result of run n, counted from 0. If n is `scripted` or more, the run ends the entry.
	 */
	int64_t again_ns[8];
	int scripted;
	/* Called inside each run, if not NULL. */
	void (*inside)(const struct tw_keyed_self *self, struct item *item);
	atomic_int runs;
	atomic_int wrong; /* counts runs after the end or with a wrong number, and second ends */
	int64_t ran_at_ns;
	/* Set by the end hook. */
	atomic_int ended;
	atomic_int end;
	uint64_t life;
	uint64_t told_runs;
	size_t key_bytes;
	char key[ITEM_KEY_BYTES];
};

static int64_t on_item(const struct tw_keyed_self *self, void *arg)
{
	struct item *item = arg;
	int run = atomic_fetch_add(&item->runs, 1);

	if (atomic_load(&item->ended) != 0 || self->runs != (uint64_t)run + 1)
		atomic_fetch_add(&item->wrong, 1);
	item->ran_at_ns = tw_engine_now(item->engine);
	if (item->inside != NULL)
		item->inside(self, item);
	return run < item->scripted ? item->again_ns[run] : TW_KEYED_END;
}

static void on_item_end(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	struct item *item = arg;

	item->life = self->life;
	item->told_runs = self->runs;
	item->key_bytes = self->key_bytes;
	memcpy(item->key, self->key,
	       self->key_bytes < ITEM_KEY_BYTES ? self->key_bytes : ITEM_KEY_BYTES);
	atomic_store(&item->end, (int)end);
	if (atomic_fetch_add(&item->ended, 1) != 0)
		atomic_fetch_add(&item->wrong, 1);
}

static const struct tw_keyed_kind item_kind = TW_KEYED_KIND(on_item, on_item_end);

static inline void item_init(struct item *item, struct tw_engine *engine)
{
	memset(item, 0, sizeof *item);
	item->engine = engine;
	atomic_store(&item->end, -1);
}

static inline struct tw_keyed *table_open(struct fixture *fixture)
{
	struct tw_keyed_options options;
	struct tw_keyed *table = NULL;

	check_int(tw_keyed_options_init(&options, sizeof options), 0);
	options.seed = 7;
	check_int(tw_keyed_create(fixture->engine, &options, &table), 0);
	return table;
}

/* Schedules. Here and in the next functions, a key is given as a string. */
static inline int key_schedule(struct tw_keyed *table, const char *key, int64_t delay_ns,
			       struct item *item)
{
	return tw_keyed_schedule(table, key, strlen(key), delay_ns, &item_kind, item, NULL);
}

static inline int key_replace(struct tw_keyed *table, const char *key, int64_t delay_ns,
			      struct item *item)
{
	return tw_keyed_replace(table, key, strlen(key), delay_ns, &item_kind, item, NULL);
}

static inline int key_cancel(struct tw_keyed *table, const char *key)
{
	return tw_keyed_cancel(table, key, strlen(key), TW_KEYED_ANY);
}

static inline int key_get(struct tw_keyed *table, const char *key, struct tw_keyed_info *ret_info)
{
	if (ret_info != NULL)
		ret_info->size = sizeof *ret_info;
	return tw_keyed_get(table, key, strlen(key), ret_info);
}

/* Checks that the item has ended once, with the end `how`, after `count` runs. */
#define check_item(item, how, count)                                                               \
	do {                                                                                       \
		check_int((item)->wrong, 0);                                                       \
		check_int((item)->ended, 1);                                                       \
		check_int((item)->end, (how));                                                     \
		check_int((item)->runs, (count));                                                  \
		check_int((item)->told_runs, (count));                                             \
	} while (0)

#define check_alive(item, count)                                                                   \
	do {                                                                                       \
		check_int((item)->wrong, 0);                                                       \
		check_int((item)->ended, 0);                                                       \
		check_int((item)->runs, (count));                                                  \
	} while (0)

/* Stops the engine, and destroys the table and the engine. The table must have no entries left. */
static inline void scene_close(struct fixture *fixture, struct tw_keyed *table)
{
	fixture_stop(fixture);
	check_int(tw_keyed_count(table), 0);
	check_int(tw_keyed_destroy(table), 0);
	fixture_close(fixture);
}

#endif
