/* SPDX-License-Identifier: MIT */
/*
 * The threads that schedule and cancel.
 *
 * Two barriers: at the first all have prepared, and the main thread lets the worker catch up and
 * reads memory and CPU time; the second lets all producers go at once.
 */
#include "producer.h"

#include "measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_TIMEOUT_NS INT64_C(60000000000)

struct member {
	struct crew *crew;
	struct producer *producer;
	pthread_t thread;
};

struct crew {
	const struct producer_plan *plan;
	pthread_barrier_t prepared;
	pthread_barrier_t go;
	unsigned count;
	struct member *members;
	struct producer *producers;
	struct tw_handle *room;
};

static void *producer_main(void *arg)
{
	struct member *member = arg;
	const struct producer_plan *plan = member->crew->plan;
	struct producer *self = member->producer;

	self->error = tw_thread_attach();
	if (!self->error && self->loop)
		self->error = tw_engine_start(self->engine);
	if (!self->error && plan->prepare)
		self->error = plan->prepare(self);
	pthread_barrier_wait(&member->crew->prepared);
	pthread_barrier_wait(&member->crew->go);
	self->started_ns = measure_now_ns();
	if (!self->error)
		self->error = plan->run(self);
	self->ended_ns = measure_now_ns();
	if (self->loop)
		(void)tw_engine_leave(self->engine);
	return NULL;
}

static uint64_t share(uint64_t total, unsigned index, unsigned count)
{
	return total / count + (index < total % count);
}

static void producer_init(struct producer *producer, const struct producer_plan *plan,
			  unsigned index, unsigned count)
{
	*producer = (struct producer){
		.index = index,
		.count = count,
		.ops = share(plan->ops, index, count),
		.live_count = share(plan->live_count, index, count),
		.first_id = ((uint64_t)index << 40) + 1,
		.random = random_seeded(index),
	};
}

static void crew_share_room(struct crew *crew)
{
	struct tw_handle *room = crew->room;

	for (unsigned i = 0; i < crew->count; i++) {
		crew->producers[i].live = room;
		room += crew->producers[i].live_count;
	}
}

static int crew_allocate(struct crew *crew)
{
	size_t room_bytes = (crew->plan->live_count + 1) * sizeof(*crew->room);

	crew->members = calloc(crew->count, sizeof(*crew->members));
	crew->producers =
		aligned_alloc(alignof(struct producer), crew->count * sizeof(*crew->producers));
	crew->room = malloc(room_bytes);
	if (!crew->members || !crew->producers || !crew->room)
		return -ENOMEM;
	/* Not zeros: the compiler would make one calloc of the two, which touches nothing. */
	memset(crew->room, 0xff, room_bytes);
	return 0;
}

static int crew_init(struct crew *crew, const struct producer_plan *plan, unsigned count)
{
	*crew = (struct crew){.plan = plan, .count = count};
	if (crew_allocate(crew))
		return -ENOMEM;
	for (unsigned i = 0; i < count; i++)
		producer_init(&crew->producers[i], plan, i, count);
	crew_share_room(crew);
	pthread_barrier_init(&crew->prepared, NULL, count + 1);
	pthread_barrier_init(&crew->go, NULL, count + 1);
	return 0;
}

static void crew_done(struct crew *crew)
{
	free(crew->members);
	free(crew->producers);
	free(crew->room);
}

/* A thread that cannot be made would leave the others at the barrier: the child process ends. */
static void crew_start(struct crew *crew, struct bench *bench)
{
	for (unsigned i = 0; i < crew->count; i++) {
		struct member *member = &crew->members[i];

		*member = (struct member){.crew = crew, .producer = &crew->producers[i]};
		member->producer->bench = bench;
		member->producer->engine = bench->engine;
		member->producer->at = bench->options->at;
		member->producer->loop = bench->options->loop;
		if (pthread_create(&member->thread, NULL, producer_main, member))
			abort();
	}
}

static void crew_wait(struct crew *crew)
{
	for (unsigned i = 0; i < crew->count; i++)
		pthread_join(crew->members[i].thread, NULL);
}

static int crew_error(const struct crew *crew)
{
	for (unsigned i = 0; i < crew->count; i++)
		if (crew->producers[i].error)
			return crew->producers[i].error;
	return 0;
}

static double crew_wall_ns(const struct crew *crew)
{
	int64_t started_ns = INT64_MAX;
	int64_t ended_ns = INT64_MIN;
	int64_t inside_ns = 0;

	for (unsigned i = 0; i < crew->count; i++) {
		const struct producer *producer = &crew->producers[i];

		started_ns = producer->started_ns < started_ns ? producer->started_ns : started_ns;
		ended_ns = producer->ended_ns > ended_ns ? producer->ended_ns : ended_ns;
		inside_ns += producer->inside_ns;
	}
	return (double)(inside_ns ? inside_ns : ended_ns - started_ns);
}

static void fill_sample(const struct crew *crew, int64_t cpu_ns, struct sample *sample)
{
	double ops = (double)crew->plan->ops;

	sample->ns_per_op = crew_wall_ns(crew) / ops;
	sample->cpu_ns_per_op = (double)cpu_ns / ops;
	for (unsigned i = 0; i < crew->count; i++) {
		tally_merge(&sample->account.scheduled, crew->producers[i].scheduled);
		tally_merge(&sample->account.cancelled, crew->producers[i].cancelled);
	}
}

static int catch_up(struct bench *bench, const struct producer_plan *plan)
{
	if (plan->wait_expired)
		bench_wait_expired(plan->wait_expired, plan->wait_timeout_ns);
	/* A loop has nobody who could be behind. */
	return bench->options->loop ? 0 : tw_engine_settle(bench->engine, SETTLE_TIMEOUT_NS);
}

static int crew_run(struct crew *crew, struct bench *bench, struct sample *sample)
{
	int64_t cpu_ns;
	int settle_error;
	int error;

	crew_start(crew, bench);
	pthread_barrier_wait(&crew->prepared);
	settle_error =
		bench->options->loop ? 0 : tw_engine_settle(bench->engine, SETTLE_TIMEOUT_NS);
	if (crew->plan->memory_when_prepared)
		bench_note_memory(bench);
	cpu_ns = measure_cpu_ns();
	pthread_barrier_wait(&crew->go);
	crew_wait(crew);
	error = crew_error(crew);
	if (!error)
		error = catch_up(bench, crew->plan);
	fill_sample(crew, measure_cpu_ns() - cpu_ns, sample);
	return error ? error : settle_error;
}

static int crew_bench(struct crew *crew, const struct options *options, struct sample *sample)
{
	struct bench bench;
	int close_error;
	int error = bench_open(options, 0, &bench);

	if (error)
		return error;
	error = crew_run(crew, &bench, sample);
	close_error = bench_close(&bench, sample);
	return error ? error : close_error;
}

int producers_bench(const struct options *options, const struct producer_plan *plan,
		    struct sample *ret_sample)
{
	struct crew crew;
	int error = crew_init(&crew, plan, options->producers);

	*ret_sample = sample_empty();
	ret_sample->clock_reads_per_op = options->at ? 1.0 / PRODUCER_CLOCK_EVERY : 1.0;
	if (!error)
		error = crew_bench(&crew, options, ret_sample);
	crew_done(&crew);
	return error;
}
