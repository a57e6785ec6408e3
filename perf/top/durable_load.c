/* SPDX-License-Identifier: MIT */
/*
 * The load of tickwheel-perf top --durable. Its account is global, because the set calls its hooks
 * until it is closed, even after the load has ended.
 */
#include "top/durable_load.h"

#include "harness/random.h"
#include "top/pace.h"

#include <errno.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdlib.h>

enum { DELAY_FROM_US = 1000, PAYLOAD_BYTES = 64 };

/* Each member has its own cache lines, because its thread writes to it all the time. */
struct durable_member {
	alignas(64) struct durable_load *load;
	struct random random;
	struct tw_durable_id *live;
	uint64_t live_count;
	uint64_t done;
};

struct durable_load {
	struct tw_durable *set;
	uint32_t hold_us;
	struct pace *pace;
	unsigned count;
	struct durable_member member[];
};

static atomic_ullong scheduled, cancelled, runs;
/*
 * The context of every cancel is the address of this variable, so that the hook can tell the
 * acknowledgements of cancels from those of schedules.
 */
static char of_cancel;

static void count_one(atomic_ullong *counter)
{
	(void)atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static int on_run(const struct tw_durable_self *self, const void *payload, size_t bytes)
{
	(void)self;
	(void)payload;
	(void)bytes;
	count_one(&runs);
	return TW_RETRY_DONE;
}

const struct tw_durable_kind durable_load_kind = TW_DURABLE_KIND("top", on_run, NULL);

void durable_load_acked(void *context, const struct tw_durable_ack *acks, size_t count)
{
	(void)context;
	for (size_t i = 0; i < count; i++)
		if (acks[i].context == &of_cancel && acks[i].outcome == TW_DURABLE_DONE)
			count_one(&cancelled);
}

static int schedule(struct durable_member *self, struct tw_durable_id *ret_id)
{
	static const char payload[PAYLOAD_BYTES];
	const struct tw_durable_spec spec = {
		.size = sizeof(spec),
		.kind = &durable_load_kind,
		.due_ns = random_delay_ns(&self->random, DELAY_FROM_US, self->load->hold_us),
		.payload = payload,
		.payload_bytes = PAYLOAD_BYTES,
	};

	return tw_durable_schedule(self->load->set, &spec, ret_id);
}

static int operate(void *member)
{
	struct durable_member *self = member;
	struct tw_durable_id *slot = &self->live[self->done % self->live_count];
	int error;

	if (slot->serial != 0 &&
	    tw_durable_cancel(self->load->set, *slot, &of_cancel) == TW_DURABLE_ABSORBED)
		count_one(&cancelled);
	slot->serial = 0;
	error = schedule(self, slot);
	if (error)
		return error;
	count_one(&scheduled);
	self->done++;
	return 0;
}

static int member_make(struct durable_load *load, unsigned index, const struct options *options)
{
	struct durable_member *self = &load->member[index];

	*self = (struct durable_member){
		.load = load,
		.random = random_seeded(index),
		.live_count = pace_live(options, index),
	};
	self->live = calloc(self->live_count, sizeof(*self->live));
	if (!self->live)
		return -ENOMEM;
	load->count++;
	return 0;
}

int durable_load_start(struct tw_durable *set, const struct options *options,
		       struct durable_load **ret_load)
{
	size_t bytes =
		sizeof(struct durable_load) + options->producers * sizeof(struct durable_member);
	struct durable_load *load = aligned_alloc(64, (bytes + 63) / 64 * 64);
	struct pace_work work = {.operate = operate};
	int error = 0;

	if (!load)
		return -ENOMEM;
	load->set = set;
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
		(void)durable_load_end(load);
	else
		*ret_load = load;
	return error;
}

int durable_load_end(struct durable_load *load)
{
	int error = pace_end(load->pace);

	for (unsigned i = 0; i < load->count; i++)
		free(load->member[i].live);
	free(load);
	return error;
}

struct durable_account durable_load_account(void)
{
	return (struct durable_account){
		.scheduled = atomic_load(&scheduled),
		.cancelled = atomic_load(&cancelled),
		.runs = atomic_load(&runs),
	};
}
