/* SPDX-License-Identifier: MIT */
/*
 * An entry of the worker's list of timeouts with a date may outlive its timeout (expiry/wall.c). A
 * step of the wall clock must not use it for the next timeout of the same block.
 *
 * An entry holds 32 bits of the block's generation. After 2^32 uses, it matches the block's present
 * timeout, which may be another engine's. That many uses would take too long, so a test sets the
 * state word of a free block.
 *
 * Seen to fail with these defects: a step files another engine's timeout; a step uses an entry
 * without comparing the generation, so a timeout that is in no list is marked as listed.
 */
#include "engine/engine.h"
#include "expiry/wall.h"
#include "fault.h"
#include "thread/thread.h"
#include "timeout/chain.h"
#include "wall_scene.h"

/* More blocks than a thread keeps. */
enum { BLOCKS = 4096 };
/* How many entries the list has room for before it grows for the first time. */
enum { ROOM = 512 };

static struct wall_scene first, second;
static atomic_int runs;

static void loop_open(struct wall_scene *scene)
{
	struct tw_options options = fixture_options();

	options.flags = TW_ENGINE_LOOP;
	wall_open(scene, &options);
}

/* Schedules a timeout with a date, lets the worker list it, and cancels it. Its entry stays in the
 * list. Returns its handle. */
static struct tw_handle entry_make(struct wall_scene *scene)
{
	struct tw_handle handle = must_wall(scene, DATE_NS + 10 * HOUR_NS, &count_kind, &runs);

	fixture_flush(&scene->fixture);
	check_int(tw_cancel(handle), TW_CANCEL_DONE);
	fixture_flush(&scene->fixture);
	return handle;
}

/* Lets the next timeout with a date take the free node, with another block as its second block. */
static void next_make(struct twi_node *node)
{
	struct twi_stock *stock = &twi_thread()->stock;
	static void *held[BLOCKS];
	size_t count = 0;
	void *block;

	held[count++] = twi_pool_take_warm(stock);
	check_true(held[0] != node);
	while ((block = twi_pool_take_warm(stock)) != node) {
		check_true(count < BLOCKS && block != NULL);
		held[count++] = block;
	}
	while (count > 1)
		twi_pool_give(stock, held[--count]);
	twi_pool_put_warm(stock, node);
	twi_pool_put_warm(stock, held[0]);
}

/* Schedules a date that gets the handle's node, in the generation 2^32 later. */
static struct tw_handle reborn(struct wall_scene *scene, struct tw_handle ended)
{
	const uint64_t round = (UINT64_C(1) << 32) * TWI_WORD_GENERATION;
	struct twi_node *node = ended.node;
	struct tw_handle handle;

	next_make(node);
	twi_store_relaxed(&node->word, twi_word_to(ended.generation + round - TWI_WORD_GENERATION,
						   TWI_WORD_CANCELLED));
	handle = must_wall(scene, DATE_NS + 10 * HOUR_NS, &count_kind, &runs);
	check_true(handle.node == node);
	check_true(handle.generation == ended.generation + round);
	fixture_flush(&scene->fixture);
	return handle;
}

Test(date_wrap, a_step_files_no_timeout_of_another_engine)
{
	struct tw_handle ended, other;
	int64_t deadline_ns;

	loop_open(&first);
	loop_open(&second);
	ended = entry_make(&first);
	other = reborn(&second, ended);
	deadline_ns = twi_node_deadline_ns(other.node);
	wall_step(&first, 5 * HOUR_NS);
	check_int(twi_node_deadline_ns(other.node), deadline_ns);
	wall_pass(&first, 20 * HOUR_NS);
	check_int(tw_timeout_state(other), TW_STATE_INIT);
	wall_pass(&second, 10 * HOUR_NS + second.fixture.tick_ns);
	check_int(tw_timeout_state(other), TW_STATE_EXPIRED);
	fixture_close(&first.fixture);
	fixture_close(&second.fixture);
}

static struct tw_handle listed[ROOM];

static void list_fill(void)
{
	for (int i = 0; i < ROOM; i++)
		listed[i] = must_wall(&first, DATE_NS + 10 * HOUR_NS, &count_kind, &runs);
	fixture_flush(&first.fixture);
}

/* Cancels one of the listed timeouts: the one whose entry the worker checks after all others.
 * Returns its handle. */
static struct tw_handle entry_end(void)
{
	const struct twi_wall *wall = twi_wall_of(&first.fixture.engine->worker);
	size_t at = (wall->scavenge_at + ROOM - 1) % ROOM;
	const struct twi_node *node = twi_block_at((uint32_t)(wall->listed[at] >> 32));
	int i = 0;

	check_int(wall->listed_count, ROOM);
	while (i < ROOM - 1 && listed[i].node != node)
		i++;
	check_int(tw_cancel(listed[i]), TW_CANCEL_DONE);
	fixture_flush(&first.fixture);
	return listed[i];
}

/*
 * There is no memory for the entry of a timeout, so the worker must check the timeout's date again
 * and again. It must not rely on the entry that an earlier timeout of the same block has left.
 */
Test(date_wrap, an_entry_stands_for_no_later_timeout)
{
	struct tw_handle ended, next;
	struct fault fault;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	loop_open(&first);
	list_fill();
	ended = entry_end();
	next_make(ended.node);
	fault_arm(&fault, 1, INT64_MAX);
	next = must_wall(&first, DATE_NS + 5 * HOUR_NS, &count_kind, &runs);
	check_true(next.node == ended.node);
	fixture_flush(&first.fixture);
	check_at_least(fault.failed, 1);
	/* The step makes the date come before the worker checks it again. */
	wall_step(&first, 5 * HOUR_NS - NS_PER_S / 20);
	wall_step(&first, -5 * HOUR_NS);
	fault_disarm(&fault);
	wall_pass(&first, NS_PER_S / 5);
	/* While the worker lists these timeouts, it drops the entry of the ended timeout. */
	list_fill();
	check_int(tw_timeout_state(next), TW_STATE_INIT);
	wall_step(&first, 6 * HOUR_NS);
	check_int(tw_timeout_state(next), TW_STATE_EXPIRED);
	fixture_close(&first.fixture);
}
