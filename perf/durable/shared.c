/* SPDX-License-Identifier: MIT */
/*
 * A process that shares timers with others: durable-shared STORE ADDRESS [COUNT]. The process runs
 * timers of the kind "perf" until its input ends. Then it prints as JSON how many timers it ran,
 * and how late the runs began.
 *
 * With COUNT the process also schedules COUNT timers, one for each millisecond. If the store is a
 * file, these timers are due soon, and the process schedules them at once. If it is a server, they
 * are due days later. Then the process schedules them when it reads a line, and prints a line when
 * all are acknowledged.
 */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_file.h>
#ifdef HAVE_TICKWHEEL_POSTGRES
#include <tickwheel/durable_postgres.h>
#endif
#ifdef HAVE_TICKWHEEL_REDIS
#include <tickwheel/durable_redis.h>
#endif

static void need(const char *what, int code)
{
	if (code >= 0)
		return;
	fprintf(stderr, "durable-shared: %s: %s\n", what, tw_strerror(code));
	exit(1);
}

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self, (void)payload, (void)bytes;
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind kind = TW_DURABLE_KIND("perf", on_run, NULL);

static int store_make(const char *name, const char *address, struct tw_durable_store *ret_store)
{
	if (strcmp(name, "file") == 0)
		return tw_durable_store_file(address, ret_store);
#ifdef HAVE_TICKWHEEL_POSTGRES
	if (strcmp(name, "postgres") == 0) {
		struct tw_durable_postgres_options server;

		need("options", tw_durable_postgres_options_init(&server, sizeof server));
		server.address = address;
		return tw_durable_store_postgres(&server, ret_store);
	}
#endif
#ifdef HAVE_TICKWHEEL_REDIS
	if (strcmp(name, "redis") == 0) {
		struct tw_durable_redis_options server;

		need("options", tw_durable_redis_options_init(&server, sizeof server));
		server.address = address;
		return tw_durable_store_redis(&server, ret_store);
	}
#endif
	return -1;
}

static struct tw_durable *timers_open(struct tw_engine *engine, const char *store,
				      const char *address)
{
	const struct tw_durable_kind *kinds[] = {&kind};
	struct tw_durable_options options;
	struct tw_durable *timers;

	need("options", tw_durable_options_init(&options, sizeof options));
	options.level = TW_DURABLE_LEVEL_SECOND;
	options.catch_up_per_s = 1000000;
	need("store", store_make(store, address, &options.store));
	need("open", tw_durable_open(engine, kinds, 1, &options, &timers));
	return timers;
}

/*
 * Schedules `count` timers. The first is due after `first_ns`, and the others follow one each
 * millisecond.
 */
static void schedule(struct tw_durable *timers, int64_t first_ns, long count)
{
	static const char payload[64] = "p";
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &kind,
		.payload = payload,
		.payload_bytes = sizeof payload,
	};
	int code;

	for (long i = 0; i < count; i++) {
		spec.due_ns = first_ns + TW_MS(i);
		/* -EAGAIN: too many timers are staged. The I/O thread must store some first. */
		while ((code = tw_durable_schedule(timers, &spec, NULL)) == -EAGAIN)
			(void)sched_yield();
		need("schedule", code);
	}
	need("flush", tw_durable_flush(timers, TW_NEVER));
}

static void report(struct tw_durable *timers)
{
	struct tw_histogram late = {.size = sizeof late};
	struct tw_durable_stats stats;

	need("stats", tw_durable_stats_get(timers, &stats, sizeof stats));
	need("histogram", tw_durable_histogram_get(timers, TW_DURABLE_MEASUREMENT_LATENESS, &late));
	printf("{\"runs\":%" PRIu64 ",\"p50_us\":%" PRId64 ",\"p99_us\":%" PRId64
	       ",\"max_us\":%" PRIu64 ",\"claimed\":%" PRIu64 ",\"refused\":%" PRIu64 "}\n",
	       stats.runs, tw_histogram_percentile(&late, 50) / 1000,
	       tw_histogram_percentile(&late, 99) / 1000, stats.lag_max_ns / 1000, stats.claimed,
	       stats.refused_starts);
}

static void say(const char *word)
{
	puts(word);
	fflush(stdout);
}

int main(int count, char **texts)
{
	struct tw_engine *engine;
	struct tw_durable *timers;

	if (count != 3 && count != 4)
		need("usage: durable-shared STORE ADDRESS [COUNT]", -1);
	need("engine", tw_engine_create(NULL, &engine));
	timers = timers_open(engine, texts[1], texts[2]);
	if (count == 4 && strcmp(texts[1], "file") == 0)
		schedule(timers, TW_S(8), atol(texts[3]));
	say("open");
	if (count == 4 && strcmp(texts[1], "file") != 0 && getchar() != EOF) {
		schedule(timers, TW_MINUTES(14400), atol(texts[3]));
		say("scheduled");
	}
	while (getchar() != EOF)
		;
	report(timers);
	need("close", tw_durable_close(timers, TW_NEVER));
	need("stop", tw_engine_stop(engine, NULL, NULL, TW_NEVER));
	need("destroy", tw_engine_destroy(engine));
	return 0;
}
