/* SPDX-License-Identifier: MIT */
/*
 * How a registry's client uses keys, in virtual time. A failed registration is tried again every
 * five seconds until it succeeds or is unregistered. Each URL has only one entry (Dubbo's
 * FailbackRegistry).
 *
 * Seen to fail with these defects: a second add replaces the first; a key is not free after one of
 * the ends; a hook runs twice.
 */
#include "../unit/keyed/keyed_scene.h"

#define RETRY_NS (5 * NS_PER_S)

enum { URLS = 3 };

static const char *const url[URLS] = {"registry://a/orders", "registry://a/stock",
				      "registry://a/users"};

/* Makes an item that fails `vain` times and then succeeds. With the largest number, 8, it fails
 * throughout the test. */
static void failed_init(struct item *item, struct tw_engine *engine, int vain)
{
	item_init(item, engine);
	item->scripted = vain;
	for (int i = 0; i < vain; i++)
		item->again_ns[i] = RETRY_NS;
}

/*
 * Moves the clock to the next try. Each wait counts from the end of the previous try, and that try
 * is up to a tick late.
 */
static void advance_to_try(struct fixture *fixture)
{
	fixture_advance(fixture, RETRY_NS + NS_PER_MS);
}

/* The first of three entries succeeds with its third try. The second is unregistered before its
 * third try. The third fails until the engine stops. */
Test(uses_keyed, registry_retry_goes_on_until_success_or_cancel)
{
	struct item item[URLS], again;
	struct fixture fixture;
	struct tw_keyed *failed;

	fixture_open(&fixture, NULL);
	failed = table_open(&fixture);
	for (int i = 0; i < URLS; i++) {
		failed_init(&item[i], fixture.engine, i == 0 ? 2 : 8);
		check_int(key_schedule(failed, url[i], RETRY_NS, &item[i]), TW_KEYED_DONE);
	}
	fixture_advance(&fixture, RETRY_NS);
	check_alive(&item[0], 0);
	fixture_advance(&fixture, NS_PER_MS);
	/* The first URL fails again and is added again while its entry exists. The old entry
	 * must continue unchanged. */
	failed_init(&again, fixture.engine, 8);
	check_int(key_schedule(failed, url[0], RETRY_NS, &again), TW_KEYED_PRESENT);
	advance_to_try(&fixture);
	for (int i = 0; i < URLS; i++)
		check_alive(&item[i], 2);
	check_int(key_cancel(failed, url[1]), TW_KEYED_DONE);
	check_item(&item[1], TW_KEYED_END_CANCELLED, 2);
	advance_to_try(&fixture);
	check_item(&item[0], TW_KEYED_END_FIRED, 3);
	check_alive(&item[2], 3);
	check_int(tw_keyed_count(failed), 1);
	check_int(tw_engine_pending(fixture.engine), 1);
	advance_to_try(&fixture);
	scene_close(&fixture, failed);
	check_item(&item[0], TW_KEYED_END_FIRED, 3);
	check_item(&item[1], TW_KEYED_END_CANCELLED, 2);
	check_item(&item[2], TW_KEYED_END_STOPPED, 4);
	check_alive(&again, 0);
}

/* The URL is registered again while its old entry waits. Only the new entry must be tried, at
 * its own time. */
Test(uses_keyed, registry_retry_replaced_goes_on_by_the_new_time)
{
	struct item old, now;
	struct fixture fixture;
	struct tw_keyed *failed;

	fixture_open(&fixture, NULL);
	failed = table_open(&fixture);
	failed_init(&old, fixture.engine, 8);
	failed_init(&now, fixture.engine, 0);
	check_int(key_schedule(failed, url[0], RETRY_NS, &old), TW_KEYED_DONE);
	advance_to_try(&fixture);
	fixture_advance(&fixture, 2 * NS_PER_S);
	check_int(key_replace(failed, url[0], RETRY_NS, &now), TW_KEYED_REPLACED);
	check_item(&old, TW_KEYED_END_REPLACED, 1);
	check_int(tw_keyed_count(failed), 1);
	fixture_advance(&fixture, RETRY_NS);
	check_alive(&now, 0);
	fixture_advance(&fixture, NS_PER_MS);
	check_item(&now, TW_KEYED_END_FIRED, 1);
	check_item(&old, TW_KEYED_END_REPLACED, 1);
	scene_close(&fixture, failed);
}

/* For IN_ITS_TRY: during its try, the entry replaces itself by this entry with the same key. */
static struct item successor;

static void inside_replace(const struct tw_keyed_self *self, struct item *item)
{
	(void)item;
	(void)tw_keyed_replace(self->table, self->key, self->key_bytes, RETRY_NS, &item_kind,
			       &successor, NULL);
}

enum way { SUCCEEDS, UNREGISTERED, UNREGISTERED_BETWEEN_TRIES, REPLACED, IN_ITS_TRY, WAYS };

static void entry_end(struct fixture *fixture, struct tw_keyed *failed, enum way way,
		      struct item *item)
{
	failed_init(&successor, fixture->engine, 0);
	/* If another call must end the entry, its tries must not succeed first. */
	failed_init(item, fixture->engine, way == SUCCEEDS ? 0 : 8);
	item->inside = way == IN_ITS_TRY ? inside_replace : NULL;
	check_int(key_schedule(failed, url[0], RETRY_NS, item), TW_KEYED_DONE);
	if (way == REPLACED)
		check_int(key_replace(failed, url[0], RETRY_NS, &successor), TW_KEYED_REPLACED);
	if (way != UNREGISTERED)
		advance_to_try(fixture);
	if (way == IN_ITS_TRY)
		advance_to_try(fixture);
	if (way == UNREGISTERED || way == UNREGISTERED_BETWEEN_TRIES)
		check_int(key_cancel(failed, url[0]), TW_KEYED_DONE);
}

/* However the entry ends, its hook must run once, and the key must be free afterwards. */
Test(uses_keyed, registry_retry_key_is_released_however_it_ends)
{
	static const int ends[WAYS] = {TW_KEYED_END_FIRED, TW_KEYED_END_CANCELLED,
				       TW_KEYED_END_CANCELLED, TW_KEYED_END_REPLACED,
				       TW_KEYED_END_REPLACED};
	struct fixture fixture;
	struct tw_keyed *failed;
	struct item item;

	fixture_open(&fixture, NULL);
	failed = table_open(&fixture);
	for (int way = 0; way < WAYS; way++) {
		entry_end(&fixture, failed, (enum way)way, &item);
		check_int(item.ended, 1);
		check_int(item.end, ends[way]);
		check_int(item.wrong, 0);
		if (way == REPLACED || way == IN_ITS_TRY)
			check_item(&successor, TW_KEYED_END_FIRED, 1);
		check_int(key_get(failed, url[0], NULL), TW_KEYED_ABSENT);
		check_int(tw_keyed_count(failed), 0);
		check_int(tw_engine_pending(fixture.engine), 0);
	}
	scene_close(&fixture, failed);
}

/* Rejects all timeouts. Used for the two ends that no call on the key causes: a drop and a stop. */
static size_t reject_all(void *context, const struct tw_due *due, size_t count)
{
	(void)context;
	(void)due;
	(void)count;
	return 0;
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *kind, void *arg)
{
	(void)context;
	(void)self;
	(void)kind;
	(void)arg;
}

Test(uses_keyed, registry_retry_key_is_released_by_a_drop_and_by_stop)
{
	struct tw_options options = fixture_options();
	struct fixture fixture;
	struct tw_keyed *failed;
	struct item dropped, stopped;

	options.dispatch = reject_all;
	options.rejection = TW_REJECTION_DROP;
	options.on_drop = on_drop;
	fixture_open(&fixture, &options);
	failed = table_open(&fixture);
	failed_init(&dropped, fixture.engine, 0);
	failed_init(&stopped, fixture.engine, 0);
	check_int(key_schedule(failed, url[0], RETRY_NS, &dropped), TW_KEYED_DONE);
	advance_to_try(&fixture);
	check_item(&dropped, TW_KEYED_END_DROPPED, 0);
	check_int(tw_keyed_count(failed), 0);
	check_int(key_schedule(failed, url[0], RETRY_NS, &stopped), TW_KEYED_DONE);
	fixture_stop(&fixture);
	check_item(&stopped, TW_KEYED_END_STOPPED, 0);
	check_int(key_get(failed, url[0], NULL), TW_KEYED_ABSENT);
	check_int(tw_keyed_count(failed), 0);
	failed_init(&successor, fixture.engine, 0);
	check_int(key_schedule(failed, url[0], RETRY_NS, &successor), -ESHUTDOWN);
	check_alive(&successor, 0);
	scene_close(&fixture, failed);
}
