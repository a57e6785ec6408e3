/* SPDX-License-Identifier: MIT */
/**
 * @file thread.h
 * A thread's first call costs more, because the thread registers with liburcu and takes memory. To
 * pay that cost early, call tw_thread_attach.
 */
#ifndef TICKWHEEL_THREAD_H
#define TICKWHEEL_THREAD_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Does now the work that the calling thread's first schedule or cancel would do. Optional.
 *
 * Units: none.
 * Threads: the caller attaches itself; twice is harmless.
 * In callback: yes.
 * Progress: blocks shortly inside liburcu (its registry).
 * Lifetime: until tw_thread_detach or thread exit.
 * Returns: 0; -ENOMEM if there is no memory for the first timeouts (the thread can still be used
 *   and tries again).
 * Since: 0.1.0.
 */
TW_API int tw_thread_attach(void);

/**
 * Gives back the free timeouts and the lane that the calling thread keeps. Optional, because thread
 * exit does the same. If the thread calls the library again, it attaches again.
 *
 * Units: none.
 * Threads: the caller detaches itself.
 * In callback: no effect.
 * Progress: lock-free.
 * Lifetime: none.
 * Returns: 0; -EBUSY from inside a callback.
 * Since: 0.1.0.
 */
TW_API int tw_thread_detach(void);

TW_END_DECLS

#endif
