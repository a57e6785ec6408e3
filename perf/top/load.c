/* SPDX-License-Identifier: MIT */
/*
 * The load of tickwheel-perf top.
 */
#include "top/load.h"

#include "harness/measure.h"
#include "harness/random.h"

#include <errno.h>
#include <pthread.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

#define NS_PER_S INT64_C(1000000000)
#define NS_PER_MS INT64_C(1000000)
#define ID_SPAN (UINT64_C(1) << 48)

enum { PUSHED_OUT_EVERY = 8, DELAY_FROM_US = 1000 };

/* Own cache lines: what one writes is nobody else's. */
struct top_thread {
	alignas(64) struct top_load *load;
	pthread_t thread;
	struct random random;
	struct tw_handle *live;
	uint64_t live_count;
	/* The id of the next one; the oldest is `live_count` behind. */
	uint64_t first_id;
	uint64_t done;
	double ops_per_ns;
	struct tally scheduled;
	struct tally cancelled;
	int error;
};

struct top_load {
	struct tw_engine *engine;
	uint32_t hold_us;
	atomic_bool ended;
	unsigned count;
	struct top_thread thread[];
};

static bool load_ended(struct top_load *load)
{
	return atomic_load_explicit(&load->ended, memory_order_relaxed);
}

static int64_t delay_ns(struct top_thread *self)
{
	return random_delay_ns(&self->random, DELAY_FROM_US, self->load->hold_us);
}

static void push_out(struct top_thread *self)
{
	struct tw_handle handle = self->live[random_next(&self->random) % self->live_count];

	if (handle.node != NULL)
		(void)tw_reschedule(handle, (int64_t)self->load->hold_us * 1000);
}

static int operate(struct top_thread *self)
{
	struct tw_handle *slot = &self->live[self->done % self->live_count];
	uint64_t id = self->first_id + self->done;
	int error;

	if (slot->node != NULL && tw_cancel(*slot) == TW_CANCEL_DONE)
		tally_add(&self->cancelled, id - self->live_count);
	error = tw_schedule(self->load->engine, delay_ns(self), &bench_kind, id_to_arg(id), slot);
	if (error)
		return error;
	tally_add(&self->scheduled, id);
	self->done++;
	if (self->done % PUSHED_OUT_EVERY == 0)
		push_out(self);
	return 0;
}

static int operate_until(struct top_thread *self, uint64_t done)
{
	int error = 0;

	while (self->done < done && !load_ended(self->load) && !error)
		error = operate(self);
	return error;
}

/*
 * First as many as are to be live. Then at the rate that was asked for: what is behind is made up for,
 * where the machine can do it.
 */
static int keep_pace(struct top_thread *self)
{
	int error = operate_until(self, self->live_count);
	int64_t began_ns = measure_now_ns();

	while (!load_ended(self->load) && !error) {
		double wanted = (double)(measure_now_ns() - began_ns) * self->ops_per_ns;

		error = operate_until(self, self->live_count + (uint64_t)wanted);
		measure_sleep_ns(NS_PER_MS);
	}
	return error;
}

static void *thread_main(void *argument)
{
	struct top_thread *self = argument;

	self->error = tw_thread_attach();
	if (!self->error)
		self->error = keep_pace(self);
	return NULL;
}

static uint64_t share(uint64_t total, unsigned index, unsigned count)
{
	return total / count + (index < total % count);
}

static int thread_start(struct top_load *load, unsigned index, const struct options *options)
{
	struct top_thread *self = &load->thread[index];

	*self = (struct top_thread){
		.load = load,
		.random = random_seeded(index),
		.live_count = share(options->pending, index, options->producers),
		.first_id = 1 + index * ID_SPAN,
		.ops_per_ns = (double)options->ops / (double)options->producers / (double)NS_PER_S,
	};
	if (self->live_count == 0)
		self->live_count = 1;
	self->live = calloc(self->live_count, sizeof(*self->live));
	if (!self->live)
		return -ENOMEM;
	if (pthread_create(&self->thread, NULL, thread_main, self) != 0) {
		free(self->live);
		return -EAGAIN;
	}
	load->count++;
	return 0;
}

int top_load_start(struct bench *bench, const struct options *options, struct top_load **ret_load)
{
	size_t bytes = sizeof(struct top_load) + options->producers * sizeof(struct top_thread);
	struct top_load *load = aligned_alloc(64, (bytes + 63) / 64 * 64);
	struct account unused = {0};
	int error = 0;

	if (!load)
		return -ENOMEM;
	load->engine = bench->engine;
	load->hold_us = options->hold_ms * 1000;
	load->count = 0;
	atomic_init(&load->ended, false);
	for (unsigned i = 0; i < options->producers && !error; i++)
		error = thread_start(load, i, options);
	if (error)
		(void)top_load_end(load, &unused);
	else
		*ret_load = load;
	return error;
}

int top_load_end(struct top_load *load, struct account *account)
{
	int error = 0;

	atomic_store_explicit(&load->ended, true, memory_order_relaxed);
	for (unsigned i = 0; i < load->count; i++) {
		struct top_thread *thread = &load->thread[i];

		(void)pthread_join(thread->thread, NULL);
		tally_merge(&account->scheduled, thread->scheduled);
		tally_merge(&account->cancelled, thread->cancelled);
		if (!error)
			error = thread->error;
		free(thread->live);
	}
	free(load);
	return error;
}
