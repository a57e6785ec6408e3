/* SPDX-License-Identifier: MIT */
/*
 * Compares the wheel with a list: random inserts, removes and advances. No timeout may come early,
 * late or twice, even if the wheel changes in the middle of a catch-up. The sleep hint must never
 * be later than the first due tick. The wheel's check must find no error after any step.
 */
#include "fixture.h"
#include "slowdown.h"

#include <criterion/criterion.h>

enum { LIVE = 400, STEPS = 600, STEPS_MIN = 60 };

struct model {
	struct wheel_fixture fixture;
	struct twi_node *node[LIVE];
	uint64_t due_tick[LIVE];
	uint64_t now, random;
	uint64_t fired;
};

static uint64_t random_below(struct model *model, uint64_t bound)
{
	model->random ^= model->random << 13;
	model->random ^= model->random >> 7;
	model->random ^= model->random << 17;
	return model->random % bound;
}

static void take_due(void *context, struct twi_node *node)
{
	struct model *model = context;

	for (int i = 0; i < LIVE; i++) {
		if (model->node[i] == node) {
			cr_assert_leq(model->due_tick[i], model->now);
			model->node[i] = NULL;
			model->fired++;
			return;
		}
	}
	cr_assert_fail("a node came out that was not in the wheel");
}

static uint64_t earliest(const struct model *model)
{
	uint64_t due_tick = TWI_TICK_NEVER;

	for (int i = 0; i < LIVE; i++) {
		if (model->node[i] != NULL && model->due_tick[i] < due_tick)
			due_tick = model->due_tick[i];
	}
	return due_tick;
}

static TWI_WORKER_ONLY void model_change(struct model *model, unsigned bits)
{
	uint64_t i = random_below(model, LIVE);

	if (model->node[i] != NULL) {
		twi_wheel_remove(model->fixture.wheel, model->node[i]);
		wheel_free(&model->fixture, model->node[i]);
		model->node[i] = NULL;
		return;
	}
	model->due_tick[i] =
		model->now + 1 + random_below(model, UINT64_C(1) << random_below(model, bits));
	model->node[i] = wheel_insert(&model->fixture, model->due_tick[i]);
}

/* Changes the wheel and the time between two batches, as can happen when the worker takes a turn
 * between them. */
static TWI_WORKER_ONLY void between_batches(struct model *model, unsigned bits)
{
	for (int i = 0; i < 8; i++)
		model_change(model, bits);
	if (random_below(model, 4) == 0)
		model->now += random_below(model, UINT64_C(1) << random_below(model, bits));
	wheel_judge(&model->fixture);
}

static TWI_WORKER_ONLY void model_advance(struct model *model, unsigned bits)
{
	struct twi_due_batch *batch = &model->fixture.batch;
	uint64_t hint = twi_wheel_next_due(model->fixture.wheel);

	cr_assert_leq(hint, earliest(model));
	cr_assert_gt(hint, model->fixture.wheel->now);
	model->now += random_below(model, UINT64_C(1) << random_below(model, bits));
	for (int round = 0;; round++) {
		twi_wheel_advance(model->fixture.wheel, model->now, batch);
		if (batch->count == 0)
			break;
		for (size_t i = 0; i < batch->count; i++) {
			take_due(model, batch->node[i]);
			wheel_free(&model->fixture, batch->node[i]);
		}
		if (round < 8 && random_below(model, 2) == 0)
			between_batches(model, bits);
	}
	cr_assert_gt(earliest(model), model->now, "something due is still in the wheel");
}

static void model_run(uint32_t slots, unsigned bits, uint64_t seed)
{
	static struct model model;
	uint64_t steps = slowed(STEPS) > STEPS_MIN ? slowed(STEPS) : STEPS_MIN;

	model = (struct model){.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
	wheel_open(&model.fixture, slots);
	for (uint64_t step = 0; step < steps; step++) {
		for (int i = 0; i < 8; i++)
			model_change(&model, bits);
		if (random_below(&model, 3) == 0)
			model_advance(&model, bits);
		wheel_judge(&model.fixture);
	}
	cr_assert_gt(model.fired, 0);
	for (int i = 0; i < LIVE; i++) {
		if (model.node[i] != NULL)
			twi_wheel_remove(model.fixture.wheel, model.node[i]);
	}
	cr_assert_eq(model.fixture.wheel->count, 0);
	wheel_judge(&model.fixture);
	wheel_close(&model.fixture);
}

static void model_runs(uint32_t slots, unsigned bits, uint64_t seeds)
{
	if (slowdown() > 10)
		seeds = 1;
	for (uint64_t seed = 1; seed <= seeds; seed++)
		model_run(slots, bits, seed);
}

Test(wheel, near_timeouts_match_the_model)
{
	model_runs(256, 8, 10);
}

Test(wheel, many_revolutions_match_the_model)
{
	model_runs(16, 14, 10);
}

Test(wheel, one_slot_matches_the_model)
{
	model_runs(1, 10, 5);
}

/* An entry holds only half of the due tick (32 bits), so beyond 2^32 ticks its values repeat. */
Test(wheel, far_beyond_half_a_due_tick)
{
	model_runs(64, 48, 10);
}
