/* SPDX-License-Identifier: MIT */
/*
 * What a forked child inherits: the blocks of the slabs, and in them the parent's timeouts as they were
 * at the fork. Queues, rings, wheels and stocks are not looked at: other threads stood in the middle of
 * their steps there. The word of a timeout tells what it is, since each of its steps is one store or one
 * swap, and all that belongs to a state is written before (E70).
 *
 * Taking over. Once per child: whatever is at rest is free, whoever had it; whatever is not is marked in
 * its engine's name (bit 0), and stays so until that engine is taken over, or freed. So a handle tells
 * whose it is without a look at an engine that may not be there any more. What is marked already is of an
 * engine that the parent itself had not taken over: it ends.
 *
 * Who owns what. While the library is taken over: the calling thread, all of it. Later, what is marked:
 * who takes over or frees the engine of that name. Everybody else's are the blocks that are not marked.
 */
#ifndef TWI_TIMEOUT_HERITAGE_H
#define TWI_TIMEOUT_HERITAGE_H

#include "base/compiler.h"
#include "mech/fork.h"
#include "mech/thread.h"
#include "timeout/chain.h"
#include "timeout/node.h"

#include <stdbool.h>

/* The library becomes this process's. No other thread uses it. */
void twi_heritage_take(void);

/*
 * Goes through the timeouts of one engine of the parent: each is the visitor's, and its engine has its
 * name back. After twi_heritage_take; other threads may use other engines.
 */
typedef void twi_heir_visit(void *context, struct twi_node *node, uint64_t word);
void twi_heritage_visit(const struct tw_engine *engine, twi_heir_visit *visit, void *context);

/* A timeout that is the caller's ends; what it had is free. `word`: the one that it ends with. */
void twi_heritage_end(struct twi_thread *thread, struct twi_node *node, uint64_t word);

/* Whether the handle names a timeout that stayed with the parent. For a process that was forked. */
bool twi_handle_inherited(struct tw_handle handle);

static inline bool twi_handle_of_parent(struct tw_handle handle)
{
	return TWI_UNLIKELY(twi_fork_epoch != 0) && twi_handle_inherited(handle);
}

/* heritage.c: the same, and reports to ThreadSanitizer what the caller publishes (base/tsan.h). */
bool twi_handle_inherited_release(struct tw_handle handle);

/* As twi_handle_of_parent, for a call after which the callback sees what the caller did before. */
static inline bool twi_handle_of_parent_release(struct tw_handle handle)
{
	return TWI_UNLIKELY(twi_fork_epoch != 0) && twi_handle_inherited_release(handle);
}

#endif
