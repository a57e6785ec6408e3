/* SPDX-License-Identifier: MIT */
/*
 * Random operations against a brute-force list: after every step of the clock exactly what the
 * list says has fired; nothing early, late, twice, or after its cancel.
 */
#include "probe.h"

#include "random.h"

#include <string.h>

enum { LIVE = 300, STEPS = 1500 };

struct model_timeout {
	struct tw_handle handle;
	int64_t due_ns;
	atomic_int runs;
	bool live;
};

struct model {
	struct fixture fixture;
	struct random random;
	/* Deadlines up to this many bits of nanoseconds away. */
	unsigned int bits;
	struct model_timeout timeouts[LIVE];
	int expired;
	int cancelled;
};

/* The first boundary strictly after the deadline, and after now for what is overdue. */
static int64_t due_of(const struct model *model, int64_t deadline_ns)
{
	int64_t tick_ns = model->fixture.tick_ns;

	if (deadline_ns < model->fixture.now_ns)
		deadline_ns = model->fixture.now_ns;
	if (deadline_ns > INT64_MAX - tick_ns)
		return INT64_MAX;
	return (deadline_ns / tick_ns + 1) * tick_ns;
}

static void model_schedule(struct model *model, struct model_timeout *timeout)
{
	int64_t delay_ns = random_magnitude(&model->random, model->bits);

	if (random_below(&model->random, 20) == 0)
		delay_ns = -delay_ns;
	timeout->runs = 0;
	timeout->live = true;
	timeout->due_ns = due_of(model, delay_ns > INT64_MAX - model->fixture.now_ns
						? INT64_MAX
						: model->fixture.now_ns + delay_ns);
	timeout->handle =
		must_schedule(model->fixture.engine, delay_ns, &count_kind, &timeout->runs);
}

static void model_cancel(struct model *model, struct model_timeout *timeout)
{
	check_int(tw_cancel(timeout->handle), TW_CANCEL_DONE);
	timeout->live = false;
	model->cancelled++;
}

static void model_advance(struct model *model)
{
	int64_t step_ns = random_magnitude(&model->random, model->bits - 2);
	struct model_timeout *timeout;
	int i;

	if (model->fixture.now_ns > (INT64_MAX >> 1) - step_ns)
		step_ns = 1;
	fixture_advance(&model->fixture, step_ns);
	for (i = 0; i < LIVE; i++) {
		timeout = &model->timeouts[i];
		if (!timeout->live)
			continue;
		check_int(timeout->runs, timeout->due_ns <= model->fixture.now_ns);
		model->expired += timeout->runs;
		timeout->live = timeout->runs == 0;
	}
}

static void model_step(struct model *model)
{
	struct model_timeout *timeout;
	int i;

	for (i = 0; i < 5; i++) {
		timeout = &model->timeouts[random_below(&model->random, LIVE)];
		if (!timeout->live)
			model_schedule(model, timeout);
		else if (random_below(&model->random, 2))
			model_cancel(model, timeout);
	}
	if (random_below(&model->random, 3) == 0)
		model_advance(model);
}

static void model_run(uint64_t seed, uint64_t tick_ns, uint32_t slots, unsigned int bits)
{
	static struct model model;
	struct tw_options options = fixture_options();
	struct tw_stats stats;
	int i;

	memset(&model, 0, sizeof(model));
	model.random.state = seed;
	model.bits = bits;
	options.tick_ns = tick_ns;
	options.slots = slots;
	fixture_open(&model.fixture, &options);
	for (i = 0; i < STEPS; i++)
		model_step(&model);
	stats = stats_of(model.fixture.engine);
	check_int(stats.expired, model.expired);
	check_int(stats.cancelled, model.cancelled);
	fixture_close(&model.fixture);
}

Test(model, near_delays)
{
	uint64_t seed;

	for (seed = 1; seed <= 8; seed++)
		model_run(seed, 1000000, 64, 30);
}

Test(model, small_wheels)
{
	uint64_t seed;

	for (seed = 11; seed <= 16; seed++)
		model_run(seed, 1000, (uint32_t)(seed - 10), 16);
}

/* wahern's: delays up to 2^53 ticks. */
Test(model, delays_up_to_two_to_the_53_ticks)
{
	uint64_t seed;

	for (seed = 21; seed <= 26; seed++)
		model_run(seed, 1000, 256, 62);
}

Test(model, odd_tick)
{
	uint64_t seed;

	for (seed = 31; seed <= 34; seed++)
		model_run(seed, 7777, 32, 24);
}
