/* SPDX-License-Identifier: MIT */
/**
 * @file fork.h
 * After fork: what a child has of its parent's engines, and how it makes them its own. docs/fork.md has
 * what becomes of each timeout, and the edges.
 *
 * In a forked child each call with an engine or a timeout of the parent says -ECHILD, at once. A child
 * that only calls exec or ends needs nothing else. One that wants timeouts calls tw_reinit_after_fork,
 * for each engine that it wants to go on with, in a process where liburcu's fork handlers run.
 */
#ifndef TICKWHEEL_FORK_H
#define TICKWHEEL_FORK_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/** Bits for tw_reinit_after_fork. */
enum tw_reinit_flag {
	/** With the parent's timeouts, as they were at the fork. Without: the engine is empty. */
	TW_REINIT_KEEP = 1,
	/**
	 * The finaliser of each timeout that was pending at the fork runs, with TW_END_HANDED_BACK, in
	 * this call: it releases the child's copy of the argument. Not of those whose callback the parent
	 * was in, or about to be in. Not together with TW_REINIT_KEEP.
	 */
	TW_REINIT_FINALISE = 2,
	/**
	 * The program itself has registered liburcu-bp's handlers (urcu_bp_before_fork,
	 * urcu_bp_after_fork_parent, urcu_bp_after_fork_child) with pthread_atfork, and they have run
	 * around this fork. If they have not, later calls may hang.
	 */
	TW_REINIT_RCU_HANDLED = 4,
};

/**
 * Makes an engine of the parent's a forked child's own, as if it had been created here, with or without
 * the parent's timeouts. The parent's engine is not touched.
 *
 * Kept, a timeout that was pending at the fork waits in the child too, by the same deadline and under
 * the same handle; what was due meanwhile runs at once. A callback that the parent was in, or about to be
 * in, does not run in the child; a periodic timeout goes on with its next run, on its grid. Options and
 * clock are the parent's, counters begin anew (those kept count as scheduled). If any is kept, the engine
 * is started. Not kept, all handles of the engine's timeouts are stale.
 *
 * The first of these calls in a child makes the library the child's, too: from then on it can create
 * engines. NULL as the engine does that alone. What other engines had says -ECHILD until they are taken
 * over, or destroyed.
 *
 * Units: `flags`, bits of enum tw_reinit_flag.
 * Threads: one at a time, and no other thread may use this engine meanwhile. The first of these calls in
 *   a child: no other thread may use the library meanwhile, and only the thread that forked may have
 *   used it before.
 * In callback: no (-EDEADLK), nor in a child that was forked in one.
 * Progress: goes through all memory of timeouts, the peak of the process, and the child gets its own
 *   copy of that memory: some 0.1 ms for each 1,000.
 * Lifetime: of the engine, from here on: until tw_engine_destroy in this process. Its clock, kinds and
 *   arguments must be there in the child, and the thread and dispatch hooks must work in it.
 * Returns: 0 (NULL: also when there is nothing to do); -EINVAL (unknown bits, or two that exclude each
 *   other); -EBUSY (the engine is this process's already; or another thread has used the library);
 *   -EPERM (no handlers of liburcu's have run around the fork); -ESHUTDOWN (it was stopped at the fork,
 *   or about to be: it can only be destroyed); -EDEADLK; -ENOMEM; -EOPNOTSUPP (as from
 *   tw_engine_create). After these all is as before. Else, from its start, what tw_engine_start returns:
 *   then the engine is the child's and has what was kept (TW_ENGINE_STALLED; to tell this -ENOMEM from
 *   the other), and tw_engine_start tries again.
 * Since: 0.1.0.
 */
TW_API int tw_reinit_after_fork(struct tw_engine *engine, uint64_t flags);

/**
 * Registers liburcu-bp's fork handlers, for all forks from now on. Only for a program in which nobody
 * else does: run twice they hang in fork, for ever. It cannot be undone.
 *
 * From then on fork waits for grace periods under way (tw_engine_stop, and destroy with a virtual
 * clock), so it must not be called inside a read-side section of liburcu-bp.
 *
 * Units: none.
 * Threads: any; the first call counts.
 * In callback: yes.
 * Progress: allocates (libc).
 * Lifetime: that of the process, and of its children.
 * Returns: 0, also when it was done before; -ENOMEM; -EPERM, in a child of a process that had an engine,
 *   which was forked without them: a lock of liburcu's may be held for ever there, and its own fork
 *   would wait for it.
 * Since: 0.1.0.
 */
TW_API int tw_fork_handlers_enable(void);

/**
 * How many forks lie between this process and the one that made its first engine. What remembers it
 * knows whether it is in a child: layers above the engine have to, since an engine that was taken over
 * says -ECHILD no more.
 *
 * Units: forks.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0 or more.
 * Since: 0.1.0.
 */
TW_API int tw_fork_generation(void);

TW_END_DECLS

#endif
