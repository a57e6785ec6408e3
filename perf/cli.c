/* SPDX-License-Identifier: MIT */
/* Parses the command line. The first argument that is not an option is the name of a command. */
#include "cli.h"

#include "peer/peer.h"
#include "run/compare.h"
#include "scale/scale.h"
#include "workload/workload.h"

#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <tickwheel.h>

#define OPS_MAX UINT64_C(1000000000)
#define TICK_MIN_NS UINT64_C(1000)
#define TICK_MAX_NS UINT64_C(3600000000000)
#define SPIN_MAX_NS UINT64_C(1000000)

enum { PRODUCERS_MAX = 64, REPEAT_MAX = 1000, SLOTS_MAX = 1 << 24 };
enum { HOLD_MAX_MS = 3600000, INTERVAL_MAX_MS = 60000, FRAMES_MAX = 1000000 };

enum option_code {
	OPTION_PRODUCERS = 256,
	OPTION_OPS,
	OPTION_REPEAT,
	OPTION_JSON,
	OPTION_TICK,
	OPTION_SLOTS,
	OPTION_WHEEL,
	OPTION_CLOCK,
	OPTION_SPIN,
	OPTION_AT,
	OPTION_LOOP,
	OPTION_REAL,
	OPTION_ENGINE,
	OPTION_ALLOW_MISSING,
	OPTION_PENDING,
	OPTION_HOLD,
	OPTION_INTERVAL,
	OPTION_FRAMES,
	OPTION_DURABLE,
	OPTION_OUTPUT,
};

/* Indexed by enum tw_wheel. */
const char *const options_wheel_names[OPTIONS_WHEELS] = {"hashed", "hierarchical"};
/* Indexed by enum tw_clock_type. The last one is OPTIONS_CLOCK_AUTO. */
const char *const options_clock_names[OPTIONS_CLOCKS] = {"monotonic", "boottime", "coarse", "tsc",
							 "auto"};

static const struct option long_options[] = {
	{"producers", required_argument, NULL, OPTION_PRODUCERS},
	{"ops", required_argument, NULL, OPTION_OPS},
	{"repeat", required_argument, NULL, OPTION_REPEAT},
	{"json", required_argument, NULL, OPTION_JSON},
	{"tick", required_argument, NULL, OPTION_TICK},
	{"slots", required_argument, NULL, OPTION_SLOTS},
	{"wheel", required_argument, NULL, OPTION_WHEEL},
	{"clock", required_argument, NULL, OPTION_CLOCK},
	{"spin", required_argument, NULL, OPTION_SPIN},
	{"at", no_argument, NULL, OPTION_AT},
	{"loop", no_argument, NULL, OPTION_LOOP},
	{"real", no_argument, NULL, OPTION_REAL},
	{"engine", required_argument, NULL, OPTION_ENGINE},
	{"allow-missing", no_argument, NULL, OPTION_ALLOW_MISSING},
	{"pending", required_argument, NULL, OPTION_PENDING},
	{"output", required_argument, NULL, OPTION_OUTPUT},
	{"hold", required_argument, NULL, OPTION_HOLD},
	{"interval", required_argument, NULL, OPTION_INTERVAL},
	{"frames", required_argument, NULL, OPTION_FRAMES},
	{"durable", required_argument, NULL, OPTION_DURABLE},
	{"help", no_argument, NULL, 'h'},
	{"version", no_argument, NULL, 'V'},
	{NULL, 0, NULL, 0},
};

void cli_usage(FILE *file)
{
	fputs("usage: tickwheel-perf [OPTION...]                  the tour: floor and all "
	      "workloads\n"
	      "       tickwheel-perf list                         the workloads\n"
	      "       tickwheel-perf run WORKLOAD... [OPTION...]\n"
	      "       tickwheel-perf compare [WORKLOAD...]        the engines side by side\n"
	      "       tickwheel-perf time                         both wheels, small ticks, "
	      "loops: 10 minutes\n"
	      "       tickwheel-perf floor                        what the machine's parts cost\n"
	      "       tickwheel-perf queue                        the ingress queue and its rival\n"
	      "       tickwheel-perf scale [PART...]              curves, and shapes that are "
	      "meant "
	      "to hurt\n"
	      "       tickwheel-perf plot RESULT.json...          pictures (SVG) of what --json "
	      "has kept\n"
	      "       tickwheel-perf top                          an engine under load, live\n"
	      "       tickwheel-perf durable [OPTION...]          durable timers beside other "
	      "keepers; --help\n"
	      "       tickwheel-perf replay FILE [--real]         recorded operations, plain or "
	      ".zst\n"
	      "\n"
	      "  --producers N   threads that schedule and cancel (1)\n"
	      "  --ops N         operations, all producers together; top: a second (100000)\n"
	      "  --repeat N      repeats, each in a process of its own; times are medians\n"
	      "  --json FILE     results also as JSON, one object per line\n"
	      "  --tick NS       the engine's tick in nanoseconds (1000000)\n"
	      "  --slots N       slots of the hashed wheel (4096)\n"
	      "  --wheel NAME    hashed or hierarchical (the library's default)\n"
	      "  --clock NAME    auto, monotonic, boottime, coarse or tsc (auto)\n"
	      "  --spin NS       the worker spins for so long before a deadline (0)\n"
	      "  --at            give the time with each schedule, read every 64th\n"
	      "  --loop          no worker thread: the one producer owns the loop (not for\n"
	      "                  fire, light, idle)\n"
	      "  --pending N     scale: no point with more pending (100000000); top: live\n"
	      "                  timeouts of the producers (100000)\n"
	      "  --hold MS       top: delays are 1 ms to this; most are cancelled before (10000)\n"
	      "  --interval MS   top: between two frames (1000)\n"
	      "  --frames N      top: so many, then ends; else until q or Ctrl-C\n"
	      "  --durable FOLDER top: a set of durable timers, with a new file in this folder\n"
	      "  --output FOLDER plot: where the pictures go (the current folder)\n"
	      "  --real          replay at the recorded pace, not in virtual time\n"
	      "  --engine NAME   what to run or compare; several with commas, or again\n"
	      "  --allow-missing compare though engines are not built in\n"
	      "\n"
	      "exit code: 0 good; 1 something was lost or failed; 2 the command line or input is "
	      "wrong\n",
	      file);
}

static int number(const char *option, const char *text, uint64_t min, uint64_t max, uint64_t *value)
{
	char *end = NULL;

	errno = 0;
	*value = strtoull(text, &end, 10);
	if (isdigit((unsigned char)text[0]) && *end == '\0' && errno == 0 && *value >= min &&
	    *value <= max)
		return 0;
	fprintf(stderr,
		"tickwheel-perf: --%s: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64
		"\n",
		option, text, min, max);
	return -1;
}

static int number_small(const char *option, unsigned max, unsigned *ret_value)
{
	uint64_t value;

	if (number(option, optarg, 1, max, &value))
		return -1;
	*ret_value = (unsigned)value;
	return 0;
}

/*
 * Looks the option's argument up in `names`, and stores the index of the name that it has found.
 * Returns 0, or -1 after a message.
 */
static int take_name(const char *option, const char *const *names, uint32_t count,
		     uint32_t *ret_value)
{
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(optarg, names[i]) == 0) {
			*ret_value = i;
			return 0;
		}
	fprintf(stderr, "tickwheel-perf: --%s: \"%s\" is not one of", option, optarg);
	for (uint32_t i = 0; i < count; i++)
		fprintf(stderr, " %s", names[i]);
	fputc('\n', stderr);
	return -1;
}

static int take_engine(const char *name, struct options *options)
{
	int place = peer_find(name);

	if (place >= 0) {
		options->engines |= UINT64_C(1) << place;
		return 0;
	}
	fprintf(stderr, "tickwheel-perf: --engine: \"%s\" %s; tickwheel-perf list names them\n",
		name, peer_known(name) ? "is not built in" : "is no engine");
	return -1;
}

/* Parses the option --engine: one name, or several separated by commas. */
static int take_engines(struct options *options)
{
	char *words = strdup(optarg);
	char *rest = words;
	char *name;
	int error = words ? 0 : -1;

	while (!error && (name = strsep(&rest, ",")))
		error = take_engine(name, options);
	free(words);
	return error;
}

static int take_option(int code, struct options *options)
{
	switch (code) {
	case OPTION_PRODUCERS:
		return number_small("producers", PRODUCERS_MAX, &options->producers);
	case OPTION_REPEAT:
		return number_small("repeat", REPEAT_MAX, &options->repeat);
	case OPTION_SLOTS:
		return number_small("slots", SLOTS_MAX, &options->slots);
	case OPTION_OPS:
		return number("ops", optarg, 1, OPS_MAX, &options->ops);
	case OPTION_TICK:
		return number("tick", optarg, TICK_MIN_NS, TICK_MAX_NS, &options->tick_ns);
	case OPTION_WHEEL:
		return take_name("wheel", options_wheel_names, OPTIONS_WHEELS, &options->wheel);
	case OPTION_CLOCK:
		return take_name("clock", options_clock_names, OPTIONS_CLOCKS, &options->clock);
	case OPTION_SPIN:
		return number("spin", optarg, 1, SPIN_MAX_NS, &options->spin_ns);
	case OPTION_JSON:
		options->json_path = optarg;
		return 0;
	case OPTION_PENDING:
		return number("pending", optarg, 1, OPS_MAX, &options->pending);
	case OPTION_OUTPUT:
		options->output_path = optarg;
		return 0;
	case OPTION_HOLD:
		return number_small("hold", HOLD_MAX_MS, &options->hold_ms);
	case OPTION_INTERVAL:
		return number_small("interval", INTERVAL_MAX_MS, &options->interval_ms);
	case OPTION_FRAMES:
		return number_small("frames", FRAMES_MAX, &options->frames);
	case OPTION_DURABLE:
		options->durable_path = optarg;
		return 0;
	case OPTION_AT:
		options->at = true;
		return 0;
	case OPTION_LOOP:
		options->loop = true;
		return 0;
	case OPTION_REAL:
		options->real = true;
		return 0;
	case OPTION_ENGINE:
		return take_engines(options);
	case OPTION_ALLOW_MISSING:
		options->allow_missing = true;
		return 0;
	case 'h':
		options->command = COMMAND_HELP;
		return 0;
	case 'V':
		options->command = COMMAND_VERSION;
		return 0;
	default:
		/* getopt_long has already printed the error. */
		return -1;
	}
}

static int take_command(const char *word, struct options *options)
{
	static const struct {
		const char *word;
		enum command command;
	} commands[] = {
		{"list", COMMAND_LIST},       {"run", COMMAND_RUN},     {"time", COMMAND_TIME},
		{"floor", COMMAND_FLOOR},     {"queue", COMMAND_QUEUE}, {"replay", COMMAND_REPLAY},
		{"compare", COMMAND_COMPARE}, {"scale", COMMAND_SCALE}, {"top", COMMAND_TOP},
		{"plot", COMMAND_PLOT},
	};

	for (unsigned i = 0; i < sizeof(commands) / sizeof(*commands); i++)
		if (strcmp(word, commands[i].word) == 0) {
			options->command = commands[i].command;
			return 0;
		}
	fprintf(stderr, "tickwheel-perf: unknown command \"%s\"\n", word);
	return -1;
}

static int complain(const char *message)
{
	fprintf(stderr, "tickwheel-perf: %s\n", message);
	return -1;
}

static int check_workloads(const struct options *options)
{
	for (int i = 0; i < options->operand_count; i++) {
		const struct workload *workload = workloads;

		while (workload->name && !workload_matches(workload, options->operands[i]))
			workload++;
		if (workload->name && options->loop && !workload->loop_able)
			return complain("--loop is for workloads in which nothing fires");
		if (!workload->name) {
			fprintf(stderr,
				"tickwheel-perf: unknown workload \"%s\"; tickwheel-perf list "
				"names "
				"them\n",
				options->operands[i]);
			return -1;
		}
	}
	return 0;
}

static bool knows_any(const struct peer *peer, const char *operand)
{
	for (const struct workload *workload = workloads; workload->name; workload++)
		if (workload_matches(workload, operand) && peer_knows(peer, workload))
			return true;
	return false;
}

static bool knows_any_of(const struct peer *peer, const struct options *options)
{
	for (int i = 0; i < options->operand_count; i++)
		if (knows_any(peer, options->operands[i]))
			return true;
	return options->operand_count == 0;
}

/*
 * Rejects an engine that can run none of the chosen workloads. Otherwise the comparison would leave
 * the engine out without a message.
 */
static int check_engines(const struct options *options)
{
	for (unsigned i = 0; i < peer_count(); i++) {
		if (!(options->engines & (UINT64_C(1) << i)) || knows_any_of(peer_at(i), options))
			continue;
		fprintf(stderr, "tickwheel-perf: %s knows none of these workloads\n",
			peer_at(i)->name);
		return -1;
	}
	return 0;
}

static int check_run(const struct options *options)
{
	return check_workloads(options) || check_engines(options) ? -1 : 0;
}

static int check_contests(const struct options *options)
{
	for (int i = 0; i < options->operand_count; i++)
		if (!compare_has(options->operands[i])) {
			fprintf(stderr, "tickwheel-perf: compare does not know \"%s\"\n",
				options->operands[i]);
			return -1;
		}
	return 0;
}

static int check_top(const struct options *options)
{
	bool asked = options->hold_ms || options->interval_ms || options->frames ||
		     options->durable_path;

	if (options->command != COMMAND_TOP)
		return asked ? complain("--hold, --interval, --frames and --durable belong to top")
			     : 0;
#ifndef PERF_HAVE_DURABLE
	if (options->durable_path)
		return complain("--durable: this program was built without durable timers");
#endif
	if (options->repeat || options->json_path || options->at)
		return complain("--repeat, --json and --at are not for top");
	return 0;
}

static int check_operands(const struct options *options)
{
	if (options->real && options->command != COMMAND_REPLAY)
		return complain("--real belongs to replay");
	if (options->pending && options->command != COMMAND_SCALE &&
	    options->command != COMMAND_TOP)
		return complain("--pending belongs to scale and top");
	if (check_top(options))
		return -1;
	if (options->output_path && options->command != COMMAND_PLOT)
		return complain("--output belongs to plot");
	if (options->json_path && options->command == COMMAND_PLOT)
		return complain("plot measures nothing: name its files without --json");
	if (options->loop && options->command != COMMAND_RUN)
		return complain("--loop belongs to run");
	if (options->engines && options->command != COMMAND_RUN &&
	    options->command != COMMAND_COMPARE)
		return complain("--engine belongs to run and compare");
	if (options->allow_missing && options->command != COMMAND_COMPARE)
		return complain("--allow-missing belongs to compare");
	if (options->at && options->command == COMMAND_COMPARE)
		return complain("compare has --at as an engine, tickwheel-at");
	if (options->loop && options->engines)
		return complain("--loop is not for --engine: loop-* are");
	if (options->loop && options->producers > 1)
		return complain("--loop has one producer");
	switch (options->command) {
	case COMMAND_RUN:
		if (options->operand_count == 0)
			return complain("run: name a workload; tickwheel-perf list shows them");
		return check_run(options);
	case COMMAND_COMPARE:
		return check_run(options) || check_contests(options) ? -1 : 0;
	case COMMAND_SCALE:
		return scale_check(options);
	case COMMAND_PLOT:
		return options->operand_count ? 0
					      : complain("plot: name the files that --json wrote");
	case COMMAND_REPLAY:
		return options->operand_count == 1 ? 0 : complain("replay: name one trace file");
	default:
		return options->operand_count == 0 ? 0
						   : complain("more words than the command takes");
	}
}

static int check(int argc, char **argv, struct options *options)
{
	if (options->command == COMMAND_HELP || options->command == COMMAND_VERSION)
		return 0;
	if (optind < argc && take_command(argv[optind++], options))
		return -1;
	options->operands = argv + optind;
	options->operand_count = argc - optind;
	return check_operands(options);
}

static uint32_t wheel_default(void)
{
	struct tw_options options;

	(void)tw_options_init(&options, sizeof(options));
	return options.wheel;
}

int cli_parse(int argc, char **argv, struct options *ret_options)
{
	int code;

	*ret_options = (struct options){
		.command = COMMAND_TOUR,
		.wheel = wheel_default(),
		.clock = OPTIONS_CLOCK_AUTO,
	};
	while ((code = getopt_long(argc, argv, "hV", long_options, NULL)) != -1)
		if (take_option(code, ret_options))
			return complain("tickwheel-perf --help shows how to call it");
	if (check(argc, argv, ret_options))
		return complain("tickwheel-perf --help shows how to call it");
	return 0;
}
