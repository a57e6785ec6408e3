/* SPDX-License-Identifier: MIT */
/*
 * Single cases of the wheel: full and empty chunks, memory that fails, overdue timeouts, and the
 * order of timeouts. The wheel's check (the judge) must report damage.
 */
#include "fixture.h"

#include <criterion/criterion.h>

static struct wheel_fixture fixture;

Test(slots, chunks_are_used_again)
{
	static struct twi_node *node[5 * TWI_CHUNK_ENTRIES];
	const size_t count = sizeof node / sizeof node[0];
	uint64_t bytes;

	wheel_open(&fixture, 4);
	for (int round = 0; round < 50; round++) {
		for (size_t i = 0; i < count; i++)
			node[i] = wheel_insert(&fixture, 9);
		/* Removes in a mixed order, from the middle on, so that entries of other chunks
		 * fill the holes. */
		for (size_t i = 0; i < count; i++) {
			struct twi_node *gone = node[(i * 7 + count / 2) % count];

			twi_wheel_remove(fixture.wheel, gone);
			wheel_free(&fixture, gone);
			if (i % 16 == 0)
				wheel_judge(&fixture);
		}
		cr_assert_eq(fixture.wheel->count, 0);
		if (round == 0)
			bytes = twi_wheel_bytes(fixture.wheel);
		cr_assert_eq(twi_wheel_bytes(fixture.wheel), bytes);
	}
	wheel_close(&fixture);
}

static void take_in_order(void *context, struct twi_node *node)
{
	int64_t *last_ns = context;

	cr_assert_geq(twi_node_deadline_ns(node), *last_ns);
	*last_ns = twi_node_deadline_ns(node);
}

Test(slots, by_tick_inside_a_revolution)
{
	int64_t last_ns = 0;

	wheel_open(&fixture, 64);
	for (uint64_t i = 0; i < 1000; i++)
		wheel_insert(&fixture, 1 + i * 37 % 60);
	cr_assert_eq(wheel_advance(&fixture, 63, take_in_order, &last_ns), 1000);
	wheel_close(&fixture);
}

Test(slots, a_long_stall_takes_one_revolution)
{
	wheel_open(&fixture, 64);
	for (uint64_t i = 0; i < 1000; i++)
		wheel_insert(&fixture, 1 + i * 1000003);
	cr_assert_eq(wheel_advance(&fixture, UINT64_C(1) << 50, NULL, NULL), 1000);
	cr_assert_eq(fixture.wheel->now, UINT64_C(1) << 50);
	wheel_close(&fixture);
}

Test(slots, nodes_two_to_the_32_apart_come_apart)
{
	wheel_open(&fixture, 16);
	wheel_insert(&fixture, 5);
	wheel_insert(&fixture, 5 + (UINT64_C(1) << 32));
	wheel_insert(&fixture, 5 + (UINT64_C(2) << 32));
	cr_assert_eq(wheel_advance(&fixture, 4, NULL, NULL), 0);
	cr_assert_eq(wheel_advance(&fixture, 5, NULL, NULL), 1);
	wheel_judge(&fixture);
	cr_assert_eq(wheel_advance(&fixture, 4 + (UINT64_C(1) << 32), NULL, NULL), 0);
	cr_assert_eq(wheel_advance(&fixture, 5 + (UINT64_C(1) << 32), NULL, NULL), 1);
	wheel_judge(&fixture);
	wheel_close(&fixture);
}

Test(slots, overdue_comes_at_once)
{
	struct twi_node *gone;

	wheel_open(&fixture, 16);
	wheel_advance(&fixture, 100, NULL, NULL);
	wheel_insert(&fixture, 50);
	gone = wheel_insert(&fixture, 60);
	wheel_judge(&fixture);
	cr_assert_eq(twi_wheel_next_due(fixture.wheel), 101);
	twi_wheel_remove(fixture.wheel, gone);
	cr_assert_eq(wheel_advance(&fixture, 100, NULL, NULL), 1);
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_close(&fixture);
}

/* If there is no memory for slot entries, no timeout may be lost. Due timeouts must still come out
 * on time. The others get a slot when memory is available again. */
Test(slots, without_memory_for_entries_no_timeout_is_lost)
{
	struct twi_node *gone;

	wheel_open(&fixture, 16);
	fixture.memory_fails = true;
	for (uint64_t i = 0; i < 200; i++)
		wheel_insert(&fixture, 10 + i);
	gone = wheel_insert(&fixture, 11);
	wheel_judge(&fixture);
	cr_assert_eq(fixture.wheel->count, 201);
	cr_assert_eq(twi_wheel_next_due(fixture.wheel), 1);
	cr_assert_eq(wheel_advance(&fixture, 9, NULL, NULL), 0);
	cr_assert_eq(wheel_advance(&fixture, 10, NULL, NULL), 1);
	twi_wheel_remove(fixture.wheel, gone);
	cr_assert_eq(wheel_advance(&fixture, 109, NULL, NULL), 99);
	cr_assert_eq(fixture.wheel->count, 100);
	fixture.memory_fails = false;
	cr_assert_eq(wheel_advance(&fixture, 110, NULL, NULL), 1);
	cr_assert(fixture.wheel->unslotted == NULL && fixture.wheel->unslotted_seen == NULL);
	wheel_judge(&fixture);
	cr_assert_eq(wheel_advance(&fixture, 209, NULL, NULL), 99);
	wheel_close(&fixture);
}

/*
 * The wheel must read each unslotted timeout (one without a slot entry) once for each limit of an
 * advance, not once per batch. Otherwise this test takes minutes.
 */
Test(slots, each_unslotted_timeout_is_read_once_per_limit)
{
	const uint64_t count = 100000;

	wheel_open(&fixture, 16);
	fixture.memory_fails = true;
	for (uint64_t i = 0; i < count; i++)
		wheel_insert(&fixture, 10 + i % 2);
	cr_assert_eq(wheel_advance(&fixture, 10, NULL, NULL), count / 2);
	wheel_judge(&fixture);
	cr_assert_eq(wheel_advance(&fixture, 11, NULL, NULL), count / 2);
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_close(&fixture);
}

/* If time jumps during a catch-up, the wheel must not walk the rest from tick to tick. */
Test(slots, a_stall_inside_a_catch_up_is_one_step)
{
	wheel_open(&fixture, 16);
	for (uint64_t i = 0; i < 4 * TWI_CHUNK_ENTRIES; i++)
		wheel_insert(&fixture, 1 + i);
	twi_wheel_advance(fixture.wheel, 1000, &fixture.batch);
	cr_assert_gt(fixture.batch.count, 0);
	wheel_insert(&fixture, UINT64_C(1) << 40);
	cr_assert_eq(fixture.batch.count + wheel_advance(&fixture, UINT64_C(1) << 48, NULL, NULL),
		     4 * TWI_CHUNK_ENTRIES + 1);
	cr_assert_eq(fixture.wheel->now, UINT64_C(1) << 48);
	wheel_close(&fixture);
}

Test(slots, drain_takes_all)
{
	uint64_t count = 0;

	wheel_open(&fixture, 16);
	for (uint64_t i = 0; i < 500; i++)
		wheel_insert(&fixture, 1 + i % 40);
	fixture.memory_fails = true;
	do {
		twi_wheel_drain(fixture.wheel, &fixture.batch);
		count += fixture.batch.count;
	} while (fixture.batch.count > 0);
	cr_assert_eq(count, 500);
	cr_assert_eq(fixture.wheel->count, 0);
	wheel_judge(&fixture);
	wheel_close(&fixture);
}

/* Removes timeouts from the start, the middle and the end of the unslotted list. Drains the rest
 * in several batches. */
Test(slots, any_unslotted_timeout_can_be_removed)
{
	static struct twi_node *node[3 * TWI_CHUNK_ENTRIES];
	const size_t count = sizeof node / sizeof node[0];
	uint64_t drained = 0;

	wheel_open(&fixture, 16);
	fixture.memory_fails = true;
	for (size_t i = 0; i < count; i++)
		node[i] = wheel_insert(&fixture, 10);
	twi_wheel_remove(fixture.wheel, node[0]);
	twi_wheel_remove(fixture.wheel, node[count / 2]);
	twi_wheel_remove(fixture.wheel, node[count - 1]);
	wheel_judge(&fixture);
	cr_assert_eq(fixture.wheel->count, count - 3);
	/* A second remove must have no effect, because the node is not in the wheel. */
	twi_wheel_remove(fixture.wheel, node[0]);
	cr_assert_eq(fixture.wheel->count, count - 3);
	do {
		twi_wheel_drain(fixture.wheel, &fixture.batch);
		wheel_judge(&fixture);
		drained += fixture.batch.count;
	} while (fixture.batch.count > 0);
	cr_assert_eq(drained, count - 3);
	wheel_close(&fixture);
}

/* Destroy must accept NULL. Create must return NULL when there is no memory. */
Test(slots, create_without_memory_returns_null)
{
	twi_wheel_destroy(NULL);
	wheel_open(&fixture, 16);
	fixture.memory_fails = true;
	cr_assert(twi_wheel_create_hashed(&fixture.allocator, 16, TICK_NS, 0) == NULL);
	wheel_close(&fixture);
}

static TWI_WORKER_ONLY struct twi_chunk *chunk_of(struct twi_node *node)
{
	return twi_place_chunk(node->place);
}

/* The check must report each kind of damage, and must report nothing when the damage is undone. */
Test(slots, the_judge_sees_damage)
{
	struct twi_node *node;
	struct twi_entry *entry;

	wheel_open(&fixture, 16);
	for (uint64_t i = 0; i < 200; i++)
		node = wheel_insert(&fixture, 7);
	entry = &chunk_of(node)->entry[twi_place_number(node->place)];

	wheel_judge(&fixture);
	entry->due += 16;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a wrong due tick");
	entry->due -= 16;
	node->place++;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a wrong place");
	node->place--;
	fixture.wheel->count++;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a wrong count");
	fixture.wheel->count--;
	chunk_of(node)->slot++;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a wrong slot");
	chunk_of(node)->slot--;
	chunk_of(node)->previous->count--;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a chunk with room");
	chunk_of(node)->previous->count++;
	fixture.wheel->now = 7;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "something left behind");
	fixture.wheel->now = 0;
	wheel_judge(&fixture);
	wheel_close(&fixture);
}

/* The check must also report damage to the lists and to the summaries. */
Test(slots, the_judge_sees_damage_to_lists_and_summaries)
{
	struct twi_chunk *middle;
	struct twi_node *node;
	struct twi_node *overdue;

	wheel_open(&fixture, 16);
	wheel_advance(&fixture, 3, NULL, NULL);
	overdue = wheel_insert(&fixture, 2);
	for (uint64_t i = 0; i < 200; i++)
		node = wheel_insert(&fixture, 7);
	fixture.memory_fails = true;
	fixture.wheel->chunks.free = NULL;
	wheel_insert(&fixture, 9);

	wheel_judge(&fixture);
	fixture.wheel->overdue.last = NULL;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "an overdue slot without an end");
	fixture.wheel->overdue.last = chunk_of(overdue);
	fixture.wheel->unslotted->place++;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a limbo that its node does not know");
	fixture.wheel->unslotted->place--;
	middle = chunk_of(node)->previous;
	middle->previous->next = NULL;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a chain cut short");
	middle->previous->next = middle;
	chunk_of(node)->previous = NULL;
	cr_assert(twi_wheel_check(fixture.wheel) != NULL, "a chunk linked to nowhere");
	chunk_of(node)->previous = middle;
	wheel_judge(&fixture);
	wheel_close(&fixture);
}

/*
 * Another thread makes a deadline earlier while the check runs. The change is a multiple of 2^32
 * ticks, so the entry, which holds half of the due tick, does not show it. The check must accept
 * the entry until the worker has filed the node again.
 */
Test(slots, the_judge_accepts_a_reschedule_during_the_check)
{
	struct twi_node *node;

	wheel_open(&fixture, 16);
	node = wheel_insert(&fixture, (UINT64_C(3) << 50) + (UINT64_C(1) << 35) + 5);
	wheel_judge(&fixture);
	twi_store_relaxed(&node->deadline_ns,
			  twi_node_deadline_ns(node) - (INT64_C(1) << 33) * TICK_NS);
	twi_store_relaxed(&node->word, twi_load_relaxed(&node->word) | TWI_WORD_QUEUED);
	wheel_judge(&fixture);
	twi_store_relaxed(&node->word, twi_load_relaxed(&node->word) & ~TWI_WORD_QUEUED);
	cr_assert(twi_wheel_check(fixture.wheel) != NULL);
	wheel_close(&fixture);
}
