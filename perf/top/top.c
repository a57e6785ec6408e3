/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf top: reads the engine's counters once for each frame, and shows the differences.
 * At the end, prints the account of all timeouts, which the harness has counted without these
 * counters.
 */
#include "top/top.h"

#include "harness/bench.h"
#include "harness/measure.h"
#include "run/runner.h"
#include "top/frames.h"
#include "top/load.h"
#include "top/screen.h"
#include "top/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_S 1e9
#define NS_PER_MS INT64_C(1000000)
/*
 * How long to wait for the dump of the levels. The worker makes the dump between two turns, so the
 * wait should not take much longer than a turn.
 */
#define LEVELS_WAIT_NS (100 * NS_PER_MS)

enum { TITLE_BYTES = 256, DUMP_BYTES = 16384 };
/*
 * No timeout expires while the worker makes a dump. So dumps may take at most one part in
 * LEVELS_REST_PARTS of the time.
 */
enum { LEVELS_REST_PARTS = 100 };

/* One reading of the counters. */
struct reading {
	int64_t at_ns;
	int64_t cpu_ns;
	struct tw_stats stats;
	struct tw_histogram lateness;
	struct tw_histogram duration;
};

struct top {
	struct options options;
	struct bench bench;
	struct top_load *load;
	char title[TITLE_BYTES];
	int64_t began_ns;
	struct reading reading[2];
	/* Index of the next reading. */
	unsigned turn;
	/* When the levels were dumped, and when they will be dumped again. */
	int64_t levels_at_ns;
	int64_t levels_next_ns;
	struct top_view view;
};

struct dump {
	size_t bytes;
	char text[DUMP_BYTES + 1];
};

static void on_dump(void *context, const char *text, size_t bytes)
{
	struct dump *dump = context;

	if (bytes > DUMP_BYTES - dump->bytes)
		bytes = DUMP_BYTES - dump->bytes;
	memcpy(dump->text + dump->bytes, text, bytes);
	dump->bytes += bytes;
	dump->text[dump->bytes] = '\0';
}

static void levels_read(struct tw_engine *engine, struct top_levels *ret_levels)
{
	static struct dump dump;
	char *rest = dump.text;
	char *line;

	dump.bytes = 0;
	dump.text[0] = '\0';
	*ret_levels = (struct top_levels){
		.known = tw_engine_dump(engine, on_dump, &dump, LEVELS_WAIT_NS) == 0};
	while ((line = strsep(&rest, "\n")))
		top_levels_take(ret_levels, line);
}

static void levels_look(struct top *top)
{
	int64_t begin_ns = measure_now_ns();

	if (begin_ns < top->levels_next_ns) {
		top->view.levels.age_s = (double)(begin_ns - top->levels_at_ns) / NS_PER_S;
		return;
	}
	levels_read(top->bench.engine, &top->view.levels);
	top->levels_at_ns = measure_now_ns();
	top->levels_next_ns =
		top->levels_at_ns + (top->levels_at_ns - begin_ns) * LEVELS_REST_PARTS;
}

static int reading_take(struct tw_engine *engine, struct reading *reading)
{
	int error;

	reading->stats.size = sizeof(reading->stats);
	reading->lateness.size = reading->duration.size = sizeof(reading->lateness);
	reading->at_ns = measure_now_ns();
	reading->cpu_ns = measure_cpu_ns();
	error = tw_stats_get(engine, &reading->stats);
	if (!error)
		error = tw_histogram_get(engine, TW_MEASUREMENT_LATENESS, &reading->lateness);
	if (!error)
		error = tw_histogram_get(engine, TW_MEASUREMENT_DURATION, &reading->duration);
	return error;
}

/* Fills in the figures of the time between two readings. */
static void view_fill(struct top *top, const struct reading *before, const struct reading *now)
{
	struct top_view *view = &top->view;
	double passed_ns = (double)(now->at_ns - before->at_ns);

	view->title = top->title;
	view->tick_ns = top->options.tick_ns;
	view->up_s = (double)(now->at_ns - top->began_ns) / NS_PER_S;
	view->interval_s = passed_ns / NS_PER_S;
	view->cpu_percent = 100 * (double)(now->cpu_ns - before->cpu_ns) / passed_ns;
	view->rss_bytes = measure_rss_bytes();
	view->before = before->stats;
	view->now = now->stats;
	view->lateness = now->lateness;
	view->duration = now->duration;
	(void)tw_histogram_subtract(&view->lateness, &before->lateness);
	(void)tw_histogram_subtract(&view->duration, &before->duration);
	levels_look(top);
}

static int frame_begin(void *context)
{
	struct top *top = context;

	top->turn = 1;
	return reading_take(top->bench.engine, &top->reading[0]);
}

static int frame_read(void *context)
{
	struct top *top = context;
	struct reading *now = &top->reading[top->turn];
	int error = reading_take(top->bench.engine, now);

	if (error)
		return error;
	top->turn ^= 1;
	view_fill(top, &top->reading[top->turn], now);
	return 0;
}

static void frame_draw(void *context, unsigned rows, unsigned columns, struct top_text *ret_text)
{
	struct top *top = context;

	top_screen_draw(&top->view, rows, columns, ret_text);
}

static void complete(struct options *options)
{
	struct tw_options defaults;

	(void)tw_options_init(&defaults, sizeof(defaults));
	options->producers = options->producers ? options->producers : 1;
	options->ops = options->ops ? options->ops : TOP_OPS_A_SECOND;
	options->pending = options->pending ? options->pending : TOP_PENDING;
	options->hold_ms = options->hold_ms ? options->hold_ms : TOP_HOLD_MS;
	options->tick_ns = options->tick_ns ? options->tick_ns : defaults.tick_ns;
	options->measure = TW_MEASURE_RUNS;
}

static void title_write(struct top *top)
{
	const struct options *options = &top->options;

	(void)snprintf(top->title, sizeof(top->title),
		       "tickwheel-perf top: %u x %" PRIu64 " operations/s, %s wheel, tick %" PRIu64
		       " us",
		       options->producers, options->ops / options->producers,
		       options_wheel_names[options->wheel], options->tick_ns / 1000);
}

/* Prints the account, and returns the exit code. Uses the same words as the command `run`. */
static int verdict(const struct account *account)
{
	bool whole = account_whole(account);

	printf("%" PRIu64 " scheduled = %" PRIu64 " expired + %" PRIu64 " cancelled + %" PRIu64
	       " handed back: %s\n",
	       account->scheduled.count, account->expired.count, account->cancelled.count,
	       account->unexpired.count, whole ? "ok" : "LOST");
	return whole ? EXIT_GOOD : EXIT_LOST;
}

static int failed(int error)
{
	fprintf(stderr, "tickwheel-perf: top: %s\n", tw_strerror(error));
	return EXIT_LOST;
}

static int loaded_run(struct top *top)
{
	struct top_frames frames = {frame_begin, frame_read, frame_draw, top};
	struct sample sample = sample_empty();
	struct account account = {0};
	int error, other;

	terminal_open();
	error = top_load_start(&top->bench, &top->options, &top->load);
	if (!error) {
		error = top_frames_show(&frames, &top->options);
		other = top_load_end(top->load, &account);
		error = error ? error : other;
	}
	terminal_close();
	other = bench_close(&top->bench, &sample);
	error = error ? error : other;
	if (error)
		return failed(error);
	account.expired = sample.account.expired;
	account.unexpired = sample.account.unexpired;
	return verdict(&account);
}

int top_run(const struct options *options)
{
	static struct top top;
	int error;

	top.options = *options;
	complete(&top.options);
	title_write(&top);
	top.began_ns = measure_now_ns();
	error = bench_open(&top.options, 0, &top.bench);
	return error ? failed(error) : loaded_run(&top);
}
