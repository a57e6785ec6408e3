/* SPDX-License-Identifier: MIT */
/* Reads counters and histograms, and writes them as text. */
#include "check.h"

/* example: tw_stats_get */
static int work_report(struct tw_engine *engine)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	int code = tw_stats_get(engine, &stats);

	if (code == 0)
		printf("%" PRIu64 " expired, %" PRIu64
		       " cancelled\n",
		       stats.expired, stats.cancelled);
	return code;
}
/* end */

/* example: tw_histogram_get tw_histogram_percentile */
/* Returns the lateness that 99 % of the callbacks did not exceed.
 * The engine needs the option `measure`. */
static int64_t lateness_p99(struct tw_engine *engine)
{
	struct tw_histogram late = {.size = sizeof(late)};
	int code = tw_histogram_get(engine, TW_MEASUREMENT_LATENESS,
				    &late);

	return code < 0 ? code : tw_histogram_percentile(&late, 99);
}
/* end */

/* example: tw_group_histogram_get */
/* Returns the longest callback of all engines of a group. */
static int64_t longest_ns(struct tw_group *group)
{
	struct tw_histogram took = {.size = sizeof(took)};
	int code = tw_group_histogram_get(
		group, TW_MEASUREMENT_DURATION, &took);

	return code < 0 ? code : (int64_t)took.max_ns;
}
/* end */

/* example: tw_histogram_record */
/* Each thread has a histogram of its own. */
static void answer_measured(struct tw_histogram *mine,
			    int64_t begin_ns, int64_t end_ns)
{
	if (tw_histogram_record(mine,
				(uint64_t)(end_ns - begin_ns)) < 0)
		fputs("size is not set\n", stderr);
}
/* end */

/* example: tw_histogram_merge */
/* Call it when the threads have ended: merges their values. */
static int answers_merge(struct tw_histogram *all,
			 const struct tw_histogram *threads,
			 size_t count)
{
	int code = 0;

	for (size_t i = 0; i < count && code == 0; i++)
		code = tw_histogram_merge(all, &threads[i]);
	return code;
}
/* end */

/* example: tw_histogram_subtract */
/* The 99th percentile of the values between two readings. */
static int64_t minute_p99(struct tw_histogram *later,
			  const struct tw_histogram *earlier)
{
	int code = tw_histogram_subtract(later, earlier);

	return code < 0 ? code : tw_histogram_percentile(later, 99);
}
/* end */

static void file_write(void *file, const char *text, size_t bytes)
{
	fwrite(text, 1, bytes, file);
}

/* example: tw_stats_print */
/* For Prometheus; file_write is a hook that calls fwrite. */
static int metrics_write(struct tw_engine *engine, FILE *file)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	struct tw_reading reading = {.engine = "main",
				     .stats = &stats};
	int code = tw_stats_get(engine, &stats);

	if (code < 0)
		return code;
	return tw_stats_print(&reading, 1, TW_PRINT_PROMETHEUS,
			      file_write, file);
}
/* end */

/* example: tw_histogram_print */
/* For people; file_write is a hook that calls fwrite. */
static void answers_print(const struct tw_histogram *answers)
{
	int code = tw_histogram_print(answers, "answers",
				      TW_PRINT_TEXT, file_write,
				      stdout);

	if (code < 0)
		fprintf(stderr, "answers: %s\n", tw_strerror(code));
}
/* end */

static void on_due(struct tw_handle self, void *arg)
{
	(void)self, (void)arg;
}

static const struct tw_kind due = TW_KIND(on_due, NULL);

static void run_one(struct bench *bench)
{
	CHECK(tw_schedule(bench->engine, TW_MS(1), &due, NULL,
			  NULL) == 0);
	bench_pass(bench, TW_MS(3));
}

static void engine_show(void)
{
	static struct tw_histogram first = {.size = sizeof(first)};
	static struct tw_histogram later = {.size = sizeof(later)};
	struct tw_options options = bench_options();
	struct bench bench;
	FILE *file = tmpfile();

	options.measure = TW_MEASURE_RUNS;
	bench = bench_open(options);
	run_one(&bench);
	CHECK(tw_histogram_get(bench.engine,
			       TW_MEASUREMENT_LATENESS,
			       &first) == 0);
	run_one(&bench);
	run_one(&bench);
	CHECK(tw_histogram_get(bench.engine,
			       TW_MEASUREMENT_LATENESS,
			       &later) == 0);
	CHECK(later.count == 3 && minute_p99(&later, &first) > 0 &&
	      later.count == 2);
	CHECK(work_report(bench.engine) == 0);
	CHECK(lateness_p99(bench.engine) > 0 &&
	      lateness_p99(bench.engine) <= TW_MS(3));
	CHECK(file != NULL &&
	      metrics_write(bench.engine, file) == 0 &&
	      ftell(file) > 0);
	fclose(file);
	bench_stop(&bench);
	bench_close(&bench);
}

static void group_show(void)
{
	struct tw_options engine = bench_options();
	struct tw_group_options options;
	struct tw_group *group;

	engine.measure = TW_MEASURE_RUNS;
	CHECK(tw_group_options_init(&options, sizeof(options)) ==
	      0);
	options.engines = 2;
	options.engine = &engine;
	CHECK(tw_group_create(&options, &group) == 0);
	CHECK(tw_group_schedule(group, 0, &due, NULL, NULL) == 0);
	while (longest_ns(group) == 0)
		CHECK(tw_engine_flush(tw_group_here(group),
				      TW_NEVER) == 0);
	CHECK(longest_ns(group) > 0);
	CHECK(tw_group_stop(group, NULL, NULL, TW_NEVER) == 0 &&
	      tw_group_destroy(group) == 0);
}

static void own_show(void)
{
	static struct tw_histogram threads[2] = {
		{.size = sizeof(threads[0])},
		{.size = sizeof(threads[0])}};
	static struct tw_histogram all = {.size = sizeof(all)};

	answer_measured(&threads[0], TW_MS(10), TW_MS(12));
	answer_measured(&threads[1], TW_MS(10), TW_MS(15));
	CHECK(answers_merge(&all, threads, 2) == 0);
	CHECK(all.count == 2 && all.min_ns == (uint64_t)TW_MS(2) &&
	      all.max_ns == (uint64_t)TW_MS(5));
	answers_print(&all);
}

int main(void)
{
	engine_show();
	group_show();
	own_show();
	return 0;
}
