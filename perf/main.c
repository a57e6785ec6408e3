/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-perf: what the engine costs on this machine, and proof that it loses nothing.
 */
#include "cli.h"
#include "measure.h"
#include "report.h"
#include "runner.h"

#include <tickwheel/version.h>

/* When so much of the tour's minute is gone, what is left is run once each. */
#define TOUR_HURRY_NS INT64_C(35000000000)

struct tour_stop {
	const char *workload;
	unsigned producers;
	unsigned repeat;
	uint64_t ops;
};

static const struct tour_stop tour[] = {
	{"schedule-cancel", 1, 5, 5000000},
	{"schedule-cancel", 2, 5, 5000000},
	{"live-ring", 1, 5, 2000000},
	{"live-ring", 2, 5, 2000000},
	{"fire", 1, 5, 5000000},
	{"light", 1, 1, 3000},
	{"idle", 1, 1, 1},
	{"pending-1k", 1, 5, 1000000},
	{"pending-10k", 1, 5, 1000000},
	{"pending-100k", 1, 5, 1000000},
	{"pending-1m", 1, 5, 1000000},
};

static void keep_worst(int *code, int more)
{
	if (more > *code)
		*code = more;
}

/* Every workload that one of the operands means, in the table's order. */
static int run_matching(const struct options *options, const char *operand, double clock_ns)
{
	int code = EXIT_GOOD;

	for (const struct workload *workload = workloads; workload->name; workload++)
		if (workload_matches(workload, operand))
			keep_worst(&code, runner_workload(workload, options, clock_ns));
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

static int command_tour(const struct options *options)
{
	int64_t hurry_at_ns = measure_now_ns() + TOUR_HURRY_NS;
	double clock_ns = runner_clock_ns(options);
	int code = EXIT_GOOD;

	report_title();
	keep_worst(&code, runner_probes(floor_probes, "floor", "The floor"));
	report_rows_begin();
	for (size_t i = 0; i < sizeof(tour) / sizeof(*tour); i++) {
		struct options stop = *options;

		stop.producers = or_default(options->producers, tour[i].producers);
		stop.repeat = or_default(options->repeat, tour[i].repeat);
		stop.ops = options->ops ? options->ops : tour[i].ops;
		if (!options->repeat && measure_now_ns() > hurry_at_ns)
			stop.repeat = 1;
		keep_worst(&code, run_matching(&stop, tour[i].workload, clock_ns));
	}
	puts("\nTimes are medians over the repeats; wall ns/op is over the operations of all "
	     "producers"
	     " together.\nperf/README.md tells how to read the table.");
	return code;
}

static int command_list(void)
{
	for (const struct workload *workload = workloads; workload->name; workload++)
		printf("%-16s %s\n", workload->name, workload->summary);
	puts("pending          all of the pending-* workloads");
	return EXIT_GOOD;
}

static int dispatch(const struct options *options)
{
	switch (options->command) {
	case COMMAND_RUN:
		return command_run(options);
	case COMMAND_FLOOR:
		report_title();
		return runner_probes(floor_probes, "floor", "The floor");
	case COMMAND_QUEUE:
		report_title();
		return runner_probes(queue_probes, "queue", "The ingress queue, and wfcqueue");
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

int main(int argc, char **argv)
{
	struct options options;
	int code;

	if (cli_parse(argc, argv, &options) || report_open(options.json_path))
		return EXIT_USAGE;
	code = dispatch(&options);
	if (report_close())
		keep_worst(&code, EXIT_LOST);
	return code;
}
