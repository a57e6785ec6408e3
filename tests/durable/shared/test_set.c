/* SPDX-License-Identifier: MIT */
/*
 * Sets of timers on a server, in this process: how a set reacts to the server's answers.
 *
 * Seen to fail with these defects: when the first move of a batch settles, the set releases a timer
 * that the second move has claimed; a close counts a confirmed start as an attempt although no run
 * began; a query does not consider kinds that the set does not have; a batch may have any number of
 * bytes.
 */
#include "bench.h"

#include <stdatomic.h>
#include <tickwheel.h>
#include <unistd.h>

static struct tw_engine *engine;
static _Atomic int runs, hold;

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	atomic_fetch_add(&runs, 1);
	while (atomic_load(&hold) != 0)
		usleep(1000);
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind mail = TW_DURABLE_KIND("mail", on_run, NULL);
static const struct tw_durable_kind call = TW_DURABLE_KIND("call", on_run, NULL);
static const struct tw_durable_kind once = {
	.size = sizeof once,
	.flags = TW_DURABLE_KIND_AT_MOST_ONCE,
	.name = "once",
	.run = on_run,
};

/* The outcome that the last acknowledgement with this context has reported. */
static _Atomic int acked;

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		if (acks[i].context == &acked)
			atomic_store(&acked, acks[i].outcome);
}

static void options_make(struct tw_durable_options *ret)
{
	check_int(tw_durable_options_init(ret, sizeof *ret), 0);
	ret->acked = on_acked;
	bench_server.store(50 * NS_PER_MS, &ret->store);
}

static struct tw_durable *set_open(const struct tw_durable_kind *kind)
{
	struct tw_durable_options options;
	struct tw_durable *set = NULL;

	options_make(&options);
	check_int(tw_durable_open(engine, &kind, 1, &options, &set), 0);
	return set;
}

static struct tw_durable_id schedule(struct tw_durable *set, const struct tw_durable_kind *kind,
				     int64_t delay_ns, const char *key)
{
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = kind,
		.due_ns = delay_ns,
		.key = key,
		.key_bytes = key == NULL ? 0 : 1,
	};
	struct tw_durable_id id;

	check_int(tw_durable_schedule(set, &spec, &id), 0);
	return id;
}

static void setup(void)
{
	bench_make();
	check_int(tw_engine_create(NULL, &engine), 0);
}

static void teardown(void)
{
	check_int(tw_engine_stop(engine, NULL, NULL, TW_NEVER), 0);
	check_int(tw_engine_destroy(engine), 0);
	bench_end();
}

static void wait_runs(int count)
{
	while (atomic_load(&runs) < count)
		usleep(1000);
}

Test(set, the_last_of_two_moves_counts, .init = setup, .fini = teardown, .timeout = 240)
{
	struct tw_durable *set = set_open(&mail);
	/* Makes a timer that is claimed but not due for a while. */
	struct tw_durable_id id = schedule(set, &mail, 4 * SECOND, NULL);

	check_int(tw_durable_flush(set, TW_NEVER), 0);
	check_int(tw_durable_reschedule(set, id, bench_server.now(false) + 3600 * SECOND, NULL),
		  -EINPROGRESS);
	check_int(tw_durable_reschedule(set, id, bench_server.now(false), NULL), -EINPROGRESS);
	wait_runs(1);
	check_int(tw_durable_close(set, TW_NEVER), 0);
	check_int(bench_server.count(BENCH_TIMERS), 0);
}

/* 40 MiB wait for one commit. */
Test(set, large_payloads_come_in_several_batches, .init = setup, .fini = teardown, .timeout = 240)
{
	enum { COUNT = 40, BYTES = 1 << 20 };
	static const char payload[BYTES];
	struct tw_durable_options options;
	struct tw_durable_stats stats;
	struct tw_durable *set = NULL;
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &mail,
		.due_ns = TW_HOURS(1),
		.payload = payload,
		.payload_bytes = BYTES,
	};
	const struct tw_durable_kind *kinds[] = {&mail};
	struct tw_durable_id id;

	options_make(&options);
	options.payload_max = BYTES;
	options.window_ns = 60 * NS_PER_S;
	check_int(tw_durable_open(engine, kinds, 1, &options, &set), 0);
	for (int i = 0; i < COUNT; i++)
		check_int(tw_durable_schedule(set, &spec, &id), 0);
	check_int(tw_durable_flush(set, TW_NEVER), 0);
	/* The I/O thread updates the counters at the end of its step. */
	do {
		check_int(tw_durable_stats_get(set, &stats, sizeof stats), 0);
		usleep(1000);
	} while (stats.stored != COUNT);
	check_at_least(stats.commits, COUNT / 5);
	check_int(tw_durable_close(set, TW_NEVER), 0);
}

Test(set, a_close_takes_starts_back, .init = setup, .fini = teardown, .timeout = 240)
{
	struct tw_durable *set;

	atomic_store(&hold, 1);
	set = set_open(&once);
	for (int i = 0; i < 20; i++)
		(void)schedule(set, &once, 0, NULL);
	/*
	 * One timer runs and keeps the engine's thread busy. The starts of the others are
	 * confirmed, and their runs wait for the thread.
	 */
	wait_runs(1);
	while (bench_server.count(BENCH_STARTED) < 20)
		usleep(1000);
	check_int(tw_durable_close(set, 0), -ETIMEDOUT);
	atomic_store(&hold, 0);
	check_int(tw_durable_close(set, TW_NEVER), 0);
	check_int(bench_server.count(BENCH_TOUCHED), 0);
	set = set_open(&once);
	wait_runs(20);
	check_int(tw_durable_close(set, TW_NEVER), 0);
	check_int(bench_server.count(BENCH_DEAD), 0);
}

Test(set, timers_of_other_kinds_are_found_and_stay, .init = setup, .fini = teardown, .timeout = 240)
{
	struct tw_durable *mails = set_open(&mail), *calls = set_open(&call);
	struct tw_durable_id id = schedule(calls, &call, 3600 * SECOND, "k");
	struct tw_durable_info info = {.size = sizeof info};

	check_int(tw_durable_flush(calls, TW_NEVER), 0);
	check_int(tw_durable_find(mails, id, &info, TW_NEVER), 0);
	check_true(info.id.serial == id.serial && info.kind == NULL);
	/* The set `mails` cannot run this kind, so it must not claim the timer. */
	check_int(tw_durable_reschedule(mails, id, bench_server.now(false), NULL), -EINPROGRESS);
	wait_runs(1);
	id = schedule(calls, &call, 3600 * SECOND, "k");
	check_int(tw_durable_flush(calls, TW_NEVER), 0);
	atomic_store(&acked, -1);
	check_int(tw_durable_cancel_key(mails, "k", 1, &acked), -EINPROGRESS);
	check_int(tw_durable_flush(mails, TW_NEVER), 0);
	check_int(atomic_load(&acked), TW_DURABLE_DONE);
	check_int(tw_durable_close(mails, TW_NEVER), 0);
	check_int(tw_durable_close(calls, TW_NEVER), 0);
}
