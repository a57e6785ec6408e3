/* SPDX-License-Identifier: MIT */
/**
 * @file dump.h
 * An engine as text, for a person who looks for a fault.
 */
#ifndef TICKWHEEL_DUMP_H
#define TICKWHEEL_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/** Receives text piece by piece: `bytes` of it, no NUL behind. Valid during the call only. */
typedef void tw_dump_hook(void *context, const char *text, size_t bytes);

/**
 * Writes what an engine has and does: state, options, counters, pending timeouts by level and by the
 * time until their deadline, the ten fullest slots, what is cancelled and not yet reclaimed, what is
 * on its way in the lanes. docs/debugging.md explains each line; the text is for people, and may change
 * with any version.
 *
 * The wheel is the worker's: it looks at the begin of its next turn, while the caller waits; in a
 * callback on the worker, and for the owner of a loop, the caller looks itself. The look visits each
 * pending timeout and holds up expiry meanwhile (some 0.1 us each, where none is in the cache). The
 * hook runs in the caller, when that is over. Whatever the result, but for -EINVAL and -ECHILD, the
 * hook gets all that can be told without the worker.
 *
 * Units: `timeout_ns`, how long to wait for the worker at most; TW_NEVER: without bound; 0 or less:
 *   not at all.
 * Threads: any, concurrently; the worker looks for one after the other.
 * In callback: yes; in an executor's it waits for the worker. Two callbacks on the workers of two
 *   engines that each dump the other's wait until the time is up, with TW_NEVER for ever.
 * Progress: blocks for a turn of the worker, so for the callback that runs; a look that has begun
 *   is waited for beyond the given time.
 * Lifetime: `hook` and `context` are used during the call only.
 * Returns: 0 (an engine that has not begun, or has stopped, is empty: nobody has to look);
 *   -ETIMEDOUT: the worker did not come in time; -ESHUTDOWN: there is no worker that will (it has
 *   failed, could not be made, or hands back); -EINVAL (NULL); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_dump(struct tw_engine *engine, tw_dump_hook *hook, void *context,
			  int64_t timeout_ns);

TW_END_DECLS

#endif
