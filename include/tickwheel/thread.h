/* SPDX-License-Identifier: MIT */
/**
 * @file thread.h
 * A thread's first call costs more (it registers with liburcu and takes memory). Who minds pays
 * ahead.
 */
#ifndef TICKWHEEL_THREAD_H
#define TICKWHEEL_THREAD_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Does now what the calling thread's first schedule or cancel would do. Optional.
 *
 * Units: none.
 * Threads: the caller attaches itself; twice is harmless.
 * In callback: yes.
 * Progress: blocks shortly inside liburcu (its registry).
 * Lifetime: until tw_thread_detach or the thread's end.
 * Returns: 0; -ENOMEM when no memory for the first timeouts can be had (the thread can still be
 *   used and tries again).
 * Since: 0.1.0.
 */
TW_API int tw_thread_attach(void);

/**
 * Gives back what the calling thread keeps (its free timeouts, its lane). Optional: a thread's end
 * does the same. A later call of the library attaches again.
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
