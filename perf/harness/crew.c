/* SPDX-License-Identifier: MIT */
/*
 * The threads that schedule and cancel.
 *
 * There are two barriers. When all producers have passed the first, the main thread lets the engine
 * catch up and reads the CPU time. The second barrier lets all producers start at once.
 */
#include "harness/crew.h"

#include "harness/measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

struct gate {
	pthread_barrier_t prepared;
	pthread_barrier_t go;
};

struct crew_member {
	const struct crew_plan *plan;
	struct gate *gate;
	struct producer *producer;
	pthread_t thread;
};

static void step(struct producer *self, int (*function)(struct producer *))
{
	if (!self->error && function)
		self->error = function(self);
}

static void *producer_main(void *arg)
{
	struct crew_member *member = arg;
	const struct crew_plan *plan = member->plan;
	struct producer *self = member->producer;

	step(self, plan->begin);
	step(self, plan->prepare);
	pthread_barrier_wait(&member->gate->prepared);
	pthread_barrier_wait(&member->gate->go);
	self->started_ns = measure_now_ns();
	step(self, plan->run);
	self->ended_ns = measure_now_ns();
	if (plan->end)
		(void)plan->end(self);
	return NULL;
}

static uint64_t share(uint64_t total, unsigned index, unsigned count)
{
	return total / count + (index < total % count);
}

static void producer_init(struct producer *producer, const struct crew_plan *plan, unsigned index)
{
	*producer = (struct producer){
		.index = index,
		.count = plan->count,
		.ops = share(plan->ops, index, plan->count),
		.live_count = share(plan->live_count, index, plan->count),
		.first_id = ((uint64_t)index << 40) + 1,
		.random = random_seeded(index),
	};
}

int crew_init(struct crew *crew, const struct crew_plan *plan)
{
	*crew = (struct crew){.plan = *plan};
	crew->members = calloc(plan->count, sizeof(*crew->members));
	crew->producers =
		aligned_alloc(alignof(struct producer), plan->count * sizeof(*crew->producers));
	if (!crew->members || !crew->producers)
		return -ENOMEM;
	for (unsigned i = 0; i < plan->count; i++)
		producer_init(&crew->producers[i], plan, i);
	return 0;
}

void crew_done(struct crew *crew)
{
	free(crew->members);
	free(crew->producers);
}

/*
 * Aborts the child process if a thread cannot be created, because the other threads would wait at
 * the barrier for ever.
 */
static void crew_start(struct crew *crew, struct gate *gate)
{
	pthread_barrier_init(&gate->prepared, NULL, crew->plan.count + 1);
	pthread_barrier_init(&gate->go, NULL, crew->plan.count + 1);
	for (unsigned i = 0; i < crew->plan.count; i++) {
		struct crew_member *member = &crew->members[i];

		*member = (struct crew_member){
			.plan = &crew->plan, .gate = gate, .producer = &crew->producers[i]};
		if (pthread_create(&member->thread, NULL, producer_main, member))
			abort();
	}
}

static void crew_wait(struct crew *crew)
{
	for (unsigned i = 0; i < crew->plan.count; i++)
		pthread_join(crew->members[i].thread, NULL);
}

static int crew_error(const struct crew *crew)
{
	for (unsigned i = 0; i < crew->plan.count; i++)
		if (crew->producers[i].error)
			return crew->producers[i].error;
	return 0;
}

static double crew_wall_ns(const struct crew *crew)
{
	int64_t started_ns = INT64_MAX;
	int64_t ended_ns = INT64_MIN;
	int64_t inside_ns = 0;

	for (unsigned i = 0; i < crew->plan.count; i++) {
		const struct producer *producer = &crew->producers[i];

		started_ns = producer->started_ns < started_ns ? producer->started_ns : started_ns;
		ended_ns = producer->ended_ns > ended_ns ? producer->ended_ns : ended_ns;
		inside_ns += producer->inside_ns;
	}
	return (double)(inside_ns ? inside_ns : ended_ns - started_ns);
}

static void fill_sample(const struct crew *crew, int64_t cpu_ns, struct sample *sample)
{
	double ops = (double)crew->plan.ops;

	sample->ns_per_op = crew_wall_ns(crew) / ops;
	sample->cpu_ns_per_op = (double)cpu_ns / ops;
	for (unsigned i = 0; i < crew->plan.count; i++) {
		tally_merge(&sample->account.scheduled, crew->producers[i].scheduled);
		tally_merge(&sample->account.cancelled, crew->producers[i].cancelled);
	}
}

static int ask(int (*function)(void *context), void *context)
{
	return function ? function(context) : 0;
}

int crew_run(struct crew *crew, struct sample *sample)
{
	struct gate gate;
	int64_t cpu_ns;
	int prepared_error;
	int error;

	crew_start(crew, &gate);
	pthread_barrier_wait(&gate.prepared);
	prepared_error = ask(crew->plan.prepared, crew->plan.context);
	cpu_ns = measure_cpu_ns();
	pthread_barrier_wait(&gate.go);
	crew_wait(crew);
	error = crew_error(crew);
	if (!error)
		error = ask(crew->plan.caught_up, crew->plan.context);
	fill_sample(crew, measure_cpu_ns() - cpu_ns, sample);
	return error ? error : prepared_error;
}
