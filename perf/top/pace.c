/* SPDX-License-Identifier: MIT */
#include "top/pace.h"

#include "harness/measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)

/* Each thread has its own cache lines, because it writes to this struct all the time. */
struct pace_thread {
	alignas(64) struct pace *pace;
	pthread_t thread;
	void *member;
	uint64_t live;
	uint64_t done;
	double ops_per_ns;
	int error;
};

struct pace {
	struct pace_work work;
	atomic_bool ended;
	unsigned count;
	struct pace_thread thread[];
};

static bool ended(struct pace *pace)
{
	return atomic_load_explicit(&pace->ended, memory_order_relaxed);
}

static int operate(struct pace_thread *self)
{
	int error = self->pace->work.operate(self->member);

	if (error == -EAGAIN) {
		measure_sleep_ns(NS_PER_MS);
		return 0;
	}
	self->done += error == 0;
	return error;
}

static int operate_until(struct pace_thread *self, uint64_t done)
{
	int error = 0;

	while (self->done < done && !ended(self->pace) && !error)
		error = operate(self);
	return error;
}

/*
 * First does as many operations as the thread keeps live timers. Then keeps the requested rate. If
 * the thread falls behind, it catches up as fast as the machine can.
 */
static int keep_pace(struct pace_thread *self)
{
	int error = operate_until(self, self->live);
	int64_t began_ns = measure_now_ns();

	while (!ended(self->pace) && !error) {
		double wanted = (double)(measure_now_ns() - began_ns) * self->ops_per_ns;

		error = operate_until(self, self->live + (uint64_t)wanted);
		measure_sleep_ns(NS_PER_MS);
	}
	return error;
}

static void *thread_main(void *argument)
{
	struct pace_thread *self = argument;

	if (self->pace->work.begin)
		self->error = self->pace->work.begin();
	if (!self->error)
		self->error = keep_pace(self);
	return NULL;
}

uint64_t pace_live(const struct options *options, unsigned index)
{
	uint64_t live = options->pending / options->producers +
			(index < options->pending % options->producers);

	return live > 0 ? live : 1;
}

static int thread_start(struct pace *pace, unsigned index, const struct options *options)
{
	struct pace_thread *self = &pace->thread[index];

	*self = (struct pace_thread){
		.pace = pace,
		.member = (char *)pace->work.members + index * pace->work.member_bytes,
		.live = pace_live(options, index),
		.ops_per_ns = (double)options->ops / (double)options->producers / (double)NS_PER_S,
	};
	if (pthread_create(&self->thread, NULL, thread_main, self) != 0)
		return -EAGAIN;
	pace->count++;
	return 0;
}

int pace_start(const struct pace_work *work, const struct options *options, struct pace **ret_pace)
{
	size_t bytes = sizeof(struct pace) + options->producers * sizeof(struct pace_thread);
	struct pace *pace = aligned_alloc(64, (bytes + 63) / 64 * 64);
	int error = 0;

	if (!pace)
		return -ENOMEM;
	pace->work = *work;
	pace->count = 0;
	atomic_init(&pace->ended, false);
	for (unsigned i = 0; i < options->producers && !error; i++)
		error = thread_start(pace, i, options);
	if (error)
		(void)pace_end(pace);
	else
		*ret_pace = pace;
	return error;
}

int pace_end(struct pace *pace)
{
	int error = 0;

	if (!pace)
		return 0;
	atomic_store_explicit(&pace->ended, true, memory_order_relaxed);
	for (unsigned i = 0; i < pace->count; i++) {
		(void)pthread_join(pace->thread[i].thread, NULL);
		if (!error)
			error = pace->thread[i].error;
	}
	free(pace);
	return error;
}
