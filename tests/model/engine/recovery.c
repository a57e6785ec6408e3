/* SPDX-License-Identifier: MIT */
/*
 * What a forked child finds in memory (E70). If the state word says that a timeout is pending, its
 * fields must belong to its generation, and its caller must have the handle. This must hold for
 * each code path that creates a timeout. If a slab is in the table of slabs, its header must be
 * initialised. The header of each memory block in a wheel's list of blocks (wheel/chunk.h) must be
 * initialised, too.
 *
 * The model has no fork. Instead one thread reads the memory with acquire loads, at any moment. A
 * child's copy of the memory holds the values that such loads return (thread/fork.h). The harness
 * recovery_taken is about the threads of the child.
 *
 * Seen to fail with these defects:
 * - twi_node_begin() stores the new generation and the pending state in one step, before the
 *   fields;
 * - twi_node_begin_here() or twi_node_offer() stores the state word relaxed;
 * - slab_make() stores the slab's place in `twi_slab_table` relaxed;
 * - a block of chunks is put into its list by a relaxed store;
 * - the caller's handle is written after the timeout is pending;
 * - twi_fork_take() or twi_fork_take_end() stores relaxed;
 * - twi_forked() loads relaxed, or twi_fork_take_begin() exchanges relaxed;
 * - two threads take over at once.
 */
#include "world.h"

#include "timeout/recovery.h"
#include "wheel/chunk.h"

static struct probe one, two;

static void own(void)
{
	MODEL_CHECK(tw_loop_enter(world.engine) == 0);
}

static void schedule(struct probe *probe, const struct tw_kind *kind)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_NOW_NS + WORLD_TICK_NS, kind, probe,
				   &probe->handle) == 0);
}

static void schedule_one(void)
{
	schedule(&one, &bare_kind);
}

static void open_here(void)
{
	struct tw_options options = world_options();

	options.flags = TW_ENGINE_LOOP;
	world_open(&options);
	world_threads(2, WORLD_STOCK_FILLED);
	world.has_worker = true;
	model_as(0, own);
	model_as(0, schedule_one);
}

static void open_far(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	model_as(0, schedule_one);
}

static void reuse(void)
{
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
	schedule(&two, &probe_kind);
	MODEL_CHECK(two.handle.node == one.handle.node);
}

static void child_looks(void)
{
	struct twi_node *node = one.handle.node;
	uint64_t word = twi_load_acquire(&node->word);
	bool alive = twi_word_pending(word) || twi_word_state(word) == TWI_WORD_OWNED;

	if (!alive || twi_word_same(word, one.handle.generation))
		return;
	MODEL_CHECK(twi_load_relaxed(&node->kind) == &probe_kind);
	MODEL_CHECK(twi_load_relaxed(&node->arg) == &two);
	/* A child may run the timeout's callback, which relies on the handle. */
	MODEL_CHECK(two.handle.node == node && two.handle.generation == twi_word_generation(word));
}

static void reserve(void)
{
	MODEL_CHECK(tw_memory_reserve(UINT64_C(1) << 16) == 0);
}

static void count(void *context, void *block)
{
	(void)block;
	++*(uint64_t *)context;
}

/* Reads the header as a forked child does. If it is not initialised yet, this read is a race. */
static void child_visits(void)
{
	uint64_t blocks = 0;

	twi_slab_visit_inherited(count, &blocks);
	MODEL_CHECK(blocks == 0);
}

enum { CHUNKS_BYTES = 64 << 10 };

static _Alignas(TWI_CHUNK_BYTES) char chunks_memory[CHUNKS_BYTES];
static struct twi_chunk_pool chunks;

static void *chunks_allocate(void *context, size_t bytes, size_t alignment)
{
	(void)context;
	MODEL_CHECK(bytes == CHUNKS_BYTES && alignment == TWI_CHUNK_BYTES);
	return chunks_memory;
}

static void chunks_release(void *context, void *memory, size_t bytes, size_t alignment)
{
	(void)context;
	MODEL_CHECK(memory == chunks_memory && bytes == CHUNKS_BYTES &&
		    alignment == TWI_CHUNK_BYTES);
}

static const struct tw_allocator chunks_allocator = {
	.allocate = chunks_allocate,
	.release = chunks_release,
};

static void open_chunks(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	twi_chunk_pool_init(&chunks, &chunks_allocator);
}

static TWI_WORKER_UNCHECKED void grow(void)
{
	MODEL_CHECK(twi_chunk_take(&chunks) != NULL);
}

/* Frees the blocks of chunks as a forked child does: through its own copy of the list. */
static TWI_WORKER_UNCHECKED void child_frees(void)
{
	struct twi_chunk_pool copy;

	twi_chunk_pool_init(&copy, &chunks_allocator);
	twi_store_relaxed(&copy.blocks, twi_load_acquire(&chunks.blocks));
	twi_chunk_pool_done(&copy);
}

/* A child after a fork: its threads take over the library, or find that it is taken (E161). */
static void open_child(void)
{
	world_open(NULL);
	twi_fork_count(false);
}

/* Takes a block and writes to it. If another thread has the same block, this is a race. */
static void block_use(void)
{
	uint64_t *block = twi_pool_take(&twi_thread()->stock);

	MODEL_CHECK(block != NULL);
	*block = 1;
}

static void child_takes(void)
{
	MODEL_CHECK(twi_recovery_take() == 0);
	block_use();
}

static void child_finds(void)
{
	if (!twi_forked())
		block_use();
}

MODEL_HARNESS(recovery_taken, .proves = "one thread takes over the library, others see it whole",
	      .setup = open_child, .thread = {child_takes, child_takes, child_finds},
	      .preemptions = 2, .weak = 1, .random_runs = 200);
MODEL_HARNESS(recovery_here,
	      .proves = "a timeout that is pending in its owner's wheel is complete in memory",
	      .setup = open_here, .thread = {reuse, child_looks}, .preemptions = 2, .weak = 1,
	      .random_runs = 200);
MODEL_HARNESS(recovery_far, .proves = "a timeout that is pending in a ring is complete in memory",
	      .setup = open_far, .thread = {reuse, child_looks}, .preemptions = 2, .weak = 1,
	      .random_runs = 200);
MODEL_HARNESS(recovery_slab, .proves = "a slab in the table has an initialised header",
	      .setup = open_far, .thread = {reserve, child_visits}, .preemptions = 2, .weak = 1,
	      .random_runs = 200);
MODEL_HARNESS(recovery_chunks, .proves = "a block of chunks in the list has an initialised header",
	      .setup = open_chunks, .thread = {grow, child_frees}, .preemptions = 2, .weak = 1,
	      .random_runs = 200);
