/* SPDX-License-Identifier: MIT */
/*
 * The part of a periodic timeout that is not in its node. It is a second block of the pool, and the
 * node's `arg` points to it. So no memory is allocated between two runs, and the nodes of one-shot
 * timeouts need no extra fields.
 *
 * Ownership. The producer owns scheduled_ns, period_ns, random and runs_left until its push.
 * Afterwards the thread that runs the chain owns them, and hands them from one run to the next (E4,
 * by the node's state word). All other fields are constant. When the chain ends, the thread that
 * makes the last step of the node's state word frees the block. That is a canceller that finds the
 * chain waiting, the thread that ends its last run, or stop.
 *
 * The block was a node before and will be one again, so stale handles and stale ring entries may
 * name it. A thread that follows such a handle or entry reads the block as a node. Where a node has
 * its state word, it finds a final state of a later generation. Where a node has its engine, it
 * finds NULL. The other fields that it may read are atomics, which are set when the chain begins,
 * after the word (E4).
 */
#ifndef TWI_TIMEOUT_CHAIN_H
#define TWI_TIMEOUT_CHAIN_H

#include "timeout/node.h"

#include <tickwheel/periodic.h>

struct twi_chain {
	int64_t scheduled_ns; /* [handoff E4] the present run's scheduled time, without jitter */
	uint64_t random;      /* [handoff E4] */
	_Alignas(16) _Atomic uint64_t word; /* [atomic E4] a final state, except in recovery.c */
	_Atomic int64_t period_ns;          /* [handoff E4] */
	_Atomic(struct tw_engine *) engine; /* [atomic E4] always NULL */
	_Atomic uint64_t rule;              /* [handoff E4] see twi_rule_of, twi_rule_of_wall */
	_Atomic(void *) arg;                /* [handoff E4] the user's argument */
	/* [handoff E4] runs left, the waiting one included; 0: no limit */
	uint64_t runs_left;
};

_Static_assert(sizeof(struct twi_chain) == TWI_BLOCK_BYTES, "a chain's own is one block");
_Static_assert(offsetof(struct twi_chain, word) == offsetof(struct twi_node, word),
	       "a stale handle finds a word");
_Static_assert(offsetof(struct twi_chain, period_ns) == offsetof(struct twi_node, deadline_ns) &&
		       offsetof(struct twi_chain, engine) == offsetof(struct twi_node, engine) &&
		       offsetof(struct twi_chain, rule) == offsetof(struct twi_node, kind) &&
		       offsetof(struct twi_chain, arg) == offsetof(struct twi_node, arg),
	       "a stale reader finds atomics");

/*
 * The mode of a chain that waits for a date of the wall clock (expiry/wall.h). It has one run,
 * period_ns is the date, and scheduled_ns is not used. Users cannot set this mode.
 */
#define TWI_RULE_WALL UINT32_C(0xff)

/* The longest slack that fits into a rule: more than two years. */
#define TWI_RULE_SLACK_MOST (UINT64_MAX >> 8)

static inline uint64_t twi_rule_of(const struct tw_period *period)
{
	return period->mode | (uint64_t)period->missed << 8 | (uint64_t)period->jitter_ppm << 32;
}

/*
 * Returns the rule of a chain with a date. It holds a copy of the kind's slack, because the worker
 * needs the slack while the chain waits. A cancel may end the chain at any time, and then the
 * program may free the kind. A slack that does not fit is left out, which is permitted: the timeout
 * then fires as soon as possible.
 */
static inline uint64_t twi_rule_of_wall(uint64_t slack_ns)
{
	return TWI_RULE_WALL | (slack_ns <= TWI_RULE_SLACK_MOST ? slack_ns << 8 : 0);
}

static inline uint64_t twi_rule_slack_ns(uint64_t rule)
{
	return rule >> 8;
}

static inline uint32_t twi_rule_mode(uint64_t rule)
{
	return (uint32_t)(rule & 0xff);
}

static inline uint32_t twi_rule_missed(uint64_t rule)
{
	return (uint32_t)(rule >> 8 & 0xff);
}

static inline uint32_t twi_rule_jitter_ppm(uint64_t rule)
{
	return (uint32_t)(rule >> 32);
}

/*
 * RELAXED: the field is written when the chain begins and by the thread that runs the chain, and is
 * published with the node. If a thread that does not run the chain reads a date here, it must check
 * the node's state word afterwards.
 */
static inline int64_t twi_chain_period_ns(struct twi_chain *chain)
{
	return twi_load_relaxed(&chain->period_ns);
}

/* Sets the period. Must be called inside a run of the chain. RELAXED: as above. */
static inline void twi_chain_period_set(struct twi_chain *chain, int64_t period_ns)
{
	twi_store_relaxed(&chain->period_ns, period_ns);
}

/* RELAXED: the rule is constant, and is published with the node. */
static inline uint64_t twi_chain_rule(struct twi_chain *chain)
{
	return twi_load_relaxed(&chain->rule);
}

/*
 * E4: pairs with twi_chain_begin. If a reader gets the argument of a later owner of the block, it
 * then finds in the node's state word that this chain has ended.
 */
static inline void *twi_chain_arg(struct twi_chain *chain)
{
	return twi_load_acquire(&chain->arg); /* E4: see above */
}

/*
 * Returns the chain of a periodic node. The caller must have seen the timeout alive, and must own
 * the node, so that the chain cannot end meanwhile.
 */
static inline struct twi_chain *twi_node_chain(struct twi_node *node)
{
	return twi_node_arg(node);
}

/*
 * Turns a block into a new chain. Unless the chain waits for a date, the caller has set
 * scheduled_ns, the time of the first run.
 */
static inline void twi_chain_begin(struct twi_chain *chain, const struct tw_period *period,
				   uint64_t rule, void *arg, uint64_t random)
{
	/* RELAXED: the caller owns the block, so no other thread changes its word. */
	uint64_t generation = twi_word_next_generation(twi_load_relaxed(&chain->word));

	/* E4: as in twi_node_begin. But no thread ever gets a handle that names this block. */
	twi_store_release(&chain->word, twi_word_to(generation, TWI_WORD_CANCELLED));
	/* E4: the new generation must be visible before each new field. */
	twi_store_release(&chain->period_ns, period->period_ns);
	twi_store_release(&chain->engine, NULL); /* E4: as above */
	twi_store_release(&chain->rule, rule);   /* E4: as above */
	twi_store_release(&chain->arg, arg);     /* E4: as above */
	chain->random = random;
	chain->runs_left = period->runs;
}

#endif
