/* SPDX-License-Identifier: MIT */
/*
 * Workloads of tickwheel that are compared with each other. Their repeats alternate, so that other
 * load on the machine affects all of them.
 */
#include "run/runner.h"

#include "report/report.h"

#include <math.h>
#include <stdlib.h>

enum { TURNS_MOST = 16 };

/* A workload, and the samples of its repeats. */
struct turn {
	const struct workload *workload;
	struct options options;
	struct sample *samples;
};

static int turn_repeat(const struct peer *ours, struct turn *turn, unsigned number)
{
	const struct peer_task task = {.workload = turn->workload, .options = &turn->options};

	if (number >= turn->options.repeat)
		return EXIT_GOOD;
	report_progress(turn->workload->name, number + 1, turn->options.repeat);
	return runner_repeat(ours, &task, &turn->samples[number]);
}

static int turns_run(const struct peer *ours, struct turn *turns, unsigned count)
{
	int code = EXIT_GOOD;

	for (unsigned repeat = 0; repeat < turns[0].options.repeat && code == EXIT_GOOD; repeat++)
		for (unsigned i = 0; i < count && code == EXIT_GOOD; i++)
			code = turn_repeat(ours, &turns[i], repeat);
	return code;
}

static int turn_report(const struct peer *ours, const struct turn *turn)
{
	const struct peer_task task = {.workload = turn->workload, .options = &turn->options};
	struct row row;

	runner_row_begin(ours, &task, &row);
	row_fill(&row, turn->samples, turn->options.repeat, NAN);
	report_row(&row);
	return runner_judge(&row);
}

static int turns_report(const struct peer *ours, const struct turn *turns, unsigned count)
{
	int code = EXIT_GOOD;

	for (unsigned i = 0; i < count && code == EXIT_GOOD; i++)
		code = turn_report(ours, &turns[i]);
	return code;
}

int runner_turns(const struct peer *ours, const char *operand, const struct options *options)
{
	struct turn turns[TURNS_MOST];
	unsigned count = 0;
	int code = EXIT_GOOD;

	for (const struct workload *workload = workloads; workload->name; workload++) {
		struct turn *turn = &turns[count];

		if (!workload->in_turns || !workload_matches(workload, operand) ||
		    count == TURNS_MOST)
			continue;
		*turn = (struct turn){.workload = workload, .options = *options};
		runner_complete(&turn->options, workload);
		turn->samples = calloc(turn->options.repeat, sizeof(*turn->samples));
		if (turn->samples == NULL)
			code = EXIT_LOST;
		count++;
	}
	if (code == EXIT_GOOD && count > 0)
		code = turns_run(ours, turns, count);
	if (code == EXIT_GOOD)
		code = turns_report(ours, turns, count);
	while (count > 0)
		free(turns[--count].samples);
	return code;
}
