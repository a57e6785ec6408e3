/* SPDX-License-Identifier: MIT */
/*
 * After fork the child has the parent's engines, but not their workers. Calls return -ECHILD until
 * the child takes over the engines (engine/recover.c).
 *
 * The child's view. fork copies the memory while the other threads continue. For each of them, the
 * copy contains all writes up to some point, and none after it. If the copy contains what a thread
 * wrote after it had read a value, it also contains the write of that value. So the child's view is
 * that of a thread that acquires all values at that moment. If the child finds a value that was
 * stored with release, it also finds the stores before that release (E70). If nothing orders two
 * stores, the child may find one without the other.
 *
 * The library runs no code before the fork. No lock of the library is held while other threads
 * exist, except that of a take-over, which the child makes anew. Other files describe what the
 * child gets: readers in thread/rcu.c, lane numbers and stocks in thread/thread.c, timeouts in
 * timeout/recovery.h, engines in engine/recover.c.
 */
#ifndef TWI_THREAD_FORK_H
#define TWI_THREAD_FORK_H

#include <stdbool.h>
#include <stdint.h>

/*
 * [const] between forks. How often this process and its ancestors have forked while they had
 * engines. If it is not 0, calls check for each handle whether it is the parent's. Programs with
 * ThreadSanitizer begin with TWI_FORK_LOOK, so that this check always runs (base/tsan.h).
 */
extern uint32_t twi_fork_epoch;

/*
 * A bit of the epoch that does not count forks. If it is set, handles are checked as after a fork.
 */
#define TWI_FORK_LOOK (UINT32_C(1) << 31)

/* [atomic E161] The value of twi_fork_epoch when this process last made the library its own. */
extern _Atomic uint32_t twi_fork_taken;

/* Makes forks count from now on. Called when an engine is made. */
void twi_fork_watch(void);

/* Returns whether forks count. While they do not, no engine exists that a child could inherit. */
bool twi_fork_watched(void);

/*
 * Counts a fork. Called in each child if forks count, before any other function of the library.
 * `from_callback`: the forking thread was inside a callback.
 */
void twi_fork_count(bool from_callback);

/* Returns whether this is a forked child that has not made the library its own yet. */
bool twi_forked(void);

/* Makes the library this process's own from here on. */
void twi_fork_take(void);

/* Returns whether this process was forked inside a callback of the parent. */
bool twi_fork_inside(void);

/*
 * Begins and ends a take-over of the library. Only one thread of the child makes it; the others
 * wait.
 */
void twi_fork_take_begin(void);
void twi_fork_take_end(void);

#endif
