/* SPDX-License-Identifier: MIT */
/*
 * The tour's step for keyed timeouts. It has an engine of its own, and checks this engine's counts
 * itself. Each accepted entry must end once, whatever a fault rejects.
 */
#include "tour_inner.h"

#include <errno.h>
#include <string.h>

enum { KEYS = 100, KEY_BYTES = 48 };

static unsigned ended[2 * KEYS];

static int64_t on_run(const struct tw_keyed_self *self, void *arg)
{
	RACE_CHECK(*(unsigned *)arg == 0 && self->runs <= 2);
	return self->runs == 1 ? TW_NEVER : TW_KEYED_END;
}

static void on_ended(const struct tw_keyed_self *self, void *arg, enum tw_keyed_end end)
{
	RACE_CHECK(self->key_bytes == KEY_BYTES && end <= TW_KEYED_END_STOPPED);
	++*(unsigned *)arg;
}

static const struct tw_keyed_kind kind = TW_KEYED_KIND(on_run, on_ended);

/* Returns a key that is too long for the memory inside an entry. */
static const void *key_of(unsigned number)
{
	static char key[KEY_BYTES];

	memcpy(key, &number, sizeof number);
	return key;
}

static unsigned keys_schedule(struct tw_keyed *table)
{
	unsigned accepted = 0;

	for (unsigned i = 0; i < KEYS; i++) {
		int64_t code = tour_code(
			CALL_KEYED_SCHEDULE, 0,
			tw_keyed_schedule(table, key_of(i), KEY_BYTES, 0, &kind, &ended[i], NULL));
		bool had = code == 0;

		accepted += had;
		if (had && i % 5 == 0)
			tour_exactly(CALL_KEYED_CANCEL,
				     tw_keyed_cancel(table, key_of(i), KEY_BYTES, TW_KEYED_ANY),
				     TW_KEYED_DONE);
		if (i % 3 != 0)
			continue;
		code = tw_keyed_replace(table, key_of(i), KEY_BYTES, 0, &kind, &ended[KEYS + i],
					NULL);
		if (code < 0) {
			(void)tour_code(CALL_KEYED_REPLACE, 0, code);
			continue;
		}
		accepted++;
		tour_exactly(CALL_KEYED_REPLACE, code,
			     had && i % 5 != 0 ? TW_KEYED_REPLACED : TW_KEYED_DONE);
	}
	return accepted;
}

static int on_visit(void *context, const void *key, size_t key_bytes,
		    const struct tw_keyed_info *info)
{
	(void)key;
	RACE_CHECK(key_bytes == KEY_BYTES && info->busy == 0);
	++*(int64_t *)context;
	return 0;
}

static void keys_look(struct tw_keyed *table)
{
	struct tw_keyed_info info = {.size = sizeof info};
	int64_t seen = 0, count = tw_keyed_count(table);

	for (unsigned i = 0; i < KEYS; i++) {
		int64_t code = tw_keyed_get(table, key_of(i), KEY_BYTES, &info);

		tour_exactly(CALL_KEYED_RESCHEDULE,
			     tw_keyed_reschedule(table, key_of(i), KEY_BYTES, 0),
			     code == TW_KEYED_PRESENT ? TW_KEYED_DONE : TW_KEYED_ABSENT);
		tour_exactly(CALL_KEYED_GET, tw_keyed_get(table, key_of(i), KEY_BYTES, NULL), code);
	}
	tour_exactly(CALL_KEYED_EACH, tw_keyed_each(table, on_visit, &seen), count);
	tour_exactly(CALL_KEYED_COUNT, tw_keyed_count(table), seen);
}

static void table_use(struct tw_engine *engine, struct tw_keyed *table)
{
	unsigned accepted = keys_schedule(table), sum = 0;

	tour_exactly(CALL_KEYED_OWNS, tw_keyed_owns(NULL), 0);
	if (tw_keyed_count(table) > 0)
		tour_exactly(CALL_KEYED_DESTROY, tw_keyed_destroy(table), -EBUSY);
	tour_sleep_ns(2 * MS);
	(void)tour_code(CALL_POLL, 0, tw_engine_poll(engine, 0));
	keys_look(table);
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	tour_exactly(CALL_KEYED_COUNT, tw_keyed_count(table), 0);
	for (unsigned i = 0; i < 2 * KEYS; i++) {
		RACE_CHECK(ended[i] <= 1);
		sum += ended[i];
	}
	RACE_CHECK(sum == accepted);
}

void step_keys(void)
{
	struct tw_keyed_options table_options;
	struct tw_options options;
	struct tw_engine *engine = NULL;
	struct tw_keyed *table = NULL;

	for (unsigned i = 0; i < 2 * KEYS; i++)
		ended[i] = 0;
	tour_exactly(CALL_OPTIONS_INIT, tw_options_init(&options, sizeof options), 0);
	options.flags = TW_ENGINE_LOOP;
	if (tour_code(CALL_CREATE, 0, tw_engine_create(&options, &engine)) != 0)
		return;
	tour_exactly(CALL_KEYED_OPTIONS_INIT,
		     tw_keyed_options_init(&table_options, sizeof table_options), 0);
	table_options.allocator = tour.plan->allocator;
	if (tour_code(CALL_KEYED_CREATE, 0, tw_keyed_create(engine, &table_options, &table)) == 0) {
		table_use(engine, table);
		tour_exactly(CALL_KEYED_DESTROY, tw_keyed_destroy(table), 0);
	}
	tour_exactly(CALL_STOP, tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	tour_exactly(CALL_DESTROY, tw_engine_destroy(engine), 0);
}
