/* SPDX-License-Identifier: MIT */
/* Compares a store with a model. */
#include "model.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The state of a walk over the rows of a store. */
struct walk {
	struct model *model;
	struct model_state *state;
	struct tw_durable_row last;
	size_t count;
	bool any;
};

static bool row_compare(struct walk *walk, const struct tw_durable_row *row)
{
	struct model_timer *timer = model_find(walk->state, row->id);
	unsigned char payload[MODEL_PAYLOAD];
	unsigned long long serial = row->id.serial;
	char key[8] = "";

	if (timer == NULL)
		return model_fail(walk->model, "serial %llu is there, and must not be", serial);
	model_payload_fill(timer, payload);
	if (timer->key >= 0)
		model_key_text(timer->key, key);
	if (row->due_ns != timer->due_ns || row->attempt != timer->attempt ||
	    row->kind != timer->kind || row->version != timer->version ||
	    row->started != timer->started || (row->dead != 0) != (timer->dead != 0))
		return model_fail(walk->model, "serial %llu has wrong numbers", serial);
	if (row->payload_bytes != timer->payload_bytes ||
	    (row->payload_bytes > 0 && memcmp(row->payload, payload, row->payload_bytes) != 0))
		return model_fail(walk->model, "serial %llu has a wrong payload", serial);
	if (row->key_bytes != strlen(key) ||
	    (row->key_bytes > 0 && memcmp(row->key, key, row->key_bytes) != 0))
		return model_fail(walk->model, "serial %llu has a wrong key", serial);
	return true;
}

static bool after(const struct tw_durable_row *row, const struct tw_durable_row *last)
{
	if (row->due_ns != last->due_ns)
		return row->due_ns > last->due_ns;
	if (row->id.place != last->id.place)
		return (int64_t)row->id.place > (int64_t)last->id.place;
	return row->id.serial > last->id.serial;
}

static int walk_row(void *to, const struct tw_durable_row *row)
{
	struct walk *walk = to;

	if (walk->any && !row->dead && !after(row, &walk->last))
		model_fail(walk->model, "serial %llu is out of order",
			   (unsigned long long)row->id.serial);
	walk->last = *row;
	walk->any = true;
	walk->count++;
	return row_compare(walk, row) ? 0 : -ECANCELED;
}

/* Loads all timers, in calls that each return a random number of them. */
static int walk_near(struct walk *walk)
{
	struct model *model = walk->model;

	for (;;) {
		size_t max = 1 + random_below(&model->random, 100), before = walk->count;
		struct tw_durable_row last = walk->last;
		int result = model->store.ops->near(model->store.store, walk->any ? &last : NULL,
						    INT64_MAX - 1, max, walk_row, walk);

		if (result != 0)
			return result;
		if (walk->count - before > max)
			model_fail(model, "more rows than were asked for");
		if (walk->count == before)
			return 0;
	}
}

static int walk_dead(struct walk *walk)
{
	struct tw_durable_id last = {0, 0};

	for (;;) {
		size_t before = walk->count;
		int result = walk->model->store.ops->dead(walk->model->store.store, last, 7,
							  walk_row, walk);

		if (result != 0 || walk->count == before)
			return result;
		last = walk->last.id;
	}
}

static int found_row(void *to, const struct tw_durable_row *row)
{
	return row_compare(to, row) ? 0 : -ECANCELED;
}

/* Looks up each timer by its id and by its key. */
static bool finds_check(struct walk *walk)
{
	struct model *model = walk->model;
	struct model_state *state = walk->state;
	void *store = model->store.store;

	for (size_t i = 0; i < state->count; i++)
		if (model->store.ops->find(store, state->timers[i].id, found_row, walk) != 0)
			return model_fail(model, "serial %llu is not found",
					  (unsigned long long)state->timers[i].id.serial);
	for (int key = 0; key < MODEL_KEYS; key++) {
		bool there = model_find_key(state, key) != NULL;
		char text[8];
		int result;

		model_key_text(key, text);
		result = model->store.ops->find_key(store, text, strlen(text), found_row, walk);
		if (result != (there ? 0 : -ENOENT))
			return model_fail(model, "key %s: %d", text, result);
	}
	return true;
}

static bool clock_check(struct model *model, const struct model_state *state)
{
	struct tw_durable_clock must = model_clock_make(state->clock), clock = {.boot = ""};
	int result = model->store.ops->clock(model->store.store, &clock);

	if (result != (state->clock == 0 ? -ENOENT : 0))
		return model_fail(model, "the clock: %d", result);
	if (result == 0 && (strcmp(clock.boot, must.boot) != 0 || clock.base_ns != must.base_ns ||
			    clock.step_ns != must.step_ns))
		return model_fail(model, "the clock is \"%s\", must be \"%s\"", clock.boot,
				  must.boot);
	return true;
}

static bool state_check(struct model *model, struct model_state *state)
{
	struct walk walk = {.model = model, .state = state};
	int result = walk_near(&walk);

	walk.any = false;
	if (result == 0)
		result = walk_dead(&walk);
	if (result != 0)
		return model_fail(model, "the walk ends with %d", result);
	if (walk.count != state->count)
		return model_fail(model, "%zu rows, must be %zu", walk.count, state->count);
	return finds_check(&walk) && clock_check(model, state) && model->failure[0] == '\0';
}

/* Checks whether the store has this state. If it does, the model takes this state as its own. */
static bool state_settle(struct model *model, struct model_state *state)
{
	model->failure[0] = '\0';
	if (!state_check(model, state))
		return false;
	model->now = *state;
	return true;
}

bool model_check(struct model *model)
{
	if (model->failure[0] != '\0')
		return false;
	return state_check(model, &model->now) ||
	       (model->unknown && state_settle(model, &model->next)) ||
	       (model->trimmed && state_settle(model, &model->before));
}
