/* SPDX-License-Identifier: MIT */
/*
 * Compares an open wheel (that of an engine in loop mode) with a list, at random. There are many
 * advances inside a tick, with insertions, removals and reschedules between them. Each advance must
 * give out exactly the timeouts that are due by its time. They must come by deadline, except those
 * whose deadline had passed when it was set. An advance inside a tick must not look at timeouts
 * that are not due.
 *
 * Seen to fail with these defects: the timeouts of the present tick stay in their slots; a node of
 * the sorted run (fine.h) comes out at its old deadline although it was rescheduled; the timeouts
 * of the sorted run and of the fine wheel come out one group after the other instead of by
 * deadline; a timeout whose deadline is the time of the advance stays until the next advance.
 */
#include "fixture.h"
#include "slowdown.h"

#include <criterion/criterion.h>
#include <stdlib.h>

enum { SEEDS = 300, LIVE = 300, STEPS = 300, CROWD = 100000, POLLS = 2000 };

static struct wheel_fixture fixture;
static struct {
	struct twi_node *node;
	int64_t deadline_ns;
	bool passed; /* whether the deadline had already passed when it was set */
} item[LIVE];
static int64_t now_ns, last_ns;
static uint64_t due_count;

static TWI_WORKER_BEGINS void open_wheel(uint32_t slots);
static TWI_WORKER_UNCHECKED void open_wheel(uint32_t slots)
{
	wheel_open(&fixture, slots);
	cr_assert(twi_wheel_order(fixture.wheel, true));
	now_ns = 0;
}

static int64_t random_deadline_ns(void)
{
	int64_t reach_ns = INT64_C(1) << (1 + rand() % 20);

	return now_ns - 2 + rand() % reach_ns;
}

static void deadline_set(int i, int64_t deadline_ns)
{
	item[i].deadline_ns = deadline_ns;
	item[i].passed = deadline_ns <= now_ns;
}

static TWI_WORKER_ONLY void item_insert(int i)
{
	deadline_set(i, random_deadline_ns());
	item[i].node = wheel_node(&fixture, 1);
	(void)twi_node_begin(item[i].node, NULL, NULL, NULL, item[i].deadline_ns);
	twi_wheel_insert(fixture.wheel, item[i].node);
}

/* Reschedules as the owner of a loop does. If the deadline becomes earlier, the node is filed again
 * at once. If it becomes later, the node stays until the wheel gives it out. */
static TWI_WORKER_ONLY void item_move(int i)
{
	struct twi_node *node = item[i].node;
	int64_t deadline_ns = random_deadline_ns();
	bool earlier = deadline_ns < item[i].deadline_ns;
	bool passed = item[i].passed && !earlier;

	deadline_set(i, deadline_ns);
	/* A timeout that was overdue stays overdue until it comes out, also if its deadline
	 * becomes later. */
	item[i].passed |= passed;
	twi_store_relaxed(&node->deadline_ns, deadline_ns);
	twi_store_relaxed(&node->word, twi_load_relaxed(&node->word) | TWI_WORD_RESCHEDULED);
	if (!earlier)
		return;
	twi_wheel_remove(fixture.wheel, node);
	twi_wheel_insert(fixture.wheel, node);
}

static TWI_WORKER_ONLY void some_operation(void)
{
	int i = rand() % LIVE;

	if (item[i].node == NULL) {
		item_insert(i);
	} else if (rand() % 2 == 0) {
		item_move(i);
	} else {
		twi_wheel_remove(fixture.wheel, item[i].node);
		wheel_free(&fixture, item[i].node);
		item[i].node = NULL;
	}
}

/* Takes a node as a worker does: if the node was rescheduled to a later time, it goes back into the
 * wheel. */
static TWI_WORKER_ONLY void take_due(struct twi_node *node)
{
	int i = 0;

	while (i < LIVE && item[i].node != node)
		i++;
	cr_assert(i < LIVE);
	if (item[i].deadline_ns > now_ns) {
		twi_wheel_insert(fixture.wheel, node);
		return;
	}
	if (!item[i].passed) {
		cr_assert(item[i].deadline_ns >= last_ns);
		last_ns = item[i].deadline_ns;
	}
	item[i].node = NULL;
	wheel_free(&fixture, node);
}

static TWI_WORKER_ONLY void poll(void)
{
	last_ns = INT64_MIN;
	do {
		uint64_t limit = twi_wheel_limit(fixture.wheel, now_ns);

		twi_wheel_advance(fixture.wheel, limit, &fixture.batch);
		for (size_t i = 0; i < fixture.batch.count; i++)
			take_due(fixture.due[i]);
	} while (fixture.batch.count > 0);
	for (int i = 0; i < LIVE; i++)
		cr_assert(item[i].node == NULL || item[i].deadline_ns > now_ns);
	cr_assert(!twi_wheel_owes(fixture.wheel));
	wheel_judge(&fixture);
}

static TWI_WORKER_UNCHECKED void one_seed(unsigned seed)
{
	srand(seed);
	open_wheel(1U << rand() % 8);
	for (int i = 0; i < LIVE; i++)
		item[i].node = NULL;
	for (int step = 0; step < STEPS; step++) {
		for (int i = rand() % 20; i > 0; i--)
			some_operation();
		now_ns += rand() % (INT64_C(1) << rand() % 16);
		poll();
	}
	now_ns += INT64_C(1) << 40;
	poll();
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_close(&fixture);
}

Test(open, advances_inside_a_tick_give_out_what_is_due)
{
	for (unsigned seed = 1; seed <= slowed(SEEDS); seed++)
		one_seed(seed);
}

static void count_due(void *context, struct twi_node *node)
{
	(void)context;
	(void)node;
	due_count++;
}

/*
 * One tick has far more timeouts than the sorted run (fine.h) holds, and many advances fall inside
 * that tick. The test counts the moves between levels: each timeout may move once for each level
 * of the fine wheel.
 */
Test(open, a_crowded_tick_is_not_searched_by_each_poll)
{
	uint64_t moved;

	open_wheel(64);
	for (int i = 0; i < CROWD; i++) {
		struct twi_node *node = wheel_node(&fixture, 1);

		(void)twi_node_begin(node, NULL, NULL, NULL, 50 * TICK_NS + i % TICK_NS);
		twi_wheel_insert(fixture.wheel, node);
	}
	now_ns = 50 * TICK_NS - 1;
	wheel_advance(&fixture, twi_wheel_limit(fixture.wheel, now_ns), count_due, NULL);
	moved = fixture.wheel->cascaded;
	for (int poll_number = 1; poll_number <= POLLS; poll_number++) {
		now_ns = 50 * TICK_NS - 1 + poll_number / 2;
		wheel_advance(&fixture, twi_wheel_limit(fixture.wheel, now_ns), count_due, NULL);
		cr_assert_eq(due_count, (uint64_t)poll_number / 2 * (CROWD / TICK_NS));
	}
	cr_assert_eq(due_count, CROWD);
	cr_assert_leq(fixture.wheel->cascaded - moved, 4 * CROWD);
	wheel_close(&fixture);
}
