/* SPDX-License-Identifier: MIT */
/* Measures curves. The points of a part take turns. */
#include "scale/scale.h"

#include "harness/child.h"
#include "harness/measure.h"
#include "report/report.h"
#include "run/runner.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TICK_NS UINT64_C(1000000)
#define PENDING_MAX UINT64_C(100000000)

static bool part_asked(const struct scale_part *part, const struct options *options)
{
	for (int i = 0; i < options->operand_count; i++)
		if (strcmp(options->operands[i], part->name) == 0)
			return true;
	return options->operand_count == 0;
}

static bool part_known(const char *operand)
{
	const struct scale_part *part = scale_parts;

	while (part->name && strcmp(part->name, operand) != 0)
		part++;
	return part->name != NULL;
}

int scale_check(const struct options *options)
{
	for (int i = 0; i < options->operand_count; i++) {
		if (part_known(options->operands[i]))
			continue;
		fprintf(stderr, "tickwheel-perf: scale has no part \"%s\"; it has",
			options->operands[i]);
		for (const struct scale_part *part = scale_parts; part->name; part++)
			fprintf(stderr, " %s", part->name);
		fputc('\n', stderr);
		return -1;
	}
	return 0;
}

struct scale_point *scale_add(struct scale_set *set, const char *name, uint64_t at, uint64_t ops,
			      unsigned repeat)
{
	struct scale_point *point = &set->point[set->count++];
	const struct options *asked = set->asked;

	if (set->count > SCALE_POINTS_MAX)
		abort();
	*point = (struct scale_point){.at = at, .options = *asked};
	snprintf(point->name, sizeof(point->name), "scale-%s-%s", set->part, name);
	point->options.ops = asked->ops ? asked->ops : ops;
	point->options.repeat = asked->repeat ? asked->repeat : repeat;
	point->options.tick_ns = asked->tick_ns ? asked->tick_ns : TICK_NS;
	point->options.producers = asked->producers ? asked->producers : 1;
	return point;
}

uint64_t scale_pending(const struct scale_set *set, uint64_t count)
{
	uint64_t most = set->asked->pending ? set->asked->pending : PENDING_MAX;

	return count < most ? count : most;
}

const char *scale_size(uint64_t value, char buffer[SCALE_NAME_BYTES])
{
	if (value && value % 1000000 == 0)
		snprintf(buffer, SCALE_NAME_BYTES, "%" PRIu64 "m", value / 1000000);
	else if (value && value % 1000 == 0)
		snprintf(buffer, SCALE_NAME_BYTES, "%" PRIu64 "k", value / 1000);
	else
		snprintf(buffer, SCALE_NAME_BYTES, "%" PRIu64, value);
	return buffer;
}

static int point_body(const void *arg, void *result)
{
	const struct scale_point *point = arg;

	return point->run(&point->options, point->parameter, result);
}

static int point_repeat(struct scale_point *point, unsigned repeat)
{
	struct sample *sample = &point->samples[repeat];
	int error;

	if (repeat >= point->options.repeat)
		return EXIT_GOOD;
	report_progress(point->name, repeat + 1, point->options.repeat);
	error = child_run(point_body, point, sample, sizeof(*sample));
	if (!error)
		return EXIT_GOOD;
	fprintf(stderr, "tickwheel-perf: %s: not measured: %s\n", point->name, strerror(-error));
	return EXIT_LOST;
}

static int point_judge(struct scale_point *point, const struct scale_set *set)
{
	const struct options *options = &point->options;

	point->row = (struct row){
		.workload = point->name,
		.engine = "tickwheel",
		.wheel = options_wheel_names[options->wheel],
		.clock = point->run == scale_shape_run ? "virtual"
						       : options_clock_names[options->clock],
		.spin_ns = options->spin_ns,
		.tick_ns = options->tick_ns,
		.producers = options->producers,
		.repeat = options->repeat,
		.ops = options->ops,
		.part = set->part,
		.part_at = point->at,
	};
	row_fill(&point->row, point->samples, options->repeat, NAN);
	if (row_good(&point->row))
		return EXIT_GOOD;
	fprintf(stderr, "tickwheel-perf: %s: %" PRId64 " lost, %" PRIu64 " early\n", point->name,
		row_lost(&point->row), point->row.lateness_ns.early_count);
	return EXIT_LOST;
}

static unsigned most_repeats(const struct scale_set *set)
{
	unsigned most = 0;

	for (unsigned i = 0; i < set->count; i++)
		if (set->point[i].options.repeat > most)
			most = set->point[i].options.repeat;
	return most;
}

/* Measures all points once, then all points again, and so on. */
static int set_measure(struct scale_set *set)
{
	unsigned repeats = most_repeats(set);
	int code = EXIT_GOOD;

	for (unsigned i = 0; i < set->count; i++)
		set->point[i].samples = calloc(repeats, sizeof(struct sample));
	for (unsigned repeat = 0; repeat < repeats; repeat++)
		for (unsigned i = 0; i < set->count && code == EXIT_GOOD; i++)
			code = set->point[i].samples ? point_repeat(&set->point[i], repeat)
						     : EXIT_LOST;
	return code;
}

static int set_judge(struct scale_set *set)
{
	int code = EXIT_GOOD;

	for (unsigned i = 0; i < set->count; i++)
		if (point_judge(&set->point[i], set) != EXIT_GOOD)
			code = EXIT_LOST;
	return code;
}

static void set_tell(struct scale_set *set, const struct scale_part *part)
{
	report_curve_begin(part->name, part->summary);
	part->tell(set);
	fflush(stdout);
	for (unsigned i = 0; i < set->count; i++)
		report_json(&set->point[i].row);
}

static int part_run(const struct scale_part *part, const struct options *options)
{
	struct scale_set set = {.asked = options, .part = part->name};
	int code;

	code = part->fill(&set);
	if (code == EXIT_GOOD)
		code = set_measure(&set);
	if (code == EXIT_GOOD) {
		code = set_judge(&set);
		set_tell(&set, part);
	}
	for (unsigned i = 0; i < set.count; i++)
		free(set.point[i].samples);
	return code;
}

int scale_run(const struct options *options)
{
	int code = EXIT_GOOD;

	report_title();
	for (const struct scale_part *part = scale_parts; part->name; part++) {
		int more = part_asked(part, options) ? part_run(part, options) : EXIT_GOOD;

		if (more > code)
			code = more;
	}
	return code;
}
