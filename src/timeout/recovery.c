/* SPDX-License-Identifier: MIT */
#include "timeout/recovery.h"

#include "base/atomic.h"

#include <errno.h>

/* The mark: this bit is set in a node's engine pointer if the engine is the parent's. */
#define OF_PARENT ((uintptr_t)1)

static bool name_marked(const struct tw_engine *engine)
{
	return ((uintptr_t)engine & OF_PARENT) != 0;
}

static struct tw_engine *name_of(const struct tw_engine *engine, uintptr_t mark)
{
	return (struct tw_engine *)(((uintptr_t)engine & ~OF_PARENT) | mark);
}

static void node_name(struct twi_node *node, struct tw_engine *name)
{
	/*
	 * RELAXED: no other thread writes this pointer. A thread that has the handle reads the old
	 * or the new value, and both name the same engine.
	 */
	twi_store_relaxed(&node->engine, name);
}

/*
 * Returns whether a timeout is scheduled and has not ended. If so, the child also finds all its
 * fields. A block that never was a timeout has generation 0.
 */
static bool word_alive(uint64_t word)
{
	enum twi_word_state state = twi_word_state(word);

	return twi_word_generation(word) != 0 && state != TWI_WORD_CANCELLED &&
	       state != TWI_WORD_EXPIRED;
}

static uint64_t word_look(struct twi_node *node)
{
	return twi_load_acquire(&node->word); /* E70: acquires the timeout's fields */
}

/* Returns the second block of a chain, or NULL. */
static struct twi_chain *chain_of(struct twi_node *node, uint64_t word)
{
	struct twi_chain *chain = twi_node_chain(node);

	return (word & TWI_WORD_CHAIN) != 0 && twi_slab_has(chain) ? chain : NULL;
}

/*
 * Marks a chain's second block as in use, by the state DUE, or removes that mark, by CANCELLED. The
 * mark is unambiguous: otherwise this block's word is always in a final state, and no other block
 * without an engine is in DUE.
 */
static void chain_state(struct twi_chain *chain, enum twi_word_state state)
{
	/* RELAXED, load and store: no other thread uses the library. */
	twi_store_relaxed(&chain->word, twi_word_to(twi_load_relaxed(&chain->word), state));
}

/*
 * In the first pass: marks each timeout that is alive. If a timeout already has the mark, ends it
 * (recovery.h).
 */
static void block_mark(void *context, void *block)
{
	struct twi_node *node = block;
	uint64_t word = word_look(node);
	struct tw_engine *engine = twi_node_engine(node);
	struct twi_chain *chain;

	(void)context;
	/* Among the blocks that look alive, only a chain's second block has no engine. */
	if (!word_alive(word) || engine == NULL)
		return;
	if (name_marked(engine)) {
		node_name(node, name_of(engine, 0));
		/* RELAXED: no other thread uses the library. */
		twi_store_relaxed(&node->word, twi_word_to(word, TWI_WORD_CANCELLED));
		return;
	}
	node_name(node, name_of(engine, OF_PARENT));
	chain = chain_of(node, word);
	if (chain != NULL)
		chain_state(chain, TWI_WORD_DUE);
}

/*
 * In the second pass: frees each block that is not alive, and unmarks the second blocks of chains.
 */
static void block_free(void *stock, void *block)
{
	struct twi_node *node = block;
	uint64_t word = word_look(node);

	if (!word_alive(word))
		twi_pool_give(stock, block);
	else if (twi_node_engine(node) == NULL)
		chain_state(block, TWI_WORD_CANCELLED);
}

static void blocks_take(void)
{
	struct twi_stock found;

	twi_slab_inherit();
	twi_pool_forget(&twi_thread_self.stock);
	twi_slab_visit_inherited(block_mark, NULL);
	twi_stock_init(&found, false);
	twi_slab_visit_inherited(block_free, &found);
	twi_stock_flush(&found);
	twi_fork_take();
}

int twi_recovery_take(void)
{
	if (!twi_forked())
		return 0;
	if (twi_fork_inside())
		return -EDEADLK;
	twi_fork_take_begin();
	if (twi_forked())
		blocks_take();
	twi_fork_take_end();
	return 0;
}

struct visitor {
	const struct tw_engine *name;
	twi_recovery_visitor *visit;
	void *context;
};

static void block_visit(void *context, void *block)
{
	const struct visitor *visitor = context;
	struct twi_node *node = block;

	if (twi_node_engine(node) != visitor->name)
		return;
	node_name(node, name_of(visitor->name, 0));
	visitor->visit(visitor->context, node, word_look(node));
}

void twi_recovery_visit(const struct tw_engine *engine, twi_recovery_visitor *visit, void *context)
{
	struct visitor visitor = {
		.name = name_of(engine, OF_PARENT),
		.visit = visit,
		.context = context,
	};

	twi_slab_visit_inherited(block_visit, &visitor);
}

void twi_recovery_end(struct twi_thread *thread, struct twi_node *node, uint64_t word)
{
	/* RELAXED: no thread has changed the word since the fork. */
	struct twi_chain *chain = chain_of(node, twi_load_relaxed(&node->word));

	/*
	 * E4: a thread that reads this word also sees all that was done with the timeout before its
	 * end.
	 */
	twi_store_release(&node->word, word);
	if (chain != NULL)
		twi_pool_give(&thread->stock, chain);
	twi_pool_give(&thread->stock, node);
}

bool twi_handle_inherited(struct tw_handle handle)
{
	struct twi_node *node = twi_node_of_handle(handle);
	uint64_t word;

	if (twi_forked())
		return true;
	word = word_look(node);
	return twi_word_same(word, handle.generation) && name_marked(twi_node_engine(node));
}

bool twi_handle_inherited_release(struct tw_handle handle)
{
	twi_handle_release(handle);
	return twi_handle_inherited(handle);
}

/*
 * Reports a release to ThreadSanitizer when a block is about to become a timeout: all that the
 * caller has done so far happens before the timeout's callback.
 */
static void block_taken(void *block)
{
	struct twi_node *node = block;
	/* RELAXED: the caller owns the block, so no other thread changes its word. */
	uint64_t generation = twi_word_next_generation(twi_load_relaxed(&node->word));

	twi_handle_release((struct tw_handle){.node = node, .generation = generation});
}

static TWI_CONSTRUCTOR_FIRST void taken_report(void)
{
	if (twi_tsan_there())
		twi_pool_taken = block_taken;
}
