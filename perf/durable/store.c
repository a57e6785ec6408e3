/* SPDX-License-Identifier: MIT */
/*
 * Measures the file store by itself, compared with a raw log in the same run: durable-store
 * DIRECTORY [MILLIONS]. With MILLIONS a child process makes a file of so many pending timers
 * instead, and ends without a close. Then the program measures the open.
 */
#include "durable/common.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <tickwheel/durable_file.h>
#include <time.h>
#include <unistd.h>

enum {
	PAYLOAD = 64,
	RECORD = 96, /* bytes of the raw log for each timer */
	BATCH_MOST = 10000,
	SPREAD_S = 1800, /* all deadlines lie within so many seconds */
	RUNS = 5,        /* how many runs; the program prints their median */
};

#define SECOND INT64_C(1000000000)
#define ORIGIN (INT64_C(1764038000) * SECOND)

static const char *const kinds[] = {"perf"};
static struct tw_durable_store store;
static unsigned char payload[PAYLOAD];

static void store_open(struct tw_durable_opened *ret)
{
	int result = tw_durable_store_file(path, &store);

	if (result == 0)
		result = store.ops->open(store.store, kinds, 1, ret);
	if (result != 0)
		fail("open", result);
}

static void commit(struct tw_durable_op *ops, size_t count, int64_t now_ns)
{
	int result = store.ops->commit(store.store, ops, count, now_ns);

	if (result == 0)
		result = store.ops->upkeep(store.store);
	if (result != 0)
		fail("commit", result);
}

static struct tw_durable_op put(uint64_t serial, int64_t from_ns)
{
	int64_t due_ns = from_ns + (int64_t)(random_next() % (SPREAD_S * (uint64_t)SECOND));

	return (struct tw_durable_op){
		.type = TW_DURABLE_OP_PUT,
		.row = {.id = {(uint64_t)(due_ns / (64 * SECOND)), serial},
			.due_ns = due_ns,
			.version = 1,
			.payload = payload,
			.payload_bytes = PAYLOAD},
	};
}

static uint64_t serials(uint64_t count)
{
	uint64_t first = 0;
	int result = store.ops->reserve(store.store, count, &first);

	if (result != 0)
		fail("reserve", result);
	return first;
}

/* Adds `count` timers, in commits of `batch` each. */
static void fill(uint64_t count, size_t batch)
{
	static struct tw_durable_op ops[BATCH_MOST];
	uint64_t serial = serials(count), end = serial + count;

	while (serial < end) {
		size_t in = 0;

		while (in < batch && serial < end)
			ops[in++] = put(serial++, ORIGIN);
		commit(ops, in, ORIGIN);
	}
}

static int compare(const void *one, const void *other)
{
	const struct tw_durable_row *left = one, *right = other;

	return left->due_ns < right->due_ns ? -1 : left->due_ns > right->due_ns;
}

/* Timers that wait for their ends, in order of deadline. */
struct queue {
	struct tw_durable_row *rows;
	size_t count, taken;
};

/* Commits a batch of new timers together with the ends of as many old ones, the earliest. */
static void steady_batch(struct tw_durable_op *ops, size_t batch, uint64_t *serial,
			 struct queue *queue)
{
	int64_t from_ns = queue->rows[queue->taken].due_ns;

	for (size_t i = 0; i < batch; i++)
		ops[i] = put((*serial)++, from_ns);
	for (size_t i = 0; i < batch; i++)
		ops[batch + i] = (struct tw_durable_op){
			.type = TW_DURABLE_OP_DELETE,
			.row = {.id = queue->rows[queue->taken++].id},
		};
	commit(ops, 2 * batch, from_ns);
}

/*
 * Returns the seconds of one run: `rounds` batches into a store in which the timers of `queue` are
 * pending.
 */
static double steady_run(size_t batch, size_t rounds, uint64_t *serial, struct queue *queue)
{
	static struct tw_durable_op ops[2 * BATCH_MOST];
	double begin = now_s();

	for (size_t i = 0; i < rounds; i++)
		steady_batch(ops, batch, serial, queue);
	return now_s() - begin;
}

static double raw_run(size_t batch, size_t rounds)
{
	static unsigned char bytes[(size_t)BATCH_MOST * RECORD];
	int fd = open(beside_path, O_CREAT | O_WRONLY | O_APPEND | O_TRUNC | O_CLOEXEC, 0600);
	double begin = now_s(), end;

	for (size_t i = 0; i < rounds; i++)
		if (write(fd, bytes, batch * RECORD) < 0 || fdatasync(fd) != 0)
			fail("raw log", -errno);
	end = now_s();
	close(fd);
	return end - begin;
}

/*
 * Stores `count` pending timers, and fills the queue with them in order of deadline. The measured
 * runs end these timers.
 */
static void queue_fill(struct queue *queue, size_t count, uint64_t *ret_serial)
{
	static struct tw_durable_op ops[BATCH_MOST];
	uint64_t serial = serials(UINT64_C(1) << 32);

	queue->rows = calloc(count, sizeof(queue->rows[0]));
	if (queue->rows == NULL)
		fail("memory", -ENOMEM);
	while (queue->count < count) {
		size_t in = 0;

		for (; in < BATCH_MOST && queue->count < count; in++) {
			ops[in] = put(serial++, ORIGIN);
			queue->rows[queue->count++] = ops[in].row;
		}
		commit(ops, in, ORIGIN);
	}
	qsort(queue->rows, queue->count, sizeof(queue->rows[0]), compare);
	*ret_serial = serial;
}

static void steady(size_t batch)
{
	size_t rounds = batch <= 64 ? 400 : batch <= 256 ? 200 : batch <= 1000 ? 100 : 20;
	size_t survivors = batch * rounds;
	struct queue queue = {0};
	struct tw_durable_opened opened;
	double rates[RUNS], ratios[RUNS];
	uint64_t serial = 0, bytes;

	files_remove();
	store_open(&opened);
	queue_fill(&queue, survivors * RUNS + 100000, &serial);
	bytes = written();
	for (int run = 0; run < RUNS; run++) {
		double raw = raw_run(batch, rounds), taken;

		bytes += rounds * batch * RECORD;
		taken = steady_run(batch, rounds, &serial, &queue);
		rates[run] = (double)survivors / taken;
		ratios[run] = raw / taken;
	}
	bytes = written() - bytes;
	printf("%7zu %12.0f %14.3f %16.0f\n", batch, median(rates, RUNS), median(ratios, RUNS),
	       (double)bytes / (double)(survivors * RUNS));
	fflush(stdout);
	store.ops->close(store.store, 1);
	free(queue.rows);
}

static int count_row(void *to, const struct tw_durable_row *row)
{
	(void)row;
	++*(uint64_t *)to;
	return 0;
}

static double load(int64_t until_ns, size_t max, uint64_t *ret_count)
{
	double begin = now_s();
	int result;

	*ret_count = 0;
	result = store.ops->near(store.store, NULL, until_ns, max, count_row, ret_count);
	if (result != 0)
		fail("near", result);
	return now_s() - begin;
}

static void pending(uint64_t millions)
{
	struct tw_durable_opened opened;
	struct stat status;
	uint64_t count;
	double begin, seconds;
	pid_t child;

	files_remove();
	child = fork();
	if (child == 0) {
		store_open(&opened);
		fill(millions * 1000000, BATCH_MOST);
		_exit(0); /* leaves the file as kill -9 would */
	}
	waitpid(child, NULL, 0);
	if (stat(path, &status) != 0)
		fail("stat", -errno);
	forget();
	begin = now_s();
	store_open(&opened);
	printf("%llu million pending, process killed, file not in memory:\n",
	       (unsigned long long)millions);
	printf("  open                         %8.1f ms\n", 1e3 * (now_s() - begin));
	seconds = load(INT64_MAX - 1, 1000, &count);
	printf("  the first %-6llu by deadline %8.1f ms\n", (unsigned long long)count,
	       1e3 * seconds);
	seconds = load(ORIGIN + 120 * SECOND, 10000000, &count);
	printf("  2 minutes: %-8llu timers   %8.1f ms\n", (unsigned long long)count, 1e3 * seconds);
	if (stat(path, &status) != 0)
		fail("stat", -errno);
	printf("  bytes on disk per timer      %8.1f\n",
	       (double)status.st_size / (double)(millions * 1000000));
	store.ops->close(store.store, 1);
}

int main(int argc, char **argv)
{
	static const size_t batches[] = {1, 16, 64, 256, 1000, 10000};

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: %s DIRECTORY [MILLIONS]\n", argv[0]);
		return 2;
	}
	paths_set(argv[1]);
	if (argc == 3) {
		pending(strtoull(argv[2], NULL, 10));
	} else {
		printf("  batch  survivors/s  of the raw log  bytes/survivor\n");
		for (size_t i = 0; i < sizeof(batches) / sizeof(batches[0]); i++)
			steady(batches[i]);
	}
	files_remove();
	return 0;
}
