/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf top --durable: reads the set's counters once for each frame, and shows the
 * differences. Makes a new file of timers in the folder that the option names, and removes the file
 * afterwards. At the end, prints the account of all timers. The timers that have not ended must be
 * in the file.
 */
#include "top/durable.h"

#include "harness/bench.h"
#include "harness/measure.h"
#include "run/runner.h"
#include "top/durable_load.h"
#include "top/durable_screen.h"
#include "top/frames.h"
#include "top/terminal.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <tickwheel/durable_file.h>
#include <unistd.h>

#define NS_PER_S 1e9

enum { TITLE_BYTES = 256, HOLD_MS = 10000, COUNTED_AT_ONCE = 10000 };

/* One reading of the counters. */
struct reading {
	int64_t at_ns;
	int64_t cpu_ns;
	struct tw_durable_stats stats;
	/* Indexed by enum tw_durable_measurement. */
	struct tw_histogram histogram[3];
};

struct top {
	struct options options;
	struct bench bench;
	struct tw_durable *set;
	char path[PATH_MAX];
	char title[TITLE_BYTES];
	int64_t began_ns;
	struct reading reading[2];
	/* Index of the next reading. */
	unsigned turn;
	struct durable_view view;
};

static int reading_take(struct tw_durable *set, struct reading *reading)
{
	int error;

	reading->at_ns = measure_now_ns();
	reading->cpu_ns = measure_cpu_ns();
	error = tw_durable_stats_get(set, &reading->stats, sizeof(reading->stats));
	for (uint32_t i = 0; i < 3 && !error; i++) {
		reading->histogram[i].size = sizeof(reading->histogram[i]);
		error = tw_durable_histogram_get(set, i, &reading->histogram[i]);
	}
	return error;
}

static void histogram_fill(struct tw_histogram *ret, const struct reading *before,
			   const struct reading *now, uint32_t measurement)
{
	*ret = now->histogram[measurement];
	(void)tw_histogram_subtract(ret, &before->histogram[measurement]);
}

/* Fills in the figures of the time between two readings. */
static void view_fill(struct top *top, const struct reading *before, const struct reading *now)
{
	struct durable_view *view = &top->view;
	double passed_ns = (double)(now->at_ns - before->at_ns);

	view->title = top->title;
	view->up_s = (double)(now->at_ns - top->began_ns) / NS_PER_S;
	view->interval_s = passed_ns / NS_PER_S;
	view->cpu_percent = 100 * (double)(now->cpu_ns - before->cpu_ns) / passed_ns;
	view->rss_bytes = measure_rss_bytes();
	view->before = before->stats;
	view->now = now->stats;
	histogram_fill(&view->commit, before, now, TW_DURABLE_MEASUREMENT_COMMIT);
	histogram_fill(&view->ack, before, now, TW_DURABLE_MEASUREMENT_ACK);
	histogram_fill(&view->lateness, before, now, TW_DURABLE_MEASUREMENT_LATENESS);
}

static int frame_begin(void *context)
{
	struct top *top = context;

	top->turn = 1;
	return reading_take(top->set, &top->reading[0]);
}

static int frame_read(void *context)
{
	struct top *top = context;
	struct reading *now = &top->reading[top->turn];
	int error = reading_take(top->set, now);

	if (error)
		return error;
	top->turn ^= 1;
	view_fill(top, &top->reading[top->turn], now);
	return 0;
}

static void frame_draw(void *context, unsigned rows, unsigned columns, struct top_text *ret_text)
{
	struct top *top = context;

	durable_screen_draw(&top->view, rows, columns, ret_text);
}

static void complete(struct options *options)
{
	options->producers = options->producers ? options->producers : 1;
	options->ops = options->ops ? options->ops : DURABLE_OPS_A_SECOND;
	options->pending = options->pending ? options->pending : DURABLE_PENDING;
	options->hold_ms = options->hold_ms ? options->hold_ms : HOLD_MS;
}

static void title_write(struct top *top)
{
	(void)snprintf(top->title, sizeof(top->title),
		       "tickwheel-perf top: durable timers, %u x %" PRIu64
		       " operations/s, file in %s",
		       top->options.producers, top->options.ops / top->options.producers,
		       top->options.durable_path);
}

static void files_remove(const char *path)
{
	static const char *const endings[] = {"", "-wal", "-shm", "-lock", "-reserve"};
	char whole[PATH_MAX + 16];

	for (size_t i = 0; i < sizeof(endings) / sizeof(*endings); i++) {
		(void)snprintf(whole, sizeof(whole), "%s%s", path, endings[i]);
		(void)unlink(whole);
	}
}

static int set_open(struct top *top)
{
	const struct tw_durable_kind *kinds[] = {&durable_load_kind};
	struct tw_durable_options options;
	int error = tw_durable_options_init(&options, sizeof(options));

	if (!error)
		error = tw_durable_store_file(top->path, &options.store);
	if (error)
		return error;
	/* With this level, the folder may be in memory, which is enough for a demonstration. */
	options.level = TW_DURABLE_LEVEL_PROCESS;
	options.acked = durable_load_acked;
	return tw_durable_open(top->bench.engine, kinds, 1, &options, &top->set);
}

struct counted {
	struct tw_durable_row last;
	uint64_t count;
};

static int count_one(void *to, const struct tw_durable_row *row)
{
	struct counted *counted = to;

	counted->last.id = row->id;
	counted->last.due_ns = row->due_ns;
	counted->count++;
	return 0;
}

/* Counts the timers that the file still has. The set must be closed. */
static int left_count(const char *path, uint64_t *ret_count)
{
	const char *const kinds[] = {durable_load_kind.name};
	struct tw_durable_opened opened;
	struct tw_durable_store store;
	struct counted counted = {.count = 0};
	uint64_t before = 1;
	int error = tw_durable_store_file(path, &store);

	if (error)
		return error;
	error = store.ops->open(store.store, kinds, 1, &opened);
	while (error >= 0 && counted.count != before) {
		before = counted.count;
		error = store.ops->near(store.store, before ? &counted.last : NULL, INT64_MAX,
					COUNTED_AT_ONCE, count_one, &counted);
	}
	store.ops->close(store.store, 1);
	*ret_count = counted.count;
	return error < 0 ? error : 0;
}

/* Prints the account, and returns the exit code. Uses the same words as the command `run`. */
static int verdict(const struct durable_account *account, uint64_t left)
{
	bool whole = account->scheduled == account->runs + account->cancelled + left;

	printf("%" PRIu64 " scheduled = %" PRIu64 " run + %" PRIu64 " cancelled + %" PRIu64
	       " left: %s\n",
	       account->scheduled, account->runs, account->cancelled, left, whole ? "ok" : "LOST");
	return whole ? EXIT_GOOD : EXIT_LOST;
}

static int failed(const struct top *top, int error)
{
	fprintf(stderr, "tickwheel-perf: top: %s: %s\n", top->options.durable_path,
		strerror(-error));
	return EXIT_LOST;
}

static int first_of(int error, int other)
{
	return error ? error : other;
}

/* Shows frames while the load runs. */
static int load_run(struct top *top)
{
	struct top_frames frames = {frame_begin, frame_read, frame_draw, top};
	struct durable_load *load = NULL;
	int error = durable_load_start(top->set, &top->options, &load);

	if (error)
		return error;
	error = top_frames_show(&frames, &top->options);
	return first_of(error, durable_load_end(load));
}

static int set_run(struct top *top)
{
	int error = set_open(top);

	if (error)
		return error;
	terminal_open();
	error = load_run(top);
	terminal_close();
	return first_of(error, tw_durable_close(top->set, TW_NEVER));
}

static int bench_run(struct top *top)
{
	struct sample sample = sample_empty();
	int error = bench_open(&top->options, 0, &top->bench);

	if (error)
		return error;
	error = set_run(top);
	return first_of(error, bench_close(&top->bench, &sample));
}

int top_durable_run(const struct options *options)
{
	static struct top top;
	struct durable_account account;
	uint64_t left = 0;
	int error;

	top.options = *options;
	complete(&top.options);
	title_write(&top);
	(void)snprintf(top.path, sizeof(top.path), "%s/tickwheel-top-%ld", options->durable_path,
		       (long)getpid());
	top.began_ns = measure_now_ns();
	error = bench_run(&top);
	if (!error)
		error = left_count(top.path, &left);
	files_remove(top.path);
	if (error)
		return failed(&top, error);
	account = durable_load_account();
	return verdict(&account, left);
}
