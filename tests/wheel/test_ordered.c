/* SPDX-License-Identifier: MIT */
/*
 * An ordered wheel must give out due timeouts by deadline, in batches. Timeouts that wait for the
 * next batch can be removed from any place. They count as pending, and the wheel's check covers
 * them. Without memory for slots, each timeout must still come out once, and not before its time.
 */
#include "fixture.h"
#include "slowdown.h"
#include "wheel/sorted.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { COUNT = 2000 };

static struct wheel_fixture fixture;
static struct twi_node *node[COUNT];
static int64_t last_ns;

/* Opens a wheel with COUNT timeouts. Their deadlines are spread over `ticks` ticks. */
static TWI_WORKER_BEGINS void ordered_open(uint64_t ticks);
static TWI_WORKER_UNCHECKED void ordered_open(uint64_t ticks)
{
	wheel_open(&fixture, 64);
	cr_assert(twi_wheel_order(fixture.wheel, false));
	last_ns = 0;
	for (int i = 0; i < COUNT; i++) {
		int64_t deadline_ns = (int64_t)((uint64_t)rand() % (ticks * TICK_NS));

		node[i] = wheel_node(&fixture, 1);
		(void)twi_node_begin(node[i], NULL, NULL, NULL, deadline_ns);
		twi_wheel_insert(fixture.wheel, node[i]);
	}
}

/* The check must report a sorted run that is out of order, and a node with a wrong place. */
Test(ordered, the_judge_sees_damage_to_the_run)
{
	static struct twi_sorted sorted;
	uint64_t count = 0;

	wheel_open(&fixture, 64);
	twi_sorted_init(&sorted);
	for (uint64_t i = 0; i < 4; i++)
		twi_sorted_add(&sorted, wheel_node(&fixture, 1), 40 - 10 * i);
	twi_sorted_sort(&sorted);
	cr_assert(twi_sorted_check(&sorted, &count) == NULL);
	cr_assert_eq(count, 4);
	sorted.entry[2].since -= 11;
	cr_assert(twi_sorted_check(&sorted, &count) != NULL, "a run out of order");
	sorted.entry[2].since += 11;
	sorted.entry[2].node->place += TWI_BLOCK_BYTES;
	cr_assert(twi_sorted_check(&sorted, &count) != NULL, "a wrong place");
	sorted.entry[2].node->place -= TWI_BLOCK_BYTES;
	cr_assert(twi_sorted_check(&sorted, &count) == NULL);
	wheel_close(&fixture);
}

static void take_in_order(void *context, struct twi_node *taken)
{
	(void)context;
	cr_assert_geq(twi_node_deadline_ns(taken), last_ns);
	last_ns = twi_node_deadline_ns(taken);
}

Test(ordered, ordered_wheel_gives_out_by_deadline)
{
	for (uint64_t ticks = 1; ticks < 1000000; ticks *= 10) {
		ordered_open(ticks);
		cr_assert_eq(wheel_advance(&fixture, ticks + 1, take_in_order, NULL), COUNT);
		cr_assert_eq(fixture.wheel->count, 0);
		wheel_judge(&fixture);
		wheel_close(&fixture);
	}
}

/* The clock moves tick by tick. No timeout may wait for a later tick. */
Test(ordered, step_by_step_no_timeout_waits_a_tick)
{
	uint64_t count = 0;

	ordered_open(500);
	for (uint64_t tick = 1; tick <= 500; tick++) {
		count += wheel_advance(&fixture, tick, take_in_order, NULL);
		cr_assert(last_ns < (int64_t)(tick * TICK_NS));
	}
	cr_assert_eq(count, COUNT);
	wheel_close(&fixture);
}

/* Takes one batch. Its nodes are not used again, so they stay readable. */
static TWI_WORKER_ONLY uint64_t batch_take(void)
{
	twi_wheel_advance(fixture.wheel, 10, &fixture.batch);
	for (size_t i = 0; i < fixture.batch.count; i++)
		take_in_order(NULL, fixture.due[i]);
	return fixture.batch.count;
}

/* After one batch, removes every other timeout that still waits. */
Test(ordered, removed_nodes_of_a_tick_do_not_come)
{
	uint64_t left = COUNT;

	ordered_open(1);
	left -= batch_take();
	cr_assert_eq(fixture.wheel->count, left);
	cr_assert_eq(twi_wheel_next_due(fixture.wheel), fixture.wheel->now + 1);
	wheel_judge(&fixture);
	for (int i = 0; i < COUNT; i++) {
		struct twi_node *gone = node[i];

		if (gone->place == TWI_PLACE_NONE || i % 2 != 0)
			continue;
		twi_wheel_remove(fixture.wheel, gone);
		cr_assert_eq(gone->place, TWI_PLACE_NONE);
		left--;
		if (i % 16 == 0)
			wheel_judge(&fixture);
	}
	cr_assert_eq(fixture.wheel->count, left);
	cr_assert_eq(wheel_advance(&fixture, 20, take_in_order, NULL), left);
	wheel_close(&fixture);
}

Test(ordered, drain_returns_the_rest_of_a_tick)
{
	uint64_t left = COUNT;

	ordered_open(1);
	left -= batch_take();
	do {
		twi_wheel_drain(fixture.wheel, &fixture.batch);
		left -= fixture.batch.count;
		for (size_t i = 0; i < fixture.batch.count; i++)
			wheel_free(&fixture, fixture.due[i]);
	} while (fixture.batch.count > 0);
	cr_assert_eq(left, 0);
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_close(&fixture);
}

/* Overdue timeouts must come first, in the order of their insertion, and then those that are left
 * from the batch before. */
Test(ordered, overdue_comes_first)
{
	struct twi_node *late;
	uint64_t left = COUNT;

	ordered_open(1);
	left -= batch_take();
	late = wheel_insert(&fixture, 1);
	twi_wheel_advance(fixture.wheel, 10, &fixture.batch);
	cr_assert_eq(fixture.due[0], late);
	left -= fixture.batch.count - 1;
	last_ns = twi_node_deadline_ns(fixture.due[fixture.batch.count - 1]);
	wheel_free(&fixture, late);
	cr_assert_eq(wheel_advance(&fixture, 10, take_in_order, NULL), left);
	wheel_close(&fixture);
}

/* Timeouts for which there is no memory for a slot entry must come out too, each exactly once. */
Test(ordered, without_memory_each_is_given_out_once)
{
	uint64_t count;

	wheel_open(&fixture, 64);
	cr_assert(twi_wheel_order(fixture.wheel, false));
	fixture.memory_fails = true;
	for (int i = 0; i < COUNT; i++)
		node[i] = wheel_insert(&fixture, 1 + (uint64_t)rand() % 1000);
	count = wheel_advance(&fixture, 500, NULL, NULL);
	fixture.memory_fails = false;
	count += wheel_advance(&fixture, 1001, NULL, NULL);
	cr_assert_eq(count, COUNT);
	wheel_judge(&fixture);
	wheel_close(&fixture);
}

/* If there is no memory for sorting, the wheel is not ordered. It must still be destroyed like any
 * other. */
Test(ordered, wheel_without_memory_to_sort_is_not_ordered)
{
	wheel_open(&fixture, 64);
	fixture.memory_fails = true;
	cr_assert(!twi_wheel_order(fixture.wheel, false));
	fixture.memory_fails = false;
	wheel_close(&fixture);
}

enum { ROOM = 5000 };

/* Checks that the node's deadline is before `end_ns`. The order is not checked, because without
 * memory there is none. */
static void take_due(const int64_t *end_ns, struct twi_node *taken)
{
	cr_assert_lt(twi_node_deadline_ns(taken), *end_ns);
}

/*
 * Memory for slots fails and works in turn. A timeout may lack a slot from the start, or lose it on
 * the move between two slots. It must still come out once and in its own advance, also in batches
 * and while others are inserted.
 */
Test(ordered, while_memory_fails_at_times_each_comes_out_once_and_in_time)
{
	for (int round = 0; round < 50; round++) {
		uint64_t limit = 0;
		uint64_t left = 0;

		wheel_open(&fixture, 1U << rand() % 8);
		cr_assert(twi_wheel_order(fixture.wheel, false));
		last_ns = 0;
		for (int step = 0; step < 60; step++) {
			uint64_t reach = UINT64_C(1) << (1 + rand() % 14);

			fixture.memory_fails = rand() % 2 == 0;
			for (int i = rand() % ROOM / 10; i > 0; i--, left++)
				wheel_insert(&fixture, limit + 1 + (uint64_t)rand() % reach);
			limit += (uint64_t)rand() % reach;
			for (int i = rand() % 8; i > 0; i--) {
				int64_t end_ns = (int64_t)(limit * TICK_NS);

				fixture.memory_fails = rand() % 2 == 0;
				twi_wheel_advance(fixture.wheel, limit, &fixture.batch);
				for (size_t at = 0; at < fixture.batch.count; at++) {
					take_due(&end_ns, fixture.due[at]);
					wheel_free(&fixture, fixture.due[at]);
				}
				left -= fixture.batch.count;
			}
			cr_assert_eq(fixture.wheel->count, left);
			wheel_judge(&fixture);
		}
		cr_assert_eq(wheel_advance(&fixture, limit + (1 << 15), NULL, NULL), left);
		cr_assert_eq(fixture.wheel->count, 0);
		wheel_close(&fixture);
	}
}

/* Many nodes share few deadlines, in a few ticks. More nodes have the same deadline than the run
 * (fine.h) holds. */
enum { CROWD = 30000, DEADLINES = 4 };

static struct twi_node *crowd[CROWD];
static uintptr_t inserted;
static uintptr_t last_inserted;

/* Inserts a node, whose argument is its number in the order of insertion. */
static TWI_WORKER_ONLY void crowd_insert(int i)
{
	int64_t deadline_ns = 50 * TICK_NS + rand() % DEADLINES * TICK_NS / 2;

	(void)twi_node_begin(crowd[i], NULL, NULL, (void *)++inserted, deadline_ns);
	twi_wheel_insert(fixture.wheel, crowd[i]);
}

static void take_in_sequence(struct twi_node *taken)
{
	uintptr_t number = (uintptr_t)twi_node_arg(taken);

	cr_assert_geq(twi_node_deadline_ns(taken), last_ns);
	if (twi_node_deadline_ns(taken) != last_ns)
		last_inserted = 0;
	cr_assert_gt(number, last_inserted);
	last_ns = twi_node_deadline_ns(taken);
	last_inserted = number;
}

/* Takes a few batches. Puts back half of the last batch. */
static TWI_WORKER_ONLY uint64_t crowd_take(uint64_t limit, int batches)
{
	uint64_t taken = 0;

	for (; batches > 0; batches--) {
		size_t kept;

		twi_wheel_advance(fixture.wheel, limit, &fixture.batch);
		kept = batches > 1 ? fixture.batch.count : (fixture.batch.count + 1) / 2;
		for (size_t i = 0; i < kept; i++)
			take_in_sequence(fixture.due[i]);
		twi_wheel_put_back(fixture.wheel, &fixture.due[kept], fixture.batch.count - kept);
		taken += kept;
	}
	return taken;
}

/*
 * Checks that nodes with equal deadlines come out in the order of insertion. Removals leave the
 * slots in disorder. Nodes are removed and inserted again while others with their deadline come
 * out.
 */
static TWI_WORKER_UNCHECKED void equal_deadlines(unsigned seed)
{
	uint64_t left = CROWD;

	srand(seed);
	wheel_open(&fixture, 64);
	cr_assert(twi_wheel_order(fixture.wheel, false));
	for (int i = 0; i < CROWD; i++) {
		crowd[i] = wheel_node(&fixture, 1);
		crowd_insert(i);
	}
	last_ns = INT64_MIN;
	last_inserted = 0;
	while (left > 0) {
		for (int i = rand() % 300; i > 0; i--) {
			int which = rand() % CROWD;

			/* Skips a timeout that may have been given out: it must not come again. */
			if (twi_node_deadline_ns(crowd[which]) <= last_ns ||
			    crowd[which]->place == TWI_PLACE_NONE)
				continue;
			twi_wheel_remove(fixture.wheel, crowd[which]);
			(void)twi_node_begin(crowd[which], NULL, NULL, (void *)++inserted,
					     twi_node_deadline_ns(crowd[which]));
			twi_wheel_insert(fixture.wheel, crowd[which]);
		}
		left -= crowd_take(100, 1 + rand() % 20);
	}
	wheel_judge(&fixture);
	wheel_close(&fixture);
}

Test(ordered, equal_deadlines_come_in_the_order_of_insertion)
{
	for (unsigned seed = 1; seed <= slowed(20); seed++)
		equal_deadlines(seed);
}
