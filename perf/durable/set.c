/* SPDX-License-Identifier: MIT */
/*
 * Measures the speed of a set of durable timers with its file: durable-set DIRECTORY WHAT [NUMBER].
 *
 *     pair [PAIRS]       schedule + cancel by id inside the window, one thread
 *     rate [SECONDS]     500,000 schedules a second; one in twenty survives, is stored, and runs
 *                        later
 *     flush [COUNT]      schedule + flush without a window, by 1 and by 16 threads, in turns with
 *                        commits of SQLite alone
 *     open [MILLIONS]    reopens a file of so many pending timers after a kill: the time to the
 *                        first run, and until the near window is in memory
 *     far [MILLIONS]     opens a file of so many pending timers, none of them near: memory
 *     late [COUNT]       the lateness of stored timers that become due
 */
#include "durable/common.h"

#include <errno.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <tickwheel.h>
#include <tickwheel/durable.h>
#include <tickwheel/durable_file.h>
#include <time.h>
#include <unistd.h>

enum {
	PAYLOAD = 64,
	PER_MS = 500,
	SURVIVES = 20,
	TIMES_MAX = 4000000,
	BATCH = 10000,
	RUNS = 5,
	THREADS = 16,
	OVERDUE_S = 60,
	SPREAD_S = 1800,
	NEAR_S = 115, /* less than the near window, which moves on during the run */
	FAR_S = 3600,
	WARM_S = 5,
};

#define SECOND INT64_C(1000000000)

static struct tw_engine *engine;
static struct tw_durable *set;
static double times[TIMES_MAX];
static _Atomic uint32_t time_count;
static _Atomic uint64_t syncs;
static _Atomic bool counts;
static double first_run_s;

/*
 * This function and the next one replace those of the C library, also for SQLite, so that they can
 * count syncs.
 */
int fdatasync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return (int)syscall(SYS_fdatasync, fd);
}

int fsync(int fd)
{
	atomic_fetch_add(&syncs, 1);
	return (int)syscall(SYS_fsync, fd);
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * SECOND + now.tv_nsec;
}

static void time_note(int64_t ns)
{
	uint32_t at;

	if (!atomic_load(&counts))
		return;
	at = atomic_fetch_add(&time_count, 1);
	if (at < TIMES_MAX)
		times[at] = (double)ns / 1e6;
}

/* Prints percentiles of the recorded times. */
static void times_tell(const char *what)
{
	int count = (int)(time_count < TIMES_MAX ? time_count : TIMES_MAX);
	double middle = count == 0 ? 0 : median(times, count);

	printf("%s: p50 %.2f ms, p99 %.2f ms, max %.2f ms of %d\n", what, middle,
	       count == 0 ? 0 : times[(int64_t)count * 99 / 100], count == 0 ? 0 : times[count - 1],
	       count);
}

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)payload;
	(void)bytes;
	if (first_run_s == 0)
		first_run_s = now_s();
	if (self->version == 1)
		time_note(clock_ns(CLOCK_REALTIME) - self->due_ns);
	return TW_RETRY_DONE;
}

static const struct tw_durable_kind kind = TW_DURABLE_KIND("perf", on_run, NULL);

static void on_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	(void)context;
	for (size_t i = 0; i < count; i++)
		if (acks[i].outcome == TW_DURABLE_DONE && acks[i].context != NULL)
			time_note(now - (int64_t)(intptr_t)acks[i].context);
}

static void set_open(uint64_t window_ns)
{
	const struct tw_durable_kind *kinds[] = {&kind};
	struct tw_durable_options options;
	int result = tw_engine_create(NULL, &engine);

	if (result == 0)
		result = tw_durable_options_init(&options, sizeof options);
	if (result == 0)
		result = tw_durable_store_file(path, &options.store);
	if (result != 0)
		fail("engine", result);
	options.window_ns = window_ns;
	/* The bound is so high that no schedule waits for the I/O thread. */
	options.staged_bytes_max = UINT64_C(1) << 32;
	options.acked = on_acked;
	result = tw_durable_open(engine, kinds, 1, &options, &set);
	if (result != 0)
		fail("open", result);
}

static void set_close(void)
{
	int result = tw_durable_close(set, TW_NEVER);

	if (result == 0)
		result = tw_engine_stop(engine, NULL, NULL, TW_NEVER);
	if (result == 0)
		result = tw_engine_destroy(engine);
	if (result != 0)
		fail("close", result);
}

static struct tw_durable_stats stats_of(void)
{
	struct tw_durable_stats stats;

	(void)tw_durable_stats_get(set, &stats, sizeof stats);
	return stats;
}

static struct tw_durable_id schedule(int64_t delay_ns, int64_t since_ns, uint32_t version)
{
	static const char payload[PAYLOAD];
	struct tw_durable_spec spec = {
		.size = sizeof spec,
		.kind = &kind,
		.due_ns = delay_ns,
		.payload = payload,
		.payload_bytes = PAYLOAD,
		.version = version,
		.context = (void *)(intptr_t)since_ns,
	};
	struct tw_durable_id id;
	int result;

	while ((result = tw_durable_schedule(set, &spec, &id)) == -EAGAIN)
		continue;
	if (result != 0)
		fail("schedule", result);
	return id;
}

static void pairs(long count)
{
	double begin, taken[RUNS], own_cpu[RUNS], all_cpu[RUNS];
	uint64_t bytes;
	long absorbed = 0;

	set_open(2000000);
	(void)tw_durable_flush(set, TW_NEVER);
	bytes = written();
	for (int run = 0; run < RUNS; run++) {
		int64_t own = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		int64_t all = clock_ns(CLOCK_PROCESS_CPUTIME_ID);

		begin = now_s();
		for (long i = 0; i < count; i++)
			absorbed += tw_durable_cancel(set, schedule(TW_S(30), 0, 0), NULL) ==
				    TW_DURABLE_ABSORBED;
		taken[run] = (now_s() - begin) / (double)count * 1e9;
		own_cpu[run] = (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - own) / (double)count;
		all_cpu[run] = (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - all) / (double)count;
	}
	bytes = written() - bytes;
	printf("%.1f ns a pair; CPU %.1f ns, of which %.1f by the caller; absorbed %ld of %ld; "
	       "%llu bytes written\n",
	       median(taken, RUNS), median(all_cpu, RUNS), median(own_cpu, RUNS), absorbed,
	       count * RUNS, (unsigned long long)bytes);
	set_close();
}

/*
 * Schedules the timers of one millisecond. The timers that are not cancelled run 2 to 3 seconds
 * later. So in the long run as many timers end as begin.
 */
static void rate_step(uint64_t *count)
{
	int64_t now = clock_ns(CLOCK_MONOTONIC);

	for (int i = 0; i < PER_MS; i++, ++*count) {
		bool survives = *count % SURVIVES == 0;
		struct tw_durable_id id = schedule(TW_S(2) + (int64_t)(*count % 1000) * 1000000,
						   survives ? now : 0, 0);

		if (!survives)
			(void)tw_durable_cancel(set, id, NULL);
	}
}

static void rate_run(long seconds, uint64_t *count)
{
	int64_t begin = clock_ns(CLOCK_MONOTONIC);

	for (long ms = 1; ms <= seconds * 1000; ms++) {
		int64_t until = begin + ms * 1000000;

		rate_step(count);
		if (clock_ns(CLOCK_MONOTONIC) < until) {
			struct timespec end = {until / SECOND, until % SECOND};

			(void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL);
		}
	}
}

static void rate(long seconds)
{
	uint64_t count = 0, bytes, stored, syncs_before;
	int64_t begin, cpu;
	double wall_s;

	set_open(2000000);
	rate_run(WARM_S, &count);
	bytes = written();
	stored = stats_of().stored;
	syncs_before = syncs;
	begin = clock_ns(CLOCK_MONOTONIC);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	count = 0;
	atomic_store(&counts, true);
	rate_run(seconds, &count);
	atomic_store(&counts, false);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	wall_s = (double)(clock_ns(CLOCK_MONOTONIC) - begin) / 1e9;
	stored = stats_of().stored - stored;
	bytes = written() - bytes;
	printf("%.0f schedules/s, %.0f survivors/s; %.2f cores; %.0f syncs/s; %.0f bytes written "
	       "per "
	       "survivor\n",
	       (double)count / wall_s, (double)stored / wall_s, (double)cpu / 1e9 / wall_s,
	       (double)(syncs - syncs_before) / wall_s, (double)bytes / (double)stored);
	times_tell("acknowledged after");
	set_close();
}

/* Returns how many seconds SQLite alone takes for `count` commits of one row each. */
static double bare_commits(long count)
{
	static const char payload[PAYLOAD];
	sqlite3_stmt *statement = NULL;
	sqlite3 *sqlite = NULL;
	double begin;
	int code = sqlite3_open(beside_path, &sqlite);

	if (code == SQLITE_OK)
		code = sqlite3_exec(
			sqlite,
			"PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
			"CREATE TABLE IF NOT EXISTS row (id INTEGER PRIMARY KEY, payload BLOB);",
			NULL, NULL, NULL);
	if (code == SQLITE_OK)
		code = sqlite3_prepare_v2(sqlite, "INSERT INTO row (payload) VALUES (?1)", -1,
					  &statement, NULL);
	if (code != SQLITE_OK)
		fail("sqlite", -EIO);
	begin = now_s();
	for (long i = 0; i < count; i++) {
		sqlite3_bind_blob(statement, 1, payload, PAYLOAD, SQLITE_STATIC);
		if (sqlite3_step(statement) != SQLITE_DONE || sqlite3_reset(statement) != SQLITE_OK)
			fail("insert", -EIO);
	}
	begin = now_s() - begin;
	sqlite3_finalize(statement);
	sqlite3_close(sqlite);
	return begin;
}

static void *flush_main(void *argument)
{
	for (long i = 0; i < *(long *)argument; i++) {
		(void)schedule(TW_S(3600), 0, 0);
		if (tw_durable_flush(set, TW_NEVER) != 0)
			fail("flush", -EIO);
	}
	return NULL;
}

static double flushes(int threads, long count)
{
	pthread_t thread[THREADS];
	double begin = now_s();

	for (int i = 0; i < threads; i++)
		if (pthread_create(&thread[i], NULL, flush_main, &count) != 0)
			fail("thread", -ENOMEM);
	for (int i = 0; i < threads; i++)
		(void)pthread_join(thread[i], NULL);
	return now_s() - begin;
}

static void flush(long count)
{
	double one[RUNS], many[RUNS], bare[RUNS], ratio[RUNS], gain[RUNS];

	set_open(0);
	(void)flushes(1, count);
	for (int run = 0; run < RUNS; run++) {
		bare[run] = bare_commits(count) / (double)count * 1e6;
		one[run] = flushes(1, count) / (double)count * 1e6;
		many[run] = flushes(THREADS, count) / (double)(count * THREADS) * 1e6;
		ratio[run] = one[run] / bare[run];
		gain[run] = one[run] / many[run];
	}
	printf("schedule + flush: %.0f us, %.2f x a commit of SQLite (%.0f us); %d threads: %.0f "
	       "us "
	       "each, %.1f x as many a second\n",
	       median(one, RUNS), median(ratio, RUNS), median(bare, RUNS), THREADS,
	       median(many, RUNS), median(gain, RUNS));
	set_close();
}

static struct tw_durable_op put(uint64_t serial, int64_t from_ns, int64_t *ret_due_ns)
{
	static const char payload[PAYLOAD];
	int64_t due_ns = from_ns + (int64_t)(random_next() % (SPREAD_S * (uint64_t)SECOND));

	*ret_due_ns = due_ns;
	return (struct tw_durable_op){
		.type = TW_DURABLE_OP_PUT,
		.row = {.id = {(uint64_t)(due_ns / (64 * SECOND)), serial},
			.due_ns = due_ns,
			.payload = payload,
			.payload_bytes = PAYLOAD},
	};
}

/*
 * Fills the file. Runs in a process that ends without a close, as after kill -9. Returns how many
 * timers are due before `until_ns`.
 */
static uint64_t fill(uint64_t count, int64_t from_ns, int64_t until_ns)
{
	static const char *const kinds[] = {"perf"};
	static struct tw_durable_op ops[BATCH];
	struct tw_durable_store store;
	struct tw_durable_opened opened;
	uint64_t serial = 0, near = 0;
	int64_t due_ns;
	int result = tw_durable_store_file(path, &store);

	if (result == 0)
		result = store.ops->open(store.store, kinds, 1, &opened);
	if (result == 0)
		result = store.ops->reserve(store.store, count, &serial);
	for (uint64_t done = 0; done < count && result == 0; done += BATCH) {
		for (int i = 0; i < BATCH; i++) {
			ops[i] = put(serial++, from_ns, &due_ns);
			near += due_ns < until_ns;
		}
		result = store.ops->commit(store.store, ops, BATCH, clock_ns(CLOCK_REALTIME));
		if (result == 0)
			result = store.ops->upkeep(store.store);
	}
	if (result != 0)
		fail("fill", result);
	return near;
}

/*
 * Runs fill() in a child process, and drops the file from the page cache. Returns the child's
 * result.
 */
static uint64_t fill_apart(uint64_t count, int64_t from_ns, int64_t until_ns)
{
	uint64_t near = 0;
	int ends[2];
	pid_t child;

	if (pipe(ends) != 0)
		fail("pipe", -errno);
	child = fork();
	if (child < 0)
		fail("fork", -errno);
	if (child == 0) {
		near = fill(count, from_ns, until_ns);
		_exit(write(ends[1], &near, sizeof near) != sizeof near);
	}
	(void)waitpid(child, NULL, 0);
	if (read(ends[0], &near, sizeof near) != sizeof near)
		fail("fill", -EIO);
	forget();
	return near;
}

/*
 * Returns the anonymous memory of this process in MiB. It excludes the page cache, but includes
 * SQLite's own cache.
 */
static double memory_mib(void)
{
	FILE *file = fopen("/proc/self/status", "r");
	unsigned long kib = 0;
	char line[256];

	while (file != NULL && fgets(line, sizeof line, file) != NULL)
		if (sscanf(line, "RssAnon: %lu kB", &kib) == 1)
			break;
	if (file != NULL)
		fclose(file);
	return (double)kib / 1024;
}

static void reopen(uint64_t millions)
{
	/*
	 * Filling the file takes about 6 s for each million timers. With this start, the timers of
	 * OVERDUE_S seconds are overdue at the open.
	 */
	int64_t from_ns = clock_ns(CLOCK_REALTIME) + (int64_t)(millions * 6 - OVERDUE_S) * SECOND;
	uint64_t near;
	double begin;

	near = fill_apart(millions * 1000000, from_ns, from_ns + (OVERDUE_S + NEAR_S) * SECOND);
	while (clock_ns(CLOCK_REALTIME) < from_ns + OVERDUE_S * SECOND)
		(void)usleep(10000);
	begin = now_s();
	set_open(2000000);
	printf("%llu million pending, process killed, file not in memory: open %.0f ms",
	       (unsigned long long)millions, (now_s() - begin) * 1e3);
	while (first_run_s == 0)
		(void)usleep(100);
	printf(", first overdue one after %.0f ms", (first_run_s - begin) * 1e3);
	for (struct tw_durable_stats stats = stats_of(); stats.in_memory + stats.runs < near;
	     stats = stats_of())
		(void)usleep(1000);
	printf(", window of %llu timers after %.2f s; %.0f MiB\n", (unsigned long long)near,
	       now_s() - begin, memory_mib());
	/* Ends without a close, because a close would run all near timers. */
	files_remove();
	fflush(stdout);
	_exit(0);
}

static void far(uint64_t millions)
{
	int64_t from_ns = clock_ns(CLOCK_REALTIME) + FAR_S * SECOND;
	double begin, before;

	(void)fill_apart(millions * 1000000, from_ns, 0);
	before = memory_mib();
	begin = now_s();
	set_open(2000000);
	printf("%llu million far timers: open %.0f ms", (unsigned long long)millions,
	       (now_s() - begin) * 1e3);
	(void)sleep(3);
	printf("; memory %.1f MiB, of which %.1f before the open\n", memory_mib(), before);
	set_close();
}

static void late(long count)
{
	set_open(2000000);
	atomic_store(&counts, true);
	for (long i = 0; i < count; i++)
		(void)schedule(TW_S(5) + (int64_t)(random_next() % (10 * (uint64_t)SECOND)), 0, 1);
	if (tw_durable_flush(set, TW_NEVER) != 0)
		fail("flush", -EIO);
	while (atomic_load(&time_count) < (uint32_t)count)
		(void)usleep(10000);
	times_tell("late by");
	set_close();
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[2] : "";
	long number = argc > 3 ? atol(argv[3]) : 0;

	if (argc < 3 || argc > 4 || number < 0) {
		fprintf(stderr, "usage: %s DIRECTORY pair|rate|flush|open|far|late [NUMBER]\n",
			argv[0]);
		return 2;
	}
	paths_set(argv[1]);
	files_remove();
	if (strcmp(what, "pair") == 0)
		pairs(number != 0 ? number : 1000000);
	else if (strcmp(what, "rate") == 0)
		rate(number != 0 ? number : 10);
	else if (strcmp(what, "flush") == 0)
		flush(number != 0 ? number : 500);
	else if (strcmp(what, "open") == 0)
		reopen(number != 0 ? (uint64_t)number : 1);
	else if (strcmp(what, "far") == 0)
		far(number != 0 ? (uint64_t)number : 1);
	else if (strcmp(what, "late") == 0)
		late(number != 0 ? number : 100000);
	else
		fail(what, -EINVAL);
	files_remove();
	return 0;
}
