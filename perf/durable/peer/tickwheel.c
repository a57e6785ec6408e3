/* SPDX-License-Identifier: MIT */
/*
 * The keeper tickwheel: a set of durable timers in this process, stored in a file or in PostgreSQL.
 */
#include "durable/peer/peer.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_file.h>
#if defined(HAVE_POSTGRES) && defined(HAVE_TICKWHEEL_POSTGRES)
#include <libpq-fe.h>
#include <tickwheel/durable_postgres.h>
#endif

static struct tw_engine *engine;
static struct tw_durable *set;
static struct tw_durable_id *ids;
static size_t count_of, room, taken;
static _Atomic size_t runs;

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self, (void)payload, (void)bytes;
	atomic_fetch_add(&runs, 1);
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind kind = TW_DURABLE_KIND("perf", on_run, NULL);

static void need(const char *what, int code)
{
	if (code < 0)
		keeper_fail(what, tw_strerror(code));
}

/*
 * Opens the set without a commit window: the caller waits for each batch, so a window would only
 * add to its time.
 */
static void open_with(struct tw_durable_store store)
{
	const struct tw_durable_kind *kinds[] = {&kind};
	struct tw_durable_options options;

	need("engine", tw_engine_create(NULL, &engine));
	need("options", tw_durable_options_init(&options, sizeof options));
	options.store = store;
	options.window_ns = 0;
	options.catch_up_per_s = 1000000;
	need("open", tw_durable_open(engine, kinds, 1, &options, &set));
}

static void open_set(const char *address)
{
	struct tw_durable_store store;
	char path[512];

	snprintf(path, sizeof path, "%s/timers", address);
	need("store", tw_durable_store_file(path, &store));
	open_with(store);
}

static void schedule(size_t count, int64_t due_s)
{
	struct tw_durable_spec specs[KEEPER_BATCH];

	while (room < count_of + count) {
		room = 2 * room + KEEPER_BATCH;
		ids = realloc(ids, room * sizeof *ids);
		if (ids == NULL)
			keeper_fail("ids", "no memory");
	}
	for (size_t i = 0; i < count; i++)
		specs[i] = (struct tw_durable_spec){
			.size = sizeof specs[i],
			.flags = TW_DURABLE_AT,
			.kind = &kind,
			.due_ns = due_s * INT64_C(1000000000),
			.payload = keeper_payload,
			.payload_bytes = KEEPER_PAYLOAD,
		};
	for (size_t done = 0; done < count;) {
		int got = tw_durable_schedule_many(set, specs + done, count - done,
						   ids + count_of + done);

		if (got < 0 && got != -EAGAIN)
			need("schedule", got);
		done += got > 0 ? (size_t)got : 0;
	}
	count_of += count;
	need("flush", tw_durable_flush(set, TW_NEVER));
}

static void cancel(size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int code = tw_durable_cancel(set, ids[--count_of], NULL);

		if (code != -EINPROGRESS)
			need("cancel", code);
	}
	need("flush", tw_durable_flush(set, TW_NEVER));
}

/*
 * Returns how many timers have run since the last call. The set runs them by itself. The second
 * flush waits until their ends are stored.
 */
static size_t take(size_t most)
{
	size_t now;

	(void)most;
	need("flush", tw_durable_flush(set, TW_NEVER));
	now = atomic_load(&runs);
	need("flush", tw_durable_flush(set, TW_NEVER));
	now -= taken;
	taken += now;
	return now;
}

static void close_set(void)
{
	need("close", tw_durable_close(set, TW_NEVER));
	need("stop", tw_engine_stop(engine, NULL, NULL, TW_NEVER));
	need("destroy", tw_engine_destroy(engine));
}

const struct keeper keeper_tickwheel = {"tickwheel", open_set, schedule, cancel, take, close_set};

#if defined(HAVE_POSTGRES) && defined(HAVE_TICKWHEEL_POSTGRES)
static void open_shared(const char *address)
{
	struct tw_durable_postgres_options options;
	struct tw_durable_store store;
	PGconn *connection;
	char text[512];

	snprintf(text, sizeof text, "host=%s user=postgres dbname=postgres", address);
	connection = PQconnectdb(text);
	need("migrate", tw_durable_postgres_migrate(connection, "tickwheel"));
	PQfinish(connection);
	need("options", tw_durable_postgres_options_init(&options, sizeof options));
	options.address = text;
	need("store", tw_durable_store_postgres(&options, &store));
	open_with(store);
}

const struct keeper keeper_shared = {
	"tickwheel-postgres", open_shared, schedule, cancel, take, close_set};
#endif
