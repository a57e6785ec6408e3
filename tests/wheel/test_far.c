/* SPDX-License-Identifier: MIT */
/*
 * Far and crowded timeouts. The first test compares the wheel with a list for 10,000 seeds: delays
 * of up to 2^53 ticks, clock steps of up to 2^48 ticks, and a check of the wheel at some steps. The
 * second has a million timeouts pending when the clock stalls for an hour of 1 us ticks. The wheel
 * must catch up in less than 2 s of CPU. The third has a million far timeouts in one slot, which
 * must make no near timeout late.
 *
 * Seen to fail with these defects: levels reach too far; a crowded slot is not emptied ahead of its
 * time.
 */
#include "fixture.h"
#include "slowdown.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <time.h>

enum { SEEDS = 10000, LIVE = 24, STEPS = 40, MILLION = 1000000 };

/* The most entries that one advance may move down: a few slices. A slice of the wheel is 64
 * chunks. */
enum { WORST_MOVED = 8 * 64 * TWI_CHUNK_ENTRIES };

#define DELAY_BITS 53
#define STEP_BITS 48
/* A tick after this one would begin after 2^63 ns, which no deadline can be. */
#define LAST_TICK (UINT64_C(1) << 53)

struct far {
	struct wheel_fixture fixture;
	struct twi_node *node[LIVE];
	uint64_t due_tick[LIVE];
	uint64_t now, random, fired;
};

static uint64_t random_next(struct far *far)
{
	far->random ^= far->random << 13;
	far->random ^= far->random >> 7;
	far->random ^= far->random << 17;
	return far->random;
}

/* Returns a random number of 1 to `bits` bits. All lengths are equally likely. */
static uint64_t random_bits(struct far *far, unsigned bits)
{
	return random_next(far) >> (64 - 1 - random_next(far) % bits);
}

static uint64_t due_after(struct far *far)
{
	uint64_t due_tick = far->now + 1 + random_bits(far, DELAY_BITS);

	return due_tick < LAST_TICK ? due_tick : LAST_TICK;
}

static void take_due(void *context, struct twi_node *node)
{
	struct far *far = context;

	for (int i = 0; i < LIVE; i++) {
		if (far->node[i] == node) {
			cr_assert_leq(far->due_tick[i], far->now);
			far->node[i] = NULL;
			far->fired++;
			return;
		}
	}
	cr_assert_fail("a node came out that was not in the wheel");
}

static TWI_WORKER_UNCHECKED void step_change(struct far *far, int i)
{
	if (far->node[i] == NULL) {
		far->due_tick[i] = due_after(far);
		far->node[i] = wheel_insert(&far->fixture, far->due_tick[i]);
	} else if (random_next(far) % 4 == 0) {
		twi_wheel_remove(far->fixture.wheel, far->node[i]);
		wheel_free(&far->fixture, far->node[i]);
		far->node[i] = NULL;
	}
}

static TWI_WORKER_UNCHECKED void step_advance(struct far *far)
{
	uint64_t next = twi_wheel_next_due(far->fixture.wheel);
	uint64_t step = random_bits(far, STEP_BITS);

	for (int i = 0; i < LIVE; i++)
		cr_assert(far->node[i] == NULL || next <= far->due_tick[i], "the hint is late");
	if (far->now + step < LAST_TICK)
		far->now += step;
	wheel_advance(&far->fixture, far->now, take_due, far);
	for (int i = 0; i < LIVE; i++)
		cr_assert(far->node[i] == NULL || far->due_tick[i] > far->now, "late");
	/* Checks only sometimes, because the check walks over all slots. */
	if (random_next(far) % 16 == 0)
		wheel_judge(&far->fixture);
}

static TWI_WORKER_UNCHECKED void seed_run(struct far *far, uint64_t seed)
{
	*far = (struct far){.random = seed * UINT64_C(0x9e3779b97f4a7c15) | 1};
	wheel_open(&far->fixture, 16);
	for (int step = 0; step < STEPS; step++) {
		for (int i = 0; i < LIVE / 4; i++)
			step_change(far, (int)(random_next(far) % LIVE));
		step_advance(far);
	}
	for (int i = 0; i < LIVE; i++) {
		if (far->node[i] != NULL) {
			twi_wheel_remove(far->fixture.wheel, far->node[i]);
			wheel_free(&far->fixture, far->node[i]);
		}
	}
	cr_assert_eq(far->fixture.wheel->count, 0);
	wheel_close(&far->fixture);
}

Test(far, ten_thousand_seeds)
{
	static struct far far;
	uint64_t fired = 0;

	for (uint64_t seed = 1; seed <= slowed(SEEDS); seed++) {
		seed_run(&far, seed);
		fired += far.fired;
	}
	cr_assert_gt(fired, slowed(SEEDS));
}

static double cpu_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A million timeouts are spread over an hour of 1 us ticks. One advance must take them all out. */
Test(far, a_stall_of_an_hour_of_microsecond_ticks_is_caught_up_in_time)
{
	static struct wheel_fixture fixture;
	const uint64_t hour = UINT64_C(3600000000);
	const uint64_t count = slowed(MILLION);
	uint64_t random = 1;
	double began_s;

	wheel_open(&fixture, 4096);
	for (uint64_t i = 0; i < count; i++) {
		random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
		wheel_insert(&fixture, 1 + (random >> 20) % hour);
	}
	began_s = cpu_s();
	cr_assert_eq(wheel_advance(&fixture, hour, NULL, NULL), count);
	cr_assert_lt(cpu_s() - began_s, 2.0 * slowdown());
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_close(&fixture);
}

/*
 * Schedules a crowd of far timeouts within `width` ticks, and a near timeout every 64 ticks.
 * Returns the greatest number of entries that one advance moves down before the crowd is due.
 */
static uint64_t crowd_worst(uint64_t width)
{
	static struct wheel_fixture fixture;
	const uint64_t count = slowed(MILLION);
	const uint64_t begin = UINT64_C(1) << 22;
	/* The crowd must not begin at the first tick of a slot, because it would be due as soon
	 * as the slot begins. */
	const uint64_t crowd = begin + (UINT64_C(1) << 17) + 60;
	uint64_t worst = 0;

	wheel_open(&fixture, 4096);
	for (uint64_t i = 0; i < count; i++)
		wheel_insert(&fixture, crowd + i % width);
	for (uint64_t tick = 64; tick < crowd; tick += tick < crowd - 8192 ? 64 : 1) {
		uint64_t before = fixture.wheel->cascaded;

		wheel_insert(&fixture, tick);
		cr_assert_eq(wheel_advance(&fixture, tick, NULL, NULL), 1);
		if (fixture.wheel->cascaded - before > worst)
			worst = fixture.wheel->cascaded - before;
	}
	cr_assert_eq(wheel_advance(&fixture, crowd + width, NULL, NULL), count);
	wheel_close(&fixture);
	return worst;
}

/*
 * A million timeouts are in one far slot, or in one tick. The wheel must move them down some
 * thousand at a time, in slices. Otherwise it would move all of them at once when the slot begins.
 */
Test(far, a_crowded_slot_makes_no_near_one_late)
{
	static const uint64_t widths[] = {4096, 1};

	for (size_t i = 0; i < 2; i++) {
		uint64_t worst = crowd_worst(widths[i]);

		cr_assert_leq(worst, WORST_MOVED, "an advance moved %llu",
			      (unsigned long long)worst);
	}
}
