/* SPDX-License-Identifier: MIT */
/*
 * The load of tickwheel-perf top.
 */
#include "top/load.h"

#include "harness/random.h"
#include "top/pace.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>

#define ID_SPAN (UINT64_C(1) << 48)

enum { PUSHED_OUT_EVERY = 8, DELAY_FROM_US = 1000 };

/* Each member has its own cache lines, because its thread writes to it all the time. */
struct top_member {
	alignas(64) struct top_load *load;
	struct random random;
	struct tw_handle *live;
	uint64_t live_count;
	/*
	 * The first id. The next id is first_id + done. The id of the oldest live timeout is lower
	 * than the next id by live_count.
	 */
	uint64_t first_id;
	uint64_t done;
	struct tally scheduled;
	struct tally cancelled;
};

struct top_load {
	struct tw_engine *engine;
	uint32_t hold_us;
	struct pace *pace;
	unsigned count;
	struct top_member member[];
};

static int64_t delay_ns(struct top_member *self)
{
	return random_delay_ns(&self->random, DELAY_FROM_US, self->load->hold_us);
}

static void push_out(struct top_member *self)
{
	struct tw_handle handle = self->live[random_next(&self->random) % self->live_count];

	if (handle.node != NULL)
		(void)tw_reschedule(handle, (int64_t)self->load->hold_us * 1000);
}

static int operate(void *member)
{
	struct top_member *self = member;
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

static int member_make(struct top_load *load, unsigned index, const struct options *options)
{
	struct top_member *self = &load->member[index];

	*self = (struct top_member){
		.load = load,
		.random = random_seeded(index),
		.live_count = pace_live(options, index),
		.first_id = 1 + index * ID_SPAN,
	};
	self->live = calloc(self->live_count, sizeof(*self->live));
	if (!self->live)
		return -ENOMEM;
	load->count++;
	return 0;
}

int top_load_start(struct bench *bench, const struct options *options, struct top_load **ret_load)
{
	size_t bytes = sizeof(struct top_load) + options->producers * sizeof(struct top_member);
	struct top_load *load = aligned_alloc(64, (bytes + 63) / 64 * 64);
	struct pace_work work = {.begin = tw_thread_attach, .operate = operate};
	struct account unused = {0};
	int error = 0;

	if (!load)
		return -ENOMEM;
	load->engine = bench->engine;
	load->hold_us = options->hold_ms * 1000;
	load->pace = NULL;
	load->count = 0;
	for (unsigned i = 0; i < options->producers && !error; i++)
		error = member_make(load, i, options);
	work.members = load->member;
	work.member_bytes = sizeof(load->member[0]);
	if (!error)
		error = pace_start(&work, options, &load->pace);
	if (error)
		(void)top_load_end(load, &unused);
	else
		*ret_load = load;
	return error;
}

int top_load_end(struct top_load *load, struct account *account)
{
	int error = pace_end(load->pace);

	for (unsigned i = 0; i < load->count; i++) {
		struct top_member *member = &load->member[i];

		tally_merge(&account->scheduled, member->scheduled);
		tally_merge(&account->cancelled, member->cancelled);
		free(member->live);
	}
	free(load);
	return error;
}
