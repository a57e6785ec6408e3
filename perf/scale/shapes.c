/* SPDX-License-Identifier: MIT */
/*
 * Unfavourable shapes, for one operation at a time, in virtual time. Many timeouts are scheduled,
 * and then all are cancelled or all expire. The CPU time is that of all threads, until the worker
 * has caught up. Each operation runs once before it is measured, so that all memory is allocated.
 *
 * In the shape "mean", deadlines are uniformly distributed over an hour, and cancels come in the
 * order of the schedules. Each other shape differs from "mean" only in the property that its name
 * states.
 */
#include "harness/bench.h"
#include "harness/measure.h"
#include "harness/random.h"
#include "scale/scale.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_TIMEOUT_NS INT64_C(60000000000)

enum {
	FROM_TICKS = 10000,
	SPAN_TICKS = 3600000,
	/*
	 * A period of both wheels: the number of slots of the hashed wheel, and the ticks of one
	 * slot of the third level of the hierarchical wheel.
	 */
	PERIOD_TICKS = 4096,
	/*
	 * The delays are 2^k periods, for k below POWERS. With a tick of 1 ms that is up to 35
	 * years.
	 */
	POWERS = 28,
	/* Virtual time advances in so many steps until all timeouts have expired. */
	STEPS = 256,
};

const char *const scale_op_names[SCALE_OPS] = {"schedule", "cancel", "expire"};
const char *const scale_shape_names[SCALE_SHAPES] = {
	"mean", "one-slot", "one-instant", "periods-2^k", "reverse", "random",
};

struct stage {
	const struct options *options;
	enum scale_shape shape;
	enum scale_op op;
	struct bench bench;
	struct random random;
	struct tw_handle *handle;
	uint32_t *order;
	uint64_t count;
	uint64_t next_id;
	int64_t now_ns;
	int64_t last_ns;
	int64_t wall_ns;
	int64_t cpu_ns;
	struct tally scheduled;
	struct tally cancelled;
};

/*
 * Returns a delay such that all timeouts lie in one wide slot of a level. In the hashed wheel,
 * which has no levels, they lie in one slot of its ring.
 */
static uint64_t one_slot_ticks(const struct stage *stage, uint64_t i)
{
	if (stage->options->wheel == TW_WHEEL_HASHED)
		return PERIOD_TICKS * (4 + i % 64);
	return 4 * PERIOD_TICKS + i % PERIOD_TICKS;
}

static uint64_t delay_ticks(struct stage *stage, uint64_t i)
{
	switch (stage->shape) {
	case SCALE_ONE_SLOT:
		return one_slot_ticks(stage, i);
	case SCALE_ONE_INSTANT:
		return FROM_TICKS + SPAN_TICKS / 2;
	case SCALE_PERIODS:
		return (uint64_t)PERIOD_TICKS << i % POWERS;
	default:
		return FROM_TICKS + random_below(&stage->random, SPAN_TICKS);
	}
}

static int schedule_all(struct stage *stage)
{
	int64_t tick_ns = (int64_t)stage->options->tick_ns;
	int error = 0;

	for (uint64_t i = 0; i < stage->count && !error; i++) {
		int64_t deadline_ns = stage->now_ns + (int64_t)delay_ticks(stage, i) * tick_ns;
		uint64_t id = ++stage->next_id;

		error = tw_schedule_at(stage->bench.engine, deadline_ns, &bench_kind, id_to_arg(id),
				       &stage->handle[i]);
		if (!error)
			tally_add(&stage->scheduled, id);
		if (deadline_ns > stage->last_ns)
			stage->last_ns = deadline_ns;
	}
	return error ? error : tw_engine_flush(stage->bench.engine, FLUSH_TIMEOUT_NS);
}

static int cancel_all(struct stage *stage)
{
	uint64_t first_id = stage->next_id - stage->count + 1;

	for (uint64_t i = 0; i < stage->count; i++) {
		uint32_t place = stage->order[i];

		if (tw_cancel(stage->handle[place]) == TW_CANCEL_DONE)
			tally_add(&stage->cancelled, first_id + place);
	}
	return tw_engine_flush(stage->bench.engine, FLUSH_TIMEOUT_NS);
}

static int expire_all(struct stage *stage)
{
	int64_t from_ns = stage->now_ns;
	int64_t step_ns = (stage->last_ns + (int64_t)stage->options->tick_ns - from_ns) / STEPS + 1;
	int error = 0;

	for (int step = 1; step <= STEPS && !error; step++) {
		stage->now_ns = from_ns + step * step_ns;
		error = tw_clock_set(stage->bench.clock, stage->now_ns);
		if (!error)
			error = tw_engine_flush(stage->bench.engine, FLUSH_TIMEOUT_NS);
	}
	return error;
}

static int timed(struct stage *stage, int (*operation)(struct stage *stage), enum scale_op op)
{
	int64_t wall_ns = measure_now_ns();
	int64_t cpu_ns = measure_cpu_ns();
	int error = operation(stage);

	if (stage->op == op) {
		stage->cpu_ns = measure_cpu_ns() - cpu_ns;
		stage->wall_ns = measure_now_ns() - wall_ns;
	}
	return error;
}

/* Runs the operations twice. The times of the second round replace those of the first. */
static int stage_run(struct stage *stage)
{
	int error = 0;

	for (int round = 0; round < 2 && !error; round++) {
		error = timed(stage, schedule_all, SCALE_SCHEDULE);
		if (!error && stage->op == SCALE_EXPIRE)
			error = timed(stage, expire_all, SCALE_EXPIRE);
		else if (!error)
			error = timed(stage, cancel_all, SCALE_CANCEL);
	}
	return error;
}

/*
 * Fills in the order of the cancels: forwards, backwards, or shuffled (Knuth, The Art of Computer
 * Programming 2, 3.4.2, algorithm P).
 */
static void order_fill(struct stage *stage)
{
	uint32_t count = (uint32_t)stage->count;

	for (uint32_t i = 0; i < count; i++)
		stage->order[i] = stage->shape == SCALE_REVERSE ? count - 1 - i : i;
	for (uint32_t i = count; i > 1 && stage->shape == SCALE_RANDOM; i--) {
		uint32_t other = random_below(&stage->random, i);
		uint32_t last = stage->order[i - 1];

		stage->order[i - 1] = stage->order[other];
		stage->order[other] = last;
	}
}

static int stage_open(struct stage *stage)
{
	stage->handle = malloc(stage->count * sizeof(*stage->handle));
	stage->order = malloc(stage->count * sizeof(*stage->order));
	if (!stage->handle || !stage->order)
		return -ENOMEM;
	memset(stage->handle, 0xff, stage->count * sizeof(*stage->handle));
	order_fill(stage);
	return bench_open(stage->options, 1, &stage->bench);
}

static void stage_fill(const struct stage *stage, struct sample *sample)
{
	sample->ns_per_op = (double)stage->wall_ns / (double)stage->count;
	sample->cpu_ns_per_op = (double)stage->cpu_ns / (double)stage->count;
	sample->clock_reads_per_op = 0;
	sample->account.scheduled = stage->scheduled;
	sample->account.cancelled = stage->cancelled;
}

int scale_shape_run(const struct options *options, uint64_t which, struct sample *ret_sample)
{
	struct stage stage = {
		.options = options,
		.shape = (enum scale_shape)(which / SCALE_OPS),
		.op = (enum scale_op)(which % SCALE_OPS),
		.random = random_seeded(which),
		.count = options->ops,
	};
	int error = stage_open(&stage);
	int close_error;

	*ret_sample = sample_empty();
	if (!error) {
		error = stage_run(&stage);
		stage_fill(&stage, ret_sample);
		close_error = bench_close(&stage.bench, ret_sample);
		error = error ? error : close_error;
	}
	free(stage.handle);
	free(stage.order);
	return error;
}
