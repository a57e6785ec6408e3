/* SPDX-License-Identifier: MIT */
/**
 * @file fork.h
 * After fork: the engines of the parent in a child, and how a child takes them over. docs/fork.md
 * describes what happens to each timeout, and the edge cases.
 *
 * In a forked child each call on an engine or a timeout of the parent returns -ECHILD at once. A
 * child that only calls exec or ends needs nothing else. If the child needs timeouts, it creates an
 * engine, or calls tw_fork_reinit for each engine of the parent that it wants to continue to use.
 * No call is needed before the fork, and the library runs no code before it.
 */
#ifndef TICKWHEEL_FORK_H
#define TICKWHEEL_FORK_H

#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/** Bits for tw_fork_reinit. */
enum tw_reinit_flag {
	/** Keeps the parent's timeouts, as they were at the fork. Without this flag the engine is
	 * empty. */
	TW_REINIT_KEEP = 1,
	/**
	 * Runs, inside the call, the finaliser of each timeout that was pending at the fork, with
	 * TW_END_UNEXPIRED. So the finaliser can release the child's copy of the argument. This
	 * does not apply to a timeout whose callback the parent was running, or was about to run.
	 * Not together with TW_REINIT_KEEP.
	 */
	TW_REINIT_FINALISE = 2,
};

/**
 * Makes an engine of the parent the forked child's own, as if the child had created it. `flags`
 * decides whether the parent's timeouts are kept. The engine in the parent process is not touched.
 *
 * With TW_REINIT_KEEP, a timeout that was pending at the fork is also pending in the child, with
 * the same deadline and the same handle. If it has become due meanwhile, it runs at once. If the
 * parent was in the timeout's callback, or about to begin it, the callback does not run in the
 * child. If the timeout is periodic, it continues with its next run, on its grid. Options and clock
 * are the parent's. Counters begin at 0 again, and kept timeouts count as scheduled. If any timeout
 * is kept, the engine is started. Without TW_REINIT_KEEP, all handles of the engine's timeouts are
 * stale.
 *
 * The first call of this function or of tw_engine_create in a child also takes over the library
 * itself. If `engine` is NULL, the call does only that. Calls on other engines of the parent and on
 * their timeouts return -ECHILD until these engines are taken over or destroyed.
 *
 * Units: `flags`, bits of enum tw_reinit_flag.
 * Threads: any, but no other thread may use this engine meanwhile. If several threads make the
 *   first call in a child at once, one of them takes over the library, and the others wait.
 * In callback: no (-EDEADLK). A child that was forked in a callback may not call it either.
 * Progress: walks through the memory of all timeouts, which is as large as it was at the process's
 *   peak. The system copies that memory for the child meanwhile. This takes about 0.1 ms for each
 *   1,000 timeouts.
 * Lifetime: the engine's lifetime in this process begins here and lasts until tw_engine_destroy.
 *   Its clock, kinds and arguments must exist in the child, and the thread and dispatch hooks must
 *   work in it.
 * Returns: 0 (NULL: also when there is nothing to do); -EINVAL (unknown bits, or two that exclude
 *   each other); -EBUSY (the engine already belongs to this process); -ESHUTDOWN (the engine was
 *   stopped at the fork, or about to be: it can only be destroyed); -EDEADLK; -ENOMEM; -EOPNOTSUPP
 *   (as from tw_engine_create). After these codes nothing has changed. Otherwise the call may
 *   return the codes of tw_engine_start, because it starts the engine if it keeps timeouts. After
 *   such a code the engine belongs to the child and has the kept timeouts, and tw_engine_start can
 *   be called to try again. The engine's state is then TW_ENGINE_STALLED, which distinguishes this
 *   -ENOMEM from the other one.
 * Since: 0.1.0.
 */
TW_API int tw_fork_reinit(struct tw_engine *engine, uint64_t flags);

/**
 * Returns how many forks lie between this process and the process that created the first engine. A
 * layer above the engine can store this number, and compare it later to find out whether it runs in
 * a forked child. It cannot rely on -ECHILD for this, because calls on an engine that was taken
 * over no longer return it.
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
