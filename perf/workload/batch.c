/* SPDX-License-Identifier: MIT */
/*
 * batch: schedules and cancels groups of timeouts, each group by one call, or by single calls for
 * comparison. Either nothing else is pending, or a million timeouts are.
 *
 * One operation is a pair: one schedule and one cancel. Without "live", timeouts are scheduled for
 * 30 s and cancelled before the worker has taken them. With "scope", single schedules put them into
 * a scope, and the end of the scope cancels them. With "live", the oldest timeouts are cancelled in
 * the wheel, and new ones replace them, as in live-ring.
 *
 * In every sixteenth batch, the schedules and the cancels are also timed separately, without the
 * creation and the destruction of a scope. These two figures are medians of the time of the
 * library's calls, minus the cost of the clock reads around them.
 */
#include "harness/measure.h"
#include "harness/producer.h"
#include "harness/shape.h"
#include "workload/workload.h"

#include <errno.h>

enum { SIZE_MOST = 1024, LIVE = 1024 * 1024, LOOK_EVERY = 16 };

/* The decoded parameter of the workload. */
struct shape {
	size_t size;
	bool single;
	bool live;
	bool scope;
};

static struct shape shape;
static struct tw_item items[SIZE_MOST];
static struct tw_scope *scope;

/* The times of the batches that are timed separately, and the cost of a clock read. */
static struct histogram schedules_ns, cancels_ns, looks_ns;
static uint64_t batches;
static int64_t begun_ns;

static void side_begin(void)
{
	if (batches % LOOK_EVERY == 0)
		begun_ns = measure_now_ns();
}

static void side_end(struct histogram *side_ns)
{
	int64_t ended_ns, looked_ns;

	if (batches % LOOK_EVERY != 0)
		return;
	/* Two readings in a row differ by the cost of one clock read. */
	ended_ns = measure_now_ns();
	looked_ns = measure_now_ns();
	histogram_add(side_ns, ended_ns - begun_ns);
	histogram_add(&looks_ns, looked_ns - ended_ns);
}

static double side_ns(const struct histogram *side)
{
	return (histogram_percentile(side, 0.5) - histogram_percentile(&looks_ns, 0.5)) /
	       (double)shape.size;
}

static int64_t delay_ns(struct producer *producer)
{
	return shape.live ? live_ring_delay_ns(&producer->random) : SCHEDULE_CANCEL_DELAY_NS;
}

static int single_schedule(struct producer *producer, struct tw_handle *ret_handles)
{
	for (size_t i = 0; i < shape.size; i++) {
		int error = tw_schedule(producer->engine, items[i].time_ns, items[i].kind,
					items[i].arg, &ret_handles[i]);

		if (error)
			return error;
	}
	return 0;
}

static int batch_schedule(struct producer *producer, struct tw_handle *ret_handles)
{
	int scheduled = tw_schedule_many(producer->engine, items, shape.size, ret_handles, NULL);

	return scheduled == (int)shape.size ? 0 : scheduled < 0 ? scheduled : -EIO;
}

static int scope_schedule(struct tw_handle *ret_handles)
{
	for (size_t i = 0; i < shape.size; i++) {
		int error = tw_scope_schedule(scope, items[i].time_ns, items[i].kind, items[i].arg,
					      &ret_handles[i]);

		if (error)
			return error;
	}
	return 0;
}

static int shape_schedule(struct producer *producer, struct tw_handle *ret_handles)
{
	if (shape.scope)
		return scope_schedule(ret_handles);
	return shape.single ? single_schedule(producer, ret_handles)
			    : batch_schedule(producer, ret_handles);
}

static int any_schedule(struct producer *producer, struct tw_handle *ret_handles)
{
	int error = shape.scope ? tw_scope_create(producer->engine, NULL, &scope) : 0;

	if (error)
		return error;
	side_begin();
	error = shape_schedule(producer, ret_handles);
	side_end(&schedules_ns);
	return error;
}

/*
 * Fills in all items anew, also for single calls, so that the harness's work is the same in all
 * shapes.
 */
static int schedule(struct producer *producer, uint64_t id, struct tw_handle *ret_handles)
{
	for (size_t i = 0; i < shape.size; i++) {
		items[i].time_ns = delay_ns(producer);
		items[i].kind = &bench_kind;
		items[i].arg = id_to_arg(id + i);
		tally_add(&producer->scheduled, id + i);
	}
	return any_schedule(producer, ret_handles);
}

static size_t any_cancel(const struct tw_handle *handles)
{
	size_t cancelled = 0;

	side_begin();
	if (shape.scope)
		cancelled = (size_t)tw_scope_end(scope);
	else if (shape.single)
		for (size_t i = 0; i < shape.size; i++)
			cancelled += tw_cancel(handles[i]) == TW_CANCEL_DONE;
	else
		cancelled = (size_t)tw_cancel_many(handles, shape.size, NULL);
	side_end(&cancels_ns);
	if (shape.scope && tw_scope_destroy(scope) != 0)
		return 0;
	return cancelled;
}

/* Cancels a batch. All cancels must succeed, because none of the timeouts has expired. */
static int cancel(struct producer *producer, uint64_t id, const struct tw_handle *handles)
{
	size_t cancelled = any_cancel(handles);

	for (size_t i = 0; i < shape.size; i++)
		tally_add(&producer->cancelled, id + i);
	return cancelled == shape.size ? 0 : -EIO;
}

static int prepare(struct producer *producer)
{
	int error = 0;

	/* Keeps side_begin and side_end from timing these batches. */
	batches = 1;
	for (uint64_t i = 0; shape.live && i < producer->live_count && !error; i += shape.size)
		error = schedule(producer, producer->first_id + i, &producer->live[i]);
	batches = 0;
	return error;
}

static int run_live(struct producer *producer)
{
	uint64_t id = producer->first_id;
	uint64_t slot = 0;
	int error = 0;

	for (uint64_t i = 0; i < producer->ops && !error;
	     i += shape.size, id += shape.size, batches++) {
		struct tw_handle *handles = &producer->live[slot];

		error = cancel(producer, id, handles);
		if (!error)
			error = schedule(producer, id + producer->live_count, handles);
		slot = (slot + shape.size) % producer->live_count;
	}
	return error;
}

static int run(struct producer *producer)
{
	struct tw_handle handles[SIZE_MOST];
	int error = 0;

	if (shape.live)
		return run_live(producer);
	for (uint64_t i = 0; i < producer->ops && !error; i += shape.size, batches++) {
		error = schedule(producer, producer->first_id + i, handles);
		if (!error)
			error = cancel(producer, producer->first_id + i, handles);
	}
	return error;
}

int workload_batch(const struct options *options, uint64_t parameter, struct sample *ret_sample)
{
	struct producer_plan plan = {.prepare = prepare, .run = run};
	int error;

	shape = (struct shape){
		.size = parameter & (2 * SIZE_MOST - 1),
		.single = (parameter & WORKLOAD_BATCH_SINGLE) != 0,
		.live = (parameter & WORKLOAD_BATCH_LIVE) != 0,
		.scope = (parameter & WORKLOAD_BATCH_SCOPE) != 0,
	};
	/*
	 * There must be only one producer, because `items` is shared. The number of operations is
	 * rounded up to whole batches.
	 */
	if (options->producers != 1)
		return -EINVAL;
	plan.ops = (options->ops + shape.size - 1) / shape.size * shape.size;
	plan.live_count = shape.live ? LIVE : 0;
	error = producers_bench(options, &plan, ret_sample);
	ret_sample->schedule_ns = side_ns(&schedules_ns);
	ret_sample->cancel_ns = side_ns(&cancels_ns);
	return error;
}
