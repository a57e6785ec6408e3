/* SPDX-License-Identifier: MIT */
/*
 * Runs recorded timer operations through an engine, in virtual or real time.
 *
 * In virtual time the replay sets the clock to every tick boundary up to an operation's time, and
 * flushes the engine at each boundary. Inside a tick only a timeout with a delay of 0 can become
 * due, so the replay also flushes after an arm with that delay. In real time the thread sleeps
 * until an operation's time, and delays count from the end of that sleep.
 *
 * An arm of a pending timer cancels the timer first. This cancel and a recorded one count only if
 * the library reports that the call has cancelled the timer. At a recorded fire the replay only
 * advances the time. The id of an arm is the arm's number in the trace.
 */
#include "replay/replay.h"

#include "harness/bench.h"
#include "harness/measure.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#define FLUSH_TIMEOUT_NS INT64_C(60000000000)

struct armed {
	struct tw_handle handle;
	/* 0: the timer is not armed. */
	uint64_t id;
};

struct replay {
	const struct options *options;
	const struct trace *trace;
	struct bench bench;
	struct account *account;
	struct armed *timers;
	uint64_t last_id;
	/* The present virtual time. */
	int64_t now_ns;
	/* In real time: the engine's time that stands for the recording's time 0. */
	int64_t epoch_ns;
};

static int step(struct replay *replay, int64_t at_ns)
{
	int error = tw_clock_set(replay->bench.clock, at_ns);

	if (!error)
		replay->now_ns = at_ns;
	return error;
}

static int go_virtual(struct replay *replay, int64_t at_ns)
{
	int64_t tick_ns = (int64_t)replay->options->tick_ns;
	int64_t boundary_ns = (replay->now_ns / tick_ns + 1) * tick_ns;
	int error = 0;

	for (; boundary_ns <= at_ns && !error; boundary_ns += tick_ns) {
		error = step(replay, boundary_ns);
		if (!error)
			error = tw_engine_flush(replay->bench.engine, FLUSH_TIMEOUT_NS);
	}
	if (!error && at_ns > replay->now_ns)
		error = step(replay, at_ns);
	return error;
}

static int go_real(struct replay *replay, int64_t at_ns)
{
	int64_t until_ns = replay->epoch_ns + at_ns;

	if (tw_engine_now(replay->bench.engine) < until_ns)
		measure_sleep_until_ns(until_ns);
	return 0;
}

static int go_to(struct replay *replay, int64_t at_ns)
{
	return replay->options->real ? go_real(replay, at_ns) : go_virtual(replay, at_ns);
}

static int disarm(struct replay *replay, struct armed *timer)
{
	int outcome = TW_CANCEL_STALE;

	if (timer->id)
		outcome = tw_cancel(timer->handle);
	if (outcome == TW_CANCEL_DONE)
		tally_add(&replay->account->cancelled, timer->id);
	timer->id = 0;
	return outcome < 0 ? outcome : 0;
}

/*
 * Flushes after an arm with delay 0 in virtual time. Otherwise the timeout might expire before or
 * after a later cancel, by chance.
 */
static int arm_run(struct replay *replay, const struct trace_op *op)
{
	if (replay->options->real || op->delay_ns > 0)
		return 0;
	return tw_engine_flush(replay->bench.engine, FLUSH_TIMEOUT_NS);
}

static int arm(struct replay *replay, const struct trace_op *op, struct armed *timer)
{
	uint64_t id = ++replay->last_id;
	int error = disarm(replay, timer);

	if (!error)
		error = tw_schedule(replay->bench.engine, op->delay_ns, &bench_kind_late,
				    id_to_arg(id), &timer->handle);
	if (error)
		return error;
	timer->id = id;
	tally_add(&replay->account->scheduled, id);
	return arm_run(replay, op);
}

static int play(struct replay *replay, const struct trace_op *op)
{
	struct armed *timer = &replay->timers[op->timer];
	int error = go_to(replay, op->at_ns);

	if (error || op->verb == TRACE_FIRE)
		return error;
	return op->verb == TRACE_ARM ? arm(replay, op, timer) : disarm(replay, timer);
}

static int play_all(struct replay *replay)
{
	int error = 0;

	replay->epoch_ns = tw_engine_now(replay->bench.engine);
	for (size_t i = 0; i < replay->trace->op_count && !error; i++)
		error = play(replay, &replay->trace->ops[i]);
	return error ? error : tw_engine_flush(replay->bench.engine, FLUSH_TIMEOUT_NS);
}

static int play_timed(struct replay *replay, struct sample *sample)
{
	double ops = (double)(replay->trace->arm_count + replay->trace->cancel_count);
	int64_t wall_ns = measure_now_ns();
	int64_t cpu_ns = measure_cpu_ns();
	int error = play_all(replay);

	wall_ns = measure_now_ns() - wall_ns;
	sample->cpu_ns_per_op = (double)(measure_cpu_ns() - cpu_ns) / ops;
	sample->ns_per_op = (double)wall_ns / ops;
	sample->wall_s = (double)wall_ns / 1e9;
	return error;
}

int replay_run(const struct options *options, const struct trace *trace, struct sample *ret_sample)
{
	struct replay replay = {.options = options, .trace = trace};
	int close_error;
	int error;

	*ret_sample = sample_empty();
	replay.account = &ret_sample->account;
	replay.timers = calloc((size_t)trace->timer_count + 1, sizeof(*replay.timers));
	if (!replay.timers)
		return -ENOMEM;
	error = bench_open(options, !options->real, &replay.bench);
	if (!error) {
		error = play_timed(&replay, ret_sample);
		close_error = bench_close(&replay.bench, ret_sample);
		error = error ? error : close_error;
	}
	free(replay.timers);
	return error;
}
