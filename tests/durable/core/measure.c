/* SPDX-License-Identifier: MIT */
/*
 * Measures the cost of the durable library without that of a disk: the set uses a store in memory.
 *
 *     measure pair [PAIRS]      schedule + cancel by id inside the window, one thread
 *     measure rate [SECONDS]    500,000 schedules a second; nineteen in twenty are cancelled
 *
 * This is not a test: it prints times, and never fails because of them.
 */
#include "memory_store.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

enum { PER_MS = 500, SURVIVES = 20, ACKS_MAX = 4000000 };

static struct tw_engine *engine;
static struct tw_durable *set;
static struct disk *disk;
static float *waits_ms;
static size_t wait_count;

static int64_t now_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind kind = TW_DURABLE_KIND("kind", on_run, NULL);

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	int64_t now = now_ns(CLOCK_MONOTONIC);

	(void)context;
	for (size_t i = 0; i < count; i++) {
		if (acks[i].outcome == TW_DURABLE_DONE && acks[i].context != NULL &&
		    wait_count < ACKS_MAX)
			waits_ms[wait_count++] =
				(float)(now - (int64_t)(intptr_t)acks[i].context) / 1e6F;
	}
}

static int begin(void)
{
	const struct tw_durable_kind *kinds[] = {&kind};
	struct tw_durable_options options;

	waits_ms = malloc(ACKS_MAX * sizeof *waits_ms);
	disk = disk_create();
	(void)tw_durable_options_init(&options, sizeof options);
	options.store = disk_store(disk);
	/* This bound is so large that no schedule waits for the I/O thread. */
	options.staged_bytes_max = UINT64_C(1) << 32;
	options.acked = on_acked;
	return tw_engine_create(NULL, &engine) == 0
		       ? tw_durable_open(engine, kinds, 1, &options, &set)
		       : -1;
}

static struct tw_durable_id schedule(int64_t delay_ns, int64_t since_ns)
{
	static const char payload[64];
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &kind,
		.due_ns = delay_ns,
		.payload = payload,
		.payload_bytes = sizeof payload,
		.context = (void *)(intptr_t)since_ns,
	};
	struct tw_durable_id id;

	while (tw_durable_schedule(set, &spec, &id) == -EAGAIN)
		continue;
	return id;
}

static void pairs(long count)
{
	int64_t begun = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	long absorbed = 0;

	for (long i = 0; i < count; i++)
		absorbed +=
			tw_durable_cancel(set, schedule(TW_S(30), 0), NULL) == TW_DURABLE_ABSORBED;
	printf("%.1f ns a pair, %.1f ns of the caller's CPU; absorbed %ld of %ld; %llu bytes "
	       "written\n",
	       (double)(now_ns(CLOCK_MONOTONIC) - begun) / (double)count,
	       (double)(now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu) / (double)count, absorbed, count,
	       (unsigned long long)disk->bytes);
}

static int compare(const void *left, const void *right)
{
	float a = *(const float *)left, b = *(const float *)right;

	return (a > b) - (a < b);
}

static void rate(long seconds)
{
	int64_t begun = now_ns(CLOCK_MONOTONIC), cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
	struct tw_durable_stats stats;
	uint64_t count = 0;

	for (long ms = 0; ms < seconds * 1000; ms++) {
		int64_t until = begun + (ms + 1) * 1000000, now = now_ns(CLOCK_MONOTONIC);

		for (int i = 0; i < PER_MS; i++, count++) {
			bool survives = count % SURVIVES == 0;
			struct tw_durable_id id = schedule(
				TW_S(2) + (int64_t)(count % 1000) * 1000000, survives ? now : 0);

			if (!survives)
				(void)tw_durable_cancel(set, id, NULL);
		}
		if (now_ns(CLOCK_MONOTONIC) < until) {
			struct timespec end = {until / 1000000000, until % 1000000000};

			(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
		}
	}
	(void)tw_durable_flush(set, TW_NEVER);
	cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	begun = now_ns(CLOCK_MONOTONIC) - begun;
	(void)tw_durable_stats_get(set, &stats, sizeof stats);
	qsort(waits_ms, wait_count, sizeof *waits_ms, compare);
	printf("%.0f schedules/s, %zu stored; ack p50 %.2f ms, p99 %.2f ms; %.0f commits/s; %.0f "
	       "%% of a core\n",
	       (double)count / ((double)begun / 1e9), wait_count, (double)waits_ms[wait_count / 2],
	       (double)waits_ms[wait_count * 99 / 100],
	       (double)stats.commits / ((double)begun / 1e9), 100 * (double)cpu / (double)begun);
}

int main(int argc, char **argv)
{
	long number = argc > 2 ? atol(argv[2]) : 0;

	if (argc < 2 || begin() != 0)
		return 1;
	if (strcmp(argv[1], "pair") == 0)
		pairs(number != 0 ? number : 3000000);
	else
		rate(number != 0 ? number : 5);
	free(waits_ms);
	return tw_durable_close(set, TW_NEVER) != 0;
}
