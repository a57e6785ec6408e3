/* SPDX-License-Identifier: MIT */
/*
 * Runs workloads, probes and replays, and reports them.
 */
#include "run/runner.h"

#include "harness/child.h"
#include "replay/replay.h"
#include "report/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TICK_DEFAULT_NS = 1000000 };

/* Reports an error of the library or of the system. */
static int fail(const char *what, int error)
{
	fprintf(stderr, "tickwheel-perf: %s: not measured: %s\n", what, strerror(-error));
	return EXIT_LOST;
}

int runner_judge(const struct row *row)
{
	if (row_good(row))
		return EXIT_GOOD;
	fprintf(stderr,
		"tickwheel-perf: %s: %" PRId64 " lost, %" PRIu64 " early, the sums of ids %s\n",
		row->workload, row_lost(row), row->lateness_ns.early_count,
		row_sums_agree(row) ? "agree" : "differ");
	return EXIT_LOST;
}

static int probe_body(const void *arg, void *result)
{
	const struct probe *probe = arg;

	*(double *)result = probe->run(probe);
	return 0;
}

static int probe_passes(const struct probe *probe, unsigned repeat, double *ret_ns)
{
	for (unsigned i = 0; i < repeat; i++) {
		int error = child_run(probe_body, probe, &ret_ns[i], sizeof(ret_ns[i]));

		if (error)
			return fail(probe->name, error);
		if (isnan(ret_ns[i]) && probe->run != probe_tw_clock) {
			fprintf(stderr, "tickwheel-perf: %s: the probe failed\n", probe->name);
			return EXIT_LOST;
		}
	}
	return EXIT_GOOD;
}

/*
 * Measures and reports a probe. `name` is "floor" or "queue", with which the probe's name in the
 * JSON begins, for example floor-clock.
 */
static int probe_report(const struct probe *probe, const char *name, unsigned repeat)
{
	char label[64];
	struct sample *samples = calloc(repeat, sizeof(*samples));
	struct row row = {
		.workload = label,
		.engine = "none",
		.wheel = "none",
		.producers = probe->producers,
		.repeat = repeat,
		.ops = probe->run == probe_oversleep ? PROBE_SLEEPS : PROBE_OPS,
	};
	double ns[PROBE_REPEAT];
	int code = probe_passes(probe, repeat, ns);

	snprintf(label, sizeof(label), "%s-%s", name, probe->name);
	for (unsigned i = 0; i < repeat && samples; i++) {
		samples[i] = sample_empty();
		samples[i].ns_per_op = ns[i];
	}
	if (code == EXIT_GOOD && samples && !isnan(ns[0])) {
		row_fill(&row, samples, repeat, NAN);
		report_probe(&row, probe->summary);
	}
	free(samples);
	return code;
}

int runner_probes_repeat(const struct probe *probes, const char *name, const char *title,
			 unsigned repeat)
{
	repeat = repeat < PROBE_REPEAT ? repeat : PROBE_REPEAT;
	report_probes_begin(title, repeat);
	for (; probes->name; probes++) {
		int code;

		report_progress(probes->name, 1, 1);
		code = probe_report(probes, name, repeat);
		if (code)
			return code;
	}
	return EXIT_GOOD;
}

int runner_probes(const struct probe *probes, const char *name, const char *title)
{
	return runner_probes_repeat(probes, name, title, PROBE_REPEAT);
}

double runner_clock_ns(const struct options *options)
{
	double ns[PROBE_REPEAT];

	if (probe_passes(floor_clock_probe(options->clock), PROBE_REPEAT, ns) || isnan(ns[0]))
		return NAN;
	return row_median(ns, PROBE_REPEAT);
}

/* The work of one repeat: a workload on a peer, or a replay. */
struct job {
	const struct peer *peer;
	const struct workload *workload;
	const struct trace *trace;
	struct options options;
};

static int job_body(const void *arg, void *result)
{
	const struct job *job = arg;
	const struct peer_task task = {.workload = job->workload, .options = &job->options};

	if (job->trace)
		return replay_run(&job->options, job->trace, result);
	return job->peer->run(job->peer, &task, result);
}

static int job_repeats(const struct job *job, const char *name, struct sample *ret_samples)
{
	unsigned repeat = job->options.repeat;

	for (unsigned i = 0; i < repeat; i++) {
		int error;

		report_progress(name, i + 1, repeat);
		error = child_run(job_body, job, &ret_samples[i], sizeof(ret_samples[i]));
		if (error)
			return fail(name, error);
	}
	return EXIT_GOOD;
}

/* Runs the job's repeats and reports them as the row that the caller has begun. */
static int job_report(const struct job *job, struct row *row, double clock_ns)
{
	struct sample *samples = calloc(job->options.repeat, sizeof(*samples));
	int code = EXIT_LOST;

	if (samples)
		code = job_repeats(job, row->workload, samples);
	if (code == EXIT_GOOD) {
		row_fill(row, samples, job->options.repeat, clock_ns);
		report_row(row);
		code = runner_judge(row);
	}
	free(samples);
	return code;
}

void runner_complete(struct options *options, const struct workload *workload)
{
	if (!options->producers || workload->fixed_size)
		options->producers = workload->producers ? workload->producers : 1;
	if (!options->repeat)
		options->repeat = workload->repeat;
	if (!options->tick_ns)
		options->tick_ns = workload->tick_ns ? workload->tick_ns : TICK_DEFAULT_NS;
	if (!options->ops || workload->fixed_size)
		options->ops = workload->ops;
}

int runner_repeat(const struct peer *peer, const struct peer_task *task, struct sample *ret_sample)
{
	struct job job = {.peer = peer, .workload = task->workload, .options = *task->options};
	int error = child_run(job_body, &job, ret_sample, sizeof(*ret_sample));

	return error ? fail(peer->name, error) : EXIT_GOOD;
}

void runner_row_begin(const struct peer *peer, const struct peer_task *task, struct row *ret_row)
{
	const struct options *options = task->options;

	*ret_row = (struct row){
		.workload = task->workload->name,
		.engine = peer->name,
		.wheel = "-",
		.producers = options->producers,
		.repeat = options->repeat,
		.ops = options->ops,
		.early_allowed = !peer->ours,
	};
	/* Other engines have their own clocks and ticks, so these fields stay empty. */
	if (!peer->ours)
		return;
	ret_row->wheel = options_wheel_names[options->wheel];
	ret_row->clock = options_clock_names[options->clock];
	ret_row->spin_ns = options->spin_ns;
	ret_row->tick_ns = options->tick_ns;
}

int runner_workload(const struct peer *peer, const struct workload *workload,
		    const struct options *options, double clock_ns)
{
	struct job job = {.peer = peer, .workload = workload, .options = *options};
	const struct peer_task task = {.workload = workload, .options = &job.options};
	struct row row;

	runner_complete(&job.options, workload);
	runner_row_begin(peer, &task, &row);
	return job_report(&job, &row, workload->beside_clock && peer->ours ? clock_ns : NAN);
}

static void tell_trace(const struct options *options, const struct trace *trace)
{
	printf("\n%s: %" PRIu64 " arms, %" PRIu64 " cancels, %" PRIu64
	       " fires (passed over) of %" PRIu32 " timers\n",
	       options->operands[0], trace->arm_count, trace->cancel_count, trace->fire_count,
	       trace->timer_count);
}

static void tell_outcome(const struct row *row)
{
	printf("\n%s time, tick %" PRIu64 " ns, %.2f s: %" PRIu64 " armed = %" PRIu64
	       " cancelled + %" PRIu64 " expired + %" PRIu64
	       " pending at the end (handed back), lost %" PRId64 "\n",
	       row->real ? "real" : "virtual", row->tick_ns, row->wall_s,
	       row->account.scheduled.count, row->account.cancelled.count,
	       row->account.expired.count, row->account.unexpired.count, row_lost(row));
}

static int replay_report(struct job *job)
{
	struct row row = {
		.workload = "replay",
		.trace = job->options.operands[0],
		.engine = PEER_OURS,
		.wheel = options_wheel_names[job->options.wheel],
		.clock = job->options.real ? options_clock_names[job->options.clock] : "virtual",
		.spin_ns = job->options.spin_ns,
		.producers = job->options.producers,
		.repeat = job->options.repeat,
		.tick_ns = job->options.tick_ns,
		.real = job->options.real,
		.ops = job->trace->arm_count + job->trace->cancel_count,
	};
	int code;

	tell_trace(&job->options, job->trace);
	report_rows_begin();
	code = job_report(job, &row, NAN);
	if (row.account.scheduled.count)
		tell_outcome(&row);
	return code;
}

int runner_replay(const struct options *options)
{
	struct trace trace;
	struct job job = {.trace = &trace, .options = *options};
	int code;

	if (!job.options.tick_ns)
		job.options.tick_ns = TICK_DEFAULT_NS;
	if (!job.options.repeat)
		job.options.repeat = 1;
	job.options.producers = 1;
	if (trace_load(options->operands[0], &trace))
		return EXIT_USAGE;
	code = replay_report(&job);
	trace_free(&trace);
	return code;
}
