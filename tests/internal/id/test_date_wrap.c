/* SPDX-License-Identifier: MIT */
/*
 * The worker's list of timeouts with a date holds 32 bits of a block's generation (expiry/wall.c).
 * After 2^32 uses, an entry of an ended timeout matches the block's present timeout, which may be
 * another engine's. A step of the wall clock must not file that other timeout. That many uses would
 * take too long, so the test sets the state word of a free block.
 *
 * Seen to fail with this defect: a step files another engine's timeout.
 */
#include "thread/thread.h"
#include "timeout/chain.h"
#include "wall_scene.h"

/* More blocks than a thread keeps. */
enum { BLOCKS = 4096 };

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
