/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf measures the cost of the engine on this machine, and checks that it loses nothing.
 */
#include "cli.h"
#include "harness/measure.h"
#include "plot.h"
#include "report/machine.h"
#include "report/report.h"
#include "run/compare.h"
#include "run/runner.h"
#include "scale/scale.h"
#include "script.h"
#include "top/durable.h"
#include "top/top.h"

#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

/* When this much of the tour's minute has passed, the remaining workloads run only once each. */
#define TOUR_HURRY_NS INT64_C(35000000000)

/*
 * One step of the tour or of `time`. If the command line has an option, the option replaces the
 * step's value.
 */
struct stop {
	const char *workload;
	unsigned producers;
	unsigned repeat;
	uint64_t ops;
	uint32_t wheel;
	uint64_t tick_ns;
	uint64_t spin_ns;
	bool at;
	bool loop;
	/* Runs the workload on all engines that support it. */
	bool all_engines;
};

static const struct stop tour[] = {
	{.workload = "schedule-cancel", .producers = 1, .repeat = 5, .ops = 5000000},
	{.workload = "schedule-cancel", .producers = 2, .repeat = 5, .ops = 5000000},
	{.workload = "live-ring", .producers = 1, .repeat = 5, .ops = 2000000},
	{.workload = "live-ring", .producers = 2, .repeat = 5, .ops = 2000000},
	{.workload = "fire", .producers = 1, .repeat = 5, .ops = 5000000},
	{.workload = "light", .producers = 1, .repeat = 1, .ops = 3000},
	{.workload = "idle", .producers = 1, .repeat = 1, .ops = 1},
	{.workload = "pending-1k", .producers = 1, .repeat = 5, .ops = 1000000},
	{.workload = "pending-10k", .producers = 1, .repeat = 5, .ops = 1000000},
	{.workload = "pending-100k", .producers = 1, .repeat = 5, .ops = 1000000},
	{.workload = "pending-1m", .producers = 1, .repeat = 5, .ops = 1000000},
};

/*
 * The steps of the command `time`: both wheels with more and more pending timeouts, small ticks,
 * sleeping, loops, reschedule.
 */
static const struct stop time_stops[] = {
	{.workload = "pending", .producers = 1, .ops = 1000000, .wheel = TW_WHEEL_HASHED},
	{.workload = "held", .producers = 1, .wheel = TW_WHEEL_HASHED},
	{.workload = "crowded", .producers = 1, .wheel = TW_WHEEL_HASHED},
	{.workload = "idle", .producers = 1, .wheel = TW_WHEEL_HASHED},
	{.workload = "idle", .producers = 1, .wheel = TW_WHEEL_HASHED, .tick_ns = 10000},
	{.workload = "light",
	 .producers = 1,
	 .repeat = 5,
	 .ops = 3000,
	 .wheel = TW_WHEEL_HASHED,
	 .tick_ns = 10000},
	{.workload = "light",
	 .producers = 1,
	 .repeat = 5,
	 .ops = 3000,
	 .wheel = TW_WHEEL_HASHED,
	 .tick_ns = 1000,
	 .spin_ns = 200000},
	{.workload = "pending", .producers = 1, .ops = 1000000, .wheel = TW_WHEEL_HIERARCHICAL},
	{.workload = "held", .producers = 1, .wheel = TW_WHEEL_HIERARCHICAL},
	{.workload = "crowded", .producers = 1, .wheel = TW_WHEEL_HIERARCHICAL},
	{.workload = "idle", .producers = 1, .wheel = TW_WHEEL_HIERARCHICAL},
	{.workload = "idle", .producers = 1, .wheel = TW_WHEEL_HIERARCHICAL, .tick_ns = 10000},
	{.workload = "light",
	 .producers = 1,
	 .repeat = 5,
	 .ops = 3000,
	 .wheel = TW_WHEEL_HIERARCHICAL,
	 .tick_ns = 10000},
	{.workload = "light",
	 .producers = 1,
	 .repeat = 5,
	 .ops = 3000,
	 .wheel = TW_WHEEL_HIERARCHICAL,
	 .tick_ns = 1000,
	 .spin_ns = 200000},
	{.workload = "schedule-cancel", .producers = 1, .repeat = 5, .ops = 5000000},
	{.workload = "schedule-cancel",
	 .producers = 1,
	 .repeat = 5,
	 .ops = 5000000,
	 .wheel = TW_WHEEL_HIERARCHICAL},
	{.workload = "loop-1k", .producers = 1, .all_engines = true},
	{.workload = "loop-1m", .producers = 1, .all_engines = true},
	{.workload = "reschedule", .producers = 1},
	{.workload = "reschedule-later", .producers = 1, .at = true},
	{.workload = "reschedule-later", .producers = 1, .at = true, .loop = true},
};

static void keep_worst(int *code, int more)
{
	if (more > *code)
		*code = more;
}

static uint64_t engines_or_ours(const struct options *options)
{
	return options->engines ? options->engines : UINT64_C(1) << peer_find(PEER_OURS);
}

static int run_engines(const struct workload *workload, const struct options *options,
		       uint64_t engines, double clock_ns)
{
	int code = EXIT_GOOD;

	for (unsigned i = 0; i < peer_count(); i++)
		if (engines & (UINT64_C(1) << i) && peer_knows(peer_at(i), workload))
			keep_worst(&code, runner_workload(peer_at(i), workload, options, clock_ns));
	return code;
}

/* Runs every workload that matches the operand, in the order of the table. */
static int run_matching(const struct options *options, const char *operand, double clock_ns)
{
	uint64_t engines = engines_or_ours(options);
	int code = runner_turns(peer_at((unsigned)peer_find(PEER_OURS)), operand, options);

	for (const struct workload *workload = workloads; workload->name; workload++)
		if (workload_matches(workload, operand) && !workload->in_turns)
			keep_worst(&code, run_engines(workload, options, engines, clock_ns));
	return code;
}

static int command_run(const struct options *options)
{
	double clock_ns = runner_clock_ns(options);
	int code = EXIT_GOOD;

	report_title();
	printf("clock read %.1f ns\n", clock_ns);
	report_rows_begin();
	for (int i = 0; i < options->operand_count; i++)
		keep_worst(&code, run_matching(options, options->operands[i], clock_ns));
	return code;
}

static unsigned or_default(unsigned asked, unsigned otherwise)
{
	return asked ? asked : otherwise;
}

static struct options stop_options(const struct options *options, const struct stop *stop)
{
	struct options result = *options;

	result.producers = or_default(options->producers, stop->producers);
	result.repeat = or_default(options->repeat, stop->repeat);
	result.ops = options->ops ? options->ops : stop->ops;
	result.tick_ns = options->tick_ns ? options->tick_ns : stop->tick_ns;
	result.spin_ns = options->spin_ns ? options->spin_ns : stop->spin_ns;
	result.at = options->at || stop->at;
	result.loop = options->loop || stop->loop;
	return result;
}

static int command_floor(void)
{
	int code = EXIT_GOOD;

	report_title();
	keep_worst(&code, runner_probes(floor_part_probes, "floor", "The floor"));
	keep_worst(&code, runner_probes(floor_clock_probes, "floor", "The library's clocks"));
	keep_worst(&code, runner_probes(floor_sleep_probes, "floor", "Beneath all lateness"));
	return code;
}

static int command_time(const struct options *options)
{
	double clock_ns = runner_clock_ns(options);
	int code = EXIT_GOOD;

	keep_worst(&code, command_floor());
	report_rows_begin();
	for (size_t i = 0; i < sizeof(time_stops) / sizeof(*time_stops); i++) {
		struct options stop = stop_options(options, &time_stops[i]);

		stop.wheel = time_stops[i].wheel;
		if (time_stops[i].all_engines)
			stop.engines = UINT64_MAX;
		keep_worst(&code, run_matching(&stop, time_stops[i].workload, clock_ns));
	}
	return code;
}

static int command_tour(const struct options *options)
{
	int64_t hurry_at_ns = measure_now_ns() + TOUR_HURRY_NS;
	double clock_ns = runner_clock_ns(options);
	int code = EXIT_GOOD;

	keep_worst(&code, command_floor());
	report_rows_begin();
	for (size_t i = 0; i < sizeof(tour) / sizeof(*tour); i++) {
		struct options stop = stop_options(options, &tour[i]);

		if (!options->repeat && measure_now_ns() > hurry_at_ns)
			stop.repeat = 1;
		keep_worst(&code, run_matching(&stop, tour[i].workload, clock_ns));
	}
	puts("\nTimes are medians over the repeats; wall ns/op is over the operations of all "
	     "producers"
	     " together.\nperf/README.md tells how to read the table.");
	return code;
}

static int command_top(const struct options *options)
{
#ifdef PERF_HAVE_DURABLE
	if (options->durable_path)
		return top_durable_run(options);
#endif
	return top_run(options);
}

static int command_list(void)
{
	for (const struct workload *workload = workloads; workload->name; workload++)
		printf("%-16s %s\n", workload->name, workload->summary);
	puts("batch, group, pending, loop, reschedule   all workloads whose names begin "
	     "so\n\nengines:");
	for (unsigned i = 0; i < peer_count(); i++)
		puts(peer_at(i)->name);
	return EXIT_GOOD;
}

static int dispatch(const struct options *options)
{
	switch (options->command) {
	case COMMAND_RUN:
		return command_run(options);
	case COMMAND_COMPARE:
		return compare_run(options);
	case COMMAND_TIME:
		return command_time(options);
	case COMMAND_FLOOR:
		return command_floor();
	case COMMAND_QUEUE:
		report_title();
		return runner_probes(queue_probes, "queue", "The ingress queue, and wfcqueue");
	case COMMAND_SCALE:
		return scale_run(options);
	case COMMAND_PLOT:
		return plot_run(options);
	case COMMAND_TOP:
		return command_top(options);
	case COMMAND_REPLAY:
		return runner_replay(options);
	case COMMAND_LIST:
		return command_list();
	case COMMAND_VERSION:
		printf("tickwheel-perf %s\n", tw_version_string());
		return EXIT_GOOD;
	case COMMAND_HELP:
		cli_usage(stdout);
		return EXIT_GOOD;
	case COMMAND_TOUR:
		break;
	}
	return command_tour(options);
}

/*
 * Runs the script that compares durable timers with other stores of timers, such as Redis. Passes
 * the options to the script.
 */
static int command_durable(char **words, int count)
{
	const char **all = calloc((size_t)count + 2, sizeof(*all));
	char client[PATH_MAX];
	int code;

	if (!all || !script_beside("durable-client", client))
		abort();
	all[0] = client;
	memcpy(&all[1], words, (size_t)count * sizeof(*words));
	code = script_become("durable", "durable_compare.py", all);
	free(all);
	return code;
}

int main(int argc, char **argv)
{
	struct options options;
	int code;

	if (argc > 1 && strcmp(argv[1], "durable") == 0)
		return command_durable(&argv[2], argc - 2);
	if (cli_parse(argc, argv, &options) || report_open(options.json_path))
		return EXIT_USAGE;
	/*
	 * The first call reads the date, so all results have the date of the program's beginning.
	 */
	(void)machine_get();
	code = dispatch(&options);
	if (report_close())
		keep_worst(&code, EXIT_LOST);
	return code;
}
