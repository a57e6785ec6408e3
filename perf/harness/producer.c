/* SPDX-License-Identifier: MIT */
/* The producers of a tickwheel engine. */
#include "harness/producer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_TIMEOUT_NS INT64_C(60000000000)

struct course {
	const struct producer_plan *plan;
	struct bench *bench;
};

static int begin(struct producer *producer)
{
	int error = tw_thread_attach();

	return !error && producer->loop ? tw_loop_enter(producer->engine) : error;
}

static int end(struct producer *producer)
{
	return producer->loop ? tw_loop_exit(producer->engine) : 0;
}

/* Waits until the worker has caught up. In loop mode there is no worker that could be behind. */
static int flush(struct bench *bench)
{
	return bench->options->loop ? 0 : tw_engine_flush(bench->engine, FLUSH_TIMEOUT_NS);
}

static int prepared(void *context)
{
	struct course *course = context;
	int error = flush(course->bench);

	if (course->plan->memory_when_prepared)
		bench_note_memory(course->bench);
	return error;
}

static int caught_up(void *context)
{
	struct course *course = context;
	const struct producer_plan *plan = course->plan;

	if (plan->wait_expired)
		bench_wait_expired(plan->wait_expired, plan->wait_timeout_ns);
	return flush(course->bench);
}

static void crew_join(struct crew *crew, struct bench *bench, struct tw_handle *room)
{
	for (unsigned i = 0; i < crew->plan.count; i++) {
		struct producer *producer = &crew->producers[i];

		producer->bench = bench;
		producer->engine = bench->engine;
		producer->at = bench->options->at;
		producer->loop = bench->options->loop;
		producer->live = room;
		room += producer->live_count;
	}
}

static int crew_bench(struct crew *crew, const struct options *options, struct tw_handle *room,
		      struct sample *sample)
{
	struct course *course = crew->plan.context;
	int close_error;
	int error = bench_open(options, 0, course->bench);

	if (error)
		return error;
	crew_join(crew, course->bench, room);
	error = crew_run(crew, sample);
	close_error = bench_close(course->bench, sample);
	return error ? error : close_error;
}

static struct tw_handle *room_touched(uint64_t live_count)
{
	size_t bytes = (live_count + 1) * sizeof(struct tw_handle);
	struct tw_handle *room = malloc(bytes);

	/*
	 * Touches the memory. Must not write zeros: the compiler would turn malloc and memset into
	 * calloc, which touches nothing.
	 */
	return room ? memset(room, 0xff, bytes) : NULL;
}

int producers_bench(const struct options *options, const struct producer_plan *plan,
		    struct sample *ret_sample)
{
	struct bench bench;
	struct course course = {.plan = plan, .bench = &bench};
	struct tw_handle *room = room_touched(plan->live_count);
	struct crew crew;
	int error = crew_init(&crew, &(struct crew_plan){
					     .count = options->producers,
					     .ops = plan->ops,
					     .live_count = plan->live_count,
					     .begin = begin,
					     .prepare = plan->prepare,
					     .run = plan->run,
					     .end = end,
					     .prepared = prepared,
					     .caught_up = caught_up,
					     .context = &course,
				     });

	*ret_sample = sample_empty();
	ret_sample->clock_reads_per_op = options->at ? 1.0 / PRODUCER_CLOCK_EVERY : 1.0;
	if (!error)
		error = room ? crew_bench(&crew, options, room, ret_sample) : -ENOMEM;
	crew_done(&crew);
	free(room);
	return error;
}
