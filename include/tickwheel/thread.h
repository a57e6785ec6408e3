/* SPDX-License-Identifier: MIT */
/**
 * @file thread.h
 * Attaches threads to the library, and detaches them. A thread's first call costs more than later
 * ones, because the thread registers with the library and takes memory. To pay that cost early,
 * call tw_thread_attach.
 */
#ifndef TICKWHEEL_THREAD_H
#define TICKWHEEL_THREAD_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Does at once the setup work that the calling thread's first schedule or cancel would otherwise
 * do. Optional.
 *
 * Units: none.
 * Threads: any; the call attaches the calling thread. A second call does no harm.
 * In callback: yes.
 * Progress: lock-free; a system call if it needs memory.
 * Lifetime: until tw_thread_detach or thread exit.
 * Returns: 0; -ENOMEM if there is no memory for the first timeouts (the thread may still call the
 *   library; its next call tries again).
 * Since: 0.1.0.
 */
TW_API int tw_thread_attach(void);

/**
 * Gives back the resources that the calling thread keeps: its free timeouts and its lane (its
 * queues to the workers). Optional, because thread exit does the same. If the thread calls the
 * library again, it is attached again.
 *
 * Units: none.
 * Threads: any; the call detaches the calling thread.
 * In callback: no (-EBUSY); the thread stays attached.
 * Progress: lock-free.
 * Lifetime: none.
 * Returns: 0; -EBUSY from inside a callback.
 * Since: 0.1.0.
 */
TW_API int tw_thread_detach(void);

TW_END_DECLS

#endif
