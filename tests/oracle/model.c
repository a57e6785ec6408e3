/* SPDX-License-Identifier: MIT */
#include "model.h"

#include <errno.h>
#include <string.h>

#define TICK_NS_MIN UINT64_C(1000)
#define TICK_NS_MAX UINT64_C(3600000000000)
#define SLOTS_MAX (UINT32_C(1) << 24)

void model_init(struct model *model)
{
	memset(model, 0, sizeof(*model));
	model->first = MODEL_NOBODY;
}

int model_options_judge(const struct tw_options *options)
{
	if (options->tick_ns < TICK_NS_MIN || options->tick_ns > TICK_NS_MAX)
		return -EINVAL;
	if (options->slots < 1 || options->slots > SLOTS_MAX)
		return -EINVAL;
	if (options->transfer_batch < 1 || options->transfer_batch > TW_TRANSFER_BATCH_MAX)
		return -EINVAL;
	if (options->check > TW_CHECK_FULL || (options->flags & ~(uint32_t)TW_ENGINE_LOOP) != 0)
		return -EINVAL;
	if ((wide)options->tick_ns * options->slots > INT64_MAX)
		return -ERANGE;
	return 0;
}

void model_create(struct model *model, const struct tw_options *options, int64_t now_ns)
{
	model->life = MODEL_NEW;
	model->loop = (options->flags & TW_ENGINE_LOOP) != 0;
	model->start_ns = model->now_ns = now_ns;
	model->flushing_ns = model->flushed_ns = now_ns;
	model->tick_ns = (wide)options->tick_ns;
	model->slots = 1;
	while (model->slots < options->slots)
		model->slots *= 2;
	model->limit = options->pending_limit;
	model->counts = (struct model_counts){0};
	model->any_order = false;
	model->latest_ns = 0;
	model->overshoot = false;
}

int model_clock_set(struct model *model, int64_t now_ns)
{
	if (now_ns < model->now_ns || now_ns == INT64_MAX)
		return -EINVAL;
	model->now_ns = now_ns;
	return 0;
}

int64_t model_deadline(const struct model *model, int64_t delay_ns)
{
	wide sum_ns = (wide)model->now_ns + delay_ns;

	wide since_ns = (wide)model->now_ns - model->start_ns;

	if (delay_ns <= 0)
		return (int64_t)(model->now_ns - since_ns % model->tick_ns - 1);
	return sum_ns > INT64_MAX ? INT64_MAX : (int64_t)sum_ns;
}

/* Returns the first tick boundary after a deadline. Ticks count from the engine's start. */
static wide boundary_of(const struct model *model, int64_t deadline_ns)
{
	wide since_ns = (wide)deadline_ns - model->start_ns;

	if (since_ns < 0)
		return model->start_ns;
	return model->start_ns + (since_ns / model->tick_ns + 1) * model->tick_ns;
}

static wide due_of(const struct model *model, int64_t deadline_ns)
{
	return model->loop ? deadline_ns : boundary_of(model, deadline_ns);
}

wide model_poll_ns(const struct model *model)
{
	return boundary_of(model, model->timeout[model->first].deadline_ns);
}

static void pending_add(struct model *model, int id)
{
	int *link = &model->first;

	while (*link != MODEL_NOBODY && model->timeout[*link].due_ns <= model->timeout[id].due_ns)
		link = &model->timeout[*link].next;
	model->timeout[id].next = *link;
	*link = id;
	model->counts.pending++;
}

static void pending_remove(struct model *model, int id)
{
	int *link = &model->first;

	while (*link != id)
		link = &model->timeout[*link].next;
	*link = model->timeout[id].next;
	model->counts.pending--;
}

static bool holds_place(const struct model_timeout *timeout)
{
	return timeout->state == MODEL_PENDING || timeout->state == MODEL_DUE ||
	       (timeout->state == MODEL_RUNNING && !timeout->passed_on);
}

/* Takes a place under the limit of pending timeouts. A running timeout keeps its place until it
 * ends or passes it on to one that its callback schedules. */
static bool place_take(struct model *model, int inside)
{
	uint64_t taken = 0;

	if (model->limit == 0)
		return true;
	if (inside != MODEL_NOBODY && !model->timeout[inside].passed_on) {
		model->timeout[inside].passed_on = true;
		return true;
	}
	for (int id = 0; id < model->count; id++)
		taken += holds_place(&model->timeout[id]);
	return taken < model->limit;
}

static int reject(struct model *model, int error)
{
	model->counts.rejected++;
	return error;
}

int model_schedule_at(struct model *model, int64_t deadline_ns, int inside)
{
	struct model_timeout *timeout = &model->timeout[model->count];

	if (deadline_ns == INT64_MIN)
		return -ERANGE;
	if (model->life == MODEL_NEW)
		model->life = MODEL_OPEN;
	if (model->life != MODEL_OPEN)
		return reject(model, -ESHUTDOWN);
	if (!place_take(model, inside))
		return reject(model, -EAGAIN);
	*timeout = (struct model_timeout){.deadline_ns = deadline_ns < 0 ? -1 : deadline_ns};
	timeout->due_ns = due_of(model, timeout->deadline_ns);
	model->counts.scheduled++;
	pending_add(model, model->count++);
	return 0;
}

int model_reschedule_at(struct model *model, int id, int64_t deadline_ns)
{
	struct model_timeout *timeout = &model->timeout[id];

	switch (timeout->state) {
	case MODEL_PENDING:
		pending_remove(model, id);
		timeout->deadline_ns = deadline_ns < 0 ? -1 : deadline_ns;
		timeout->due_ns = due_of(model, timeout->deadline_ns);
		timeout->owed = false;
		timeout->moved = true;
		pending_add(model, id);
		return TW_RESCHEDULE_DONE;
	case MODEL_DUE:
	case MODEL_RUNNING:
		return TW_RESCHEDULE_RUNNING;
	case MODEL_EXPIRED:
		return TW_RESCHEDULE_EXPIRED;
	default:
		return TW_RESCHEDULE_CANCELLED;
	}
}

int model_cancel(struct model *model, int id)
{
	switch (model->timeout[id].state) {
	case MODEL_PENDING:
		pending_remove(model, id);
		model->timeout[id].state = MODEL_CANCELLED;
		model->counts.cancelled++;
		return TW_CANCEL_DONE;
	case MODEL_DUE:
	case MODEL_RUNNING:
		return TW_CANCEL_RUNNING;
	case MODEL_EXPIRED:
		return TW_CANCEL_EXPIRED;
	default:
		return TW_CANCEL_CANCELLED;
	}
}

enum tw_state model_state_of(const struct model *model, int id)
{
	switch (model->timeout[id].state) {
	case MODEL_PENDING:
		return TW_STATE_INIT;
	case MODEL_DUE:
	case MODEL_RUNNING:
	case MODEL_EXPIRED:
		return TW_STATE_EXPIRED;
	default:
		return TW_STATE_CANCELLED;
	}
}

bool model_any_due(const struct model *model)
{
	return model->first != MODEL_NOBODY && model->timeout[model->first].due_ns <= model->now_ns;
}

/* Returns true if the worker broke the order of ticks. It must keep the order for timeouts that
 * were in its wheel, unless it stalled for a revolution. */
static bool out_of_order(const struct model *model, const struct model_timeout *timeout)
{
	wide stall_ticks = ((wide)model->now_ns - model->start_ns) / model->tick_ns -
			   ((wide)model->flushed_ns - model->start_ns) / model->tick_ns;

	return timeout->seen && !timeout->moved && !model->any_order &&
	       stall_ticks < model->slots && timeout->due_ns < model->latest_ns;
}

const char *model_expire(struct model *model, int id)
{
	struct model_timeout *timeout = &model->timeout[id];

	if (timeout->state != MODEL_PENDING)
		return "a timeout expires that has ended before";
	if (timeout->due_ns > model->now_ns)
		return "a timeout expires early";
	if (out_of_order(model, timeout))
		return "a timeout expires after one of a later tick";
	if (timeout->seen && !timeout->moved && timeout->due_ns > model->latest_ns)
		model->latest_ns = timeout->due_ns;
	model->overshoot |= !timeout->owed || timeout->due_ns > model->flushing_ns;
	pending_remove(model, id);
	timeout->state = MODEL_DUE;
	model->counts.expired++;
	return NULL;
}

const char *model_run(struct model *model, int id)
{
	if (model->timeout[id].state != MODEL_DUE)
		return "a callback runs that is not due, or for the second time";
	model->timeout[id].state = MODEL_RUNNING;
	return NULL;
}

const char *model_end(struct model *model, int id)
{
	if (model->timeout[id].state != MODEL_RUNNING)
		return "a callback ends that did not run";
	model->timeout[id].state = MODEL_EXPIRED;
	return NULL;
}

const char *model_hand_back(struct model *model, int id)
{
	if (model->life != MODEL_STOPPING)
		return "a timeout is handed back, and nobody stops the engine";
	if (model->timeout[id].state != MODEL_PENDING)
		return "a timeout is handed back that has ended before";
	pending_remove(model, id);
	model->timeout[id].state = MODEL_HANDED_BACK;
	model->counts.unexpired++;
	return NULL;
}

void model_flush(struct model *model)
{
	model->overshoot = false;
	for (int id = model->first; id != MODEL_NOBODY; id = model->timeout[id].next)
		model->timeout[id].owed = true;
	model->flushing_ns = model->now_ns;
}

const char *model_flushed(struct model *model)
{
	for (int id = model->first; id != MODEL_NOBODY; id = model->timeout[id].next) {
		struct model_timeout *timeout = &model->timeout[id];

		if (!timeout->owed)
			continue;
		if (timeout->due_ns <= model->flushing_ns)
			return "a timeout is late: it was due before the flush, and is pending "
			       "after it";
		model->counts.seen += !timeout->seen;
		timeout->seen = true;
	}
	model->flushed_ns = model->flushing_ns;
	return NULL;
}

void model_hand_back_all(struct model *model)
{
	while (model->first != MODEL_NOBODY)
		(void)model_hand_back(model, model->first);
}
