/* SPDX-License-Identifier: MIT */
/*
 * Compares engines in contests.
 *
 * A contest is a workload with a number of producers. Its engines take turns, so that other load on
 * the machine affects all of them. All engines must make the same operations. To check that, the
 * program compares how many timeouts were scheduled and how many expired, and the sums of their
 * ids.
 */
#include "run/compare.h"

#include "harness/probe.h"
#include "report/report.h"
#include "run/runner.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { REPEAT_DEFAULT = 5 };

struct contest {
	const char *workload;
	unsigned producers;
	uint64_t ops;
	/* The tick of tickwheel's engines. 0: the default. */
	uint64_t tick_ns;
};

/*
 * All engines of a contest do the same number of operations. With these numbers, all contests with
 * all engines take a quarter of an hour on two processors, although an operation of the slowest
 * engine takes 6 us. Nearly half of that time is the start and warm-up of the programs.
 */
static const struct contest contests[] = {
	{.workload = "schedule-cancel", .producers = 1, .ops = 3000000},
	{.workload = "schedule-cancel", .producers = 2, .ops = 3000000},
	{.workload = "live-ring", .producers = 1, .ops = 2000000},
	{.workload = "live-ring", .producers = 2, .ops = 2000000},
	{.workload = "fire", .producers = 1, .ops = 2000000},
	{.workload = "light", .producers = 1, .ops = 1000, .tick_ns = 10000},
	{.workload = "loop-1k", .producers = 1, .ops = 5000000},
	{.workload = "loop-10k", .producers = 1, .ops = 5000000},
	{.workload = "loop-100k", .producers = 1, .ops = 5000000},
	{.workload = "loop-1m", .producers = 1, .ops = 2000000},
	{.workload = "loop-10m", .producers = 1, .ops = 2000000},
};

struct entrant {
	const struct peer *peer;
	struct sample *samples;
	struct row *row;
};

struct round {
	struct peer_task task;
	struct entrant entrants[PEERS_MAX];
	unsigned count;
};

static const struct workload *workload_named(const char *name)
{
	const struct workload *workload = workloads;

	while (strcmp(workload->name, name) != 0)
		workload++;
	return workload;
}

static struct options contest_options(const struct contest *contest, const struct options *asked)
{
	struct options options = *asked;

	options.producers = asked->producers ? asked->producers : contest->producers;
	options.repeat = asked->repeat ? asked->repeat : REPEAT_DEFAULT;
	options.ops = asked->ops ? asked->ops : contest->ops;
	options.tick_ns = asked->tick_ns ? asked->tick_ns : contest->tick_ns;
	return options;
}

static void round_enter(struct round *round, const struct peer *peer)
{
	struct entrant *entrant = &round->entrants[round->count++];

	entrant->peer = peer;
	entrant->samples = calloc(round->task.options->repeat, sizeof(*entrant->samples));
	entrant->row = calloc(1, sizeof(*entrant->row));
	if (!entrant->samples || !entrant->row)
		abort();
}

/*
 * Returns whether the peer takes part: the user has named it, or has named none and it takes part
 * by default.
 */
static bool round_wants(const struct options *options, unsigned place)
{
	if (!options->engines)
		return !peer_at(place)->by_name;
	return options->engines & (UINT64_C(1) << place);
}

static void round_open(struct round *round, const struct workload *workload,
		       const struct options *options)
{
	*round = (struct round){.task = {.workload = workload, .options = options}};
	for (unsigned i = 0; i < peer_count(); i++)
		if (round_wants(options, i) && peer_knows(peer_at(i), workload))
			round_enter(round, peer_at(i));
}

static void round_close(struct round *round)
{
	for (unsigned i = 0; i < round->count; i++) {
		free(round->entrants[i].samples);
		free(round->entrants[i].row);
	}
}

static int round_measure(struct round *round)
{
	unsigned repeat = round->task.options->repeat;

	for (unsigned r = 0; r < repeat; r++)
		for (unsigned i = 0; i < round->count; i++) {
			struct entrant *entrant = &round->entrants[i];

			report_progress(entrant->peer->name, r + 1, repeat);
			if (runner_repeat(entrant->peer, &round->task, &entrant->samples[r]))
				return EXIT_LOST;
		}
	return EXIT_GOOD;
}

static const struct row *row_of_ours(const struct round *round)
{
	for (unsigned i = 0; i < round->count; i++)
		if (strcmp(round->entrants[i].peer->name, PEER_OURS) == 0)
			return round->entrants[i].row;
	return NULL;
}

static void round_fill(struct round *round, double clock_ns)
{
	const struct workload *workload = round->task.workload;
	const struct row *ours;

	for (unsigned i = 0; i < round->count; i++) {
		struct entrant *entrant = &round->entrants[i];
		bool beside = workload->beside_clock && entrant->peer->ours;

		runner_row_begin(entrant->peer, &round->task, entrant->row);
		row_fill(entrant->row, entrant->samples, round->task.options->repeat,
			 beside ? clock_ns : NAN);
	}
	ours = row_of_ours(round);
	for (unsigned i = 0; i < round->count; i++) {
		struct row *row = round->entrants[i].row;

		row->compared = true;
		row->ratio = ours ? row->ns_per_op / ours->ns_per_op : NAN;
		row->cpu_ratio = ours ? row->cpu_ns_per_op / ours->cpu_ns_per_op : NAN;
	}
}

/* Checks each repeat alone, so that no repeat can hide the error of another. */
static int entrant_judge(const struct round *round, const struct entrant *entrant)
{
	const struct account *first = &round->entrants[0].samples[0].account;
	int code = EXIT_GOOD;

	for (unsigned r = 0; r < round->task.options->repeat && code == EXIT_GOOD; r++)
		if (!account_whole(&entrant->samples[r].account) ||
		    !account_same(first, &entrant->samples[r].account))
			code = EXIT_LOST;
	if (code != EXIT_GOOD)
		fprintf(stderr,
			"tickwheel-perf: %s: %s lost timeouts, or did other operations than %s\n",
			round->task.workload->name, entrant->peer->name,
			round->entrants[0].peer->name);
	return code == EXIT_GOOD ? runner_judge(entrant->row) : code;
}

static int round_report(const struct round *round)
{
	int code = EXIT_GOOD;

	report_contest_begin(round->entrants[0].row, round->task.workload->summary);
	for (unsigned i = 0; i < round->count; i++) {
		int verdict = entrant_judge(round, &round->entrants[i]);

		report_contest_row(round->entrants[i].row);
		code = verdict > code ? verdict : code;
	}
	return code;
}

/*
 * Measures how long the system oversleeps now, while nothing else runs. The lateness of `light` is
 * compared with this.
 */
static int floor_run(const struct workload *workload, const struct options *options)
{
	if (workload->kind != WORKLOAD_KIND_LIGHT)
		return EXIT_GOOD;
	return runner_probes_repeat(floor_sleep_probes, "floor", "Beneath all lateness",
				    options->repeat);
}

static int contest_run(const struct contest *contest, const struct options *asked, double clock_ns)
{
	const struct workload *workload = workload_named(contest->workload);
	struct options options = contest_options(contest, asked);
	struct round round;
	int code;

	runner_complete(&options, workload);
	code = floor_run(workload, &options);
	if (code != EXIT_GOOD)
		return code;
	round_open(&round, workload, &options);
	code = round_measure(&round);
	if (code == EXIT_GOOD && round.count > 0) {
		round_fill(&round, clock_ns);
		code = round_report(&round);
	}
	round_close(&round);
	return code;
}

static bool asked_for(const struct contest *contest, const struct options *options)
{
	const struct workload *workload = workload_named(contest->workload);

	for (int i = 0; i < options->operand_count; i++)
		if (workload_matches(workload, options->operands[i]))
			return true;
	return options->operand_count == 0;
}

/*
 * Returns whether an equal contest was run before. If the user sets the number of producers, a
 * contest for two producers is equal to that for one.
 */
static bool is_repeated(const struct contest *contest, const struct options *options)
{
	return options->producers && contest->producers != 1;
}

bool compare_has(const char *operand)
{
	for (size_t i = 0; i < sizeof(contests) / sizeof(*contests); i++)
		if (workload_matches(workload_named(contests[i].workload), operand))
			return true;
	return false;
}

static bool peers_suffice(const struct options *options)
{
	const char *missing = peers_missing();

	if (options->allow_missing || !*missing)
		return true;
	fprintf(stderr,
		"tickwheel-perf: compare: not built in: %s; perf/README.md tells how to install "
		"them, --allow-missing compares the others\n",
		missing);
	return false;
}

int compare_run(const struct options *options)
{
	double clock_ns;
	int code = EXIT_GOOD;

	if (!peers_suffice(options))
		return EXIT_LOST;
	clock_ns = runner_clock_ns(options);
	report_title();
	code = runner_probes_repeat(floor_part_probes, "floor", "The floor",
				    options->repeat ? options->repeat : PROBE_REPEAT);
	for (size_t i = 0; i < sizeof(contests) / sizeof(*contests); i++) {
		int contest_code;

		if (!asked_for(&contests[i], options) || is_repeated(&contests[i], options))
			continue;
		contest_code = contest_run(&contests[i], options, clock_ns);
		code = contest_code > code ? contest_code : code;
	}
	return code;
}
