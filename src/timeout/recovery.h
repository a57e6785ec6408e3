/* SPDX-License-Identifier: MIT */
/*
 * The timeouts that a forked child inherits. The child finds them in the slabs, as they were at the
 * fork. It looks at no queue, ring, wheel or stock, because other threads may have been in the
 * middle of a step there. The state word of a timeout is enough: it changes by single stores or
 * swaps, and all fields that belong to a state are written before it (E70).
 *
 * The child takes over the library once. A block whose state is final is free, no matter which of
 * the parent's threads owned it. In any other block the child marks the engine pointer (bit 0)
 * until that engine is taken over or freed. So a handle shows that its timeout is the parent's,
 * even if the engine is gone. A block may be marked already, because the parent was itself a forked
 * child and had not taken over that engine. Such a timeout ends.
 *
 * Ownership. Until the library is taken over, no thread of the child has blocks, and no call takes
 * any. During the take-over the calling thread owns all blocks. Afterwards a marked block belongs
 * to the thread that takes over or frees its engine. Unmarked blocks are used as usual by all
 * threads.
 */
#ifndef TWI_TIMEOUT_RECOVERY_H
#define TWI_TIMEOUT_RECOVERY_H

#include "base/compiler.h"
#include "thread/fork.h"
#include "thread/thread.h"
#include "timeout/chain.h"
#include "timeout/node.h"

#include <stdbool.h>

/*
 * Makes the library this process's own, if this is a forked child that has not done so. Returns 0,
 * or -EDEADLK if the child was forked inside a call of the parent: the frames of that call still use
 * blocks.
 */
int twi_recovery_take(void);

/*
 * Passes each timeout of one engine of the parent to `visit`, which then owns the timeout. The mark
 * in its engine pointer is removed before. Must be called after twi_recovery_take. Other threads
 * may use other engines meanwhile.
 */
typedef void twi_recovery_visitor(void *context, struct twi_node *node, uint64_t word);
void twi_recovery_visit(const struct tw_engine *engine, twi_recovery_visitor *visit, void *context);

/* Ends a timeout that the caller owns, and frees its blocks. `word` becomes its state word. */
void twi_recovery_end(struct twi_thread *thread, struct twi_node *node, uint64_t word);

/*
 * Returns whether the handle names a timeout that stayed with the parent. Must be called only in a
 * forked process.
 */
bool twi_handle_inherited(struct tw_handle handle);

static inline bool twi_handle_of_parent(struct tw_handle handle)
{
	return TWI_UNLIKELY(twi_fork_epoch != 0) && twi_handle_inherited(handle);
}

/*
 * recovery.c: does the same as twi_handle_inherited. Also reports a release by the caller to
 * ThreadSanitizer (base/tsan.h).
 */
bool twi_handle_inherited_release(struct tw_handle handle);

/*
 * Does the same as twi_handle_of_parent, and reports a release by the caller to ThreadSanitizer.
 * Used by calls after which the callback must see the caller's earlier writes.
 */
static inline bool twi_handle_of_parent_release(struct tw_handle handle)
{
	return TWI_UNLIKELY(twi_fork_epoch != 0) && twi_handle_inherited_release(handle);
}

#endif
