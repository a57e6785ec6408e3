/* SPDX-License-Identifier: MIT */
/*
 * One engine under measurement.
 *
 * Only the engine's worker writes `worker_side`, or the thread that does its work (in loop mode, or
 * in a stop). Other threads read the count of callbacks in it while the worker runs. They read the
 * other fields only after tw_engine_destroy has joined the worker.
 */
#include "harness/bench.h"

#include "harness/expiry.h"
#include "harness/measure.h"
#include "harness/shape.h"

#include <errno.h>
#include <string.h>

#define STOP_TIMEOUT_NS INT64_C(60000000000)

static struct {
	struct expiry expiry;
	struct tw_engine *engine;
	struct tally unexpired;
} worker_side;

static void take_lateness(struct tw_handle self)
{
	struct tw_timeout timeout = {.size = sizeof(timeout)};
	int64_t now_ns = tw_engine_now(worker_side.engine);

	if (tw_timeout_get(self, &timeout) == 0)
		histogram_add(&worker_side.expiry.lateness_ns, now_ns - timeout.deadline_ns);
}

static void on_expire(struct tw_handle self, void *arg)
{
	(void)self;
	expiry_add(&worker_side.expiry, id_of_arg(arg));
}

static void on_expire_late(struct tw_handle self, void *arg)
{
	take_lateness(self);
	expiry_add(&worker_side.expiry, id_of_arg(arg));
}

static void on_expire_late_sampled(struct tw_handle self, void *arg)
{
	if (id_of_arg(arg) % SHAPE_LATENESS_EVERY == 0)
		take_lateness(self);
	expiry_add(&worker_side.expiry, id_of_arg(arg));
}

static void on_unexpired(void *context, struct tw_handle handle, const struct tw_kind *kind,
			 void *arg, int64_t remaining_ns)
{
	(void)context;
	(void)handle;
	(void)remaining_ns;
	/* The hook of the keyed table counts keyed timeouts. */
	if (tw_keyed_owns(kind))
		return;
	tally_add(&worker_side.unexpired, id_of_arg(arg));
}

const struct tw_kind bench_kind = TW_KIND(on_expire, NULL);
const struct tw_kind bench_kind_owned = TW_KIND_OWNER_ONLY(on_expire, NULL);
const struct tw_kind bench_kind_late = TW_KIND(on_expire_late, NULL);
const struct tw_kind bench_kind_late_sampled = TW_KIND(on_expire_late_sampled, NULL);

static int engine_open(const struct options *options, struct bench *bench)
{
	struct tw_options engine_options;
	int error = tw_options_init(&engine_options, sizeof(engine_options));

	if (error)
		return error;
	engine_options.clock = bench->clock;
	if (options->tick_ns)
		engine_options.tick_ns = options->tick_ns;
	if (options->slots)
		engine_options.slots = options->slots;
	engine_options.wheel = options->wheel;
	engine_options.spin_ns = options->spin_ns;
	engine_options.flags = options->flags | (options->loop ? TW_ENGINE_LOOP : 0);
	engine_options.measure = options->measure;
	engine_options.pending_limit = options->pending_limit;
	if (options->transfer_batch)
		engine_options.transfer_batch = options->transfer_batch;
	error = tw_engine_create(&engine_options, &bench->engine);
	if (error)
		return error;
	worker_side.engine = bench->engine;
	/* In loop mode the owner starts the engine when it enters the loop. */
	return options->loop ? 0 : tw_engine_start(bench->engine);
}

/*
 * Returns -EOPNOTSUPP if the library fell back to another clock, because the row would then name
 * the wrong clock.
 */
static int system_clock_open(uint32_t type, struct tw_clock **ret_clock)
{
	int error = tw_clock_create((enum tw_clock_type)type, ret_clock);

	return error == 0 && tw_clock_type(*ret_clock) != (int)type ? -EOPNOTSUPP : error;
}

int bench_open(const struct options *options, int virtual_time, struct bench *ret_bench)
{
	int error = 0;

	memset(&worker_side, 0, sizeof(worker_side));
	*ret_bench = (struct bench){.options = options, .base_rss_bytes = measure_rss_bytes()};
	if (virtual_time)
		error = tw_clock_create_virtual(0, &ret_bench->clock);
	else if (options->clock != OPTIONS_CLOCK_AUTO)
		error = system_clock_open(options->clock, &ret_bench->clock);
	if (!error)
		error = engine_open(options, ret_bench);
	return error ? error : tw_thread_attach();
}

static uint64_t max_bytes(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void bench_note_memory(struct bench *bench)
{
	struct tw_stats stats = {.size = sizeof(stats)};
	int64_t pending = tw_engine_pending(bench->engine);
	uint64_t rss_bytes = measure_rss_bytes();

	if (pending < 0 || tw_stats_get(bench->engine, &stats))
		return;
	bench->most_pending = max_bytes(bench->most_pending, (uint64_t)pending);
	bench->most_accounted_bytes =
		max_bytes(bench->most_accounted_bytes, tw_memory_slab_bytes() + stats.wheel_bytes);
	if (rss_bytes > bench->base_rss_bytes)
		bench->most_rss_bytes =
			max_bytes(bench->most_rss_bytes, rss_bytes - bench->base_rss_bytes);
}

void bench_wait_expired(uint64_t count, int64_t timeout_ns)
{
	expiry_wait(&worker_side.expiry, count, timeout_ns);
}

static void fill_account(struct sample *sample)
{
	expiry_fill(&worker_side.expiry, sample);
	sample->account.unexpired = worker_side.unexpired;
}

static void fill_memory(const struct bench *bench, struct sample *sample)
{
	double pending = (double)bench->most_pending;

	sample->peak_rss_bytes = measure_rss_peak_bytes();
	if (bench->most_pending == 0)
		return;
	sample->accounted_bytes_per_pending = (double)bench->most_accounted_bytes / pending;
	sample->rss_bytes_per_pending = (double)bench->most_rss_bytes / pending;
}

void bench_count_unexpired(uint64_t id)
{
	tally_add(&worker_side.unexpired, id);
}

int bench_stop(struct bench *bench)
{
	return tw_engine_stop(bench->engine, on_unexpired, NULL, STOP_TIMEOUT_NS);
}

int bench_close(struct bench *bench, struct sample *ret_sample)
{
	int error = bench_stop(bench);

	if (!error)
		error = tw_engine_destroy(bench->engine);
	if (!error)
		error = tw_clock_destroy(bench->clock);
	fill_account(ret_sample);
	fill_memory(bench, ret_sample);
	return error;
}
