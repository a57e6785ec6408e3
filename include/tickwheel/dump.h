/* SPDX-License-Identifier: MIT */
/**
 * @file dump.h
 * The state of an engine as text, for debugging.
 */
#ifndef TICKWHEEL_DUMP_H
#define TICKWHEEL_DUMP_H

#include <stddef.h>
#include <stdint.h>
#include <tickwheel/export.h>

TW_BEGIN_DECLS

struct tw_engine;

/** Receives text in pieces of `bytes` bytes, without a NUL at the end. `text` is valid during the
 * call only. */
typedef void tw_dump_hook(void *context, const char *text, size_t bytes);

/**
 * Writes the state of an engine as text. The text has the state, the options and the counters. It
 * has the number of pending timeouts by level and by the time until their deadline, and the ten
 * fullest slots. It also has the number of cancelled timeouts that are not yet reclaimed, and of
 * timeouts in the lanes, on their way to the wheel. docs/debugging.md explains each line. The text
 * is for people, and may change with any version.
 *
 * The wheel belongs to the worker, so the worker inspects it at the beginning of its next turn,
 * while the caller waits. If the caller is a callback on the worker, or the owner of a loop, it
 * inspects the wheel itself. The inspection visits each pending timeout. It takes about 0.1 us for
 * each pending timeout if none is in the cache, and no timeout expires during that time. Then the
 * hook runs in the caller's thread. The hook gets all lines that do not need the worker, unless the
 * call returns -EINVAL or -ECHILD.
 *
 * Units: `timeout_ns`, the longest time to wait for the worker; TW_NEVER: without bound; 0 or less:
 *   not at all.
 * Threads: any, concurrently; the worker serves one after the other.
 * In callback: yes; in a callback on an executor the call waits for the worker. Two callbacks on
 *   the workers of two engines must not each dump the other engine: both would wait until the time
 *   is up, and with TW_NEVER for ever.
 * Progress: blocks for a turn of the worker, and therefore for the callback that runs. When the
 *   inspection has begun, the caller waits until it ends, even beyond the given time.
 * Lifetime: `hook` and `context` are used during the call only.
 * Returns: 0 (also if the engine has not started or has stopped: then the engine is empty, and no
 *   inspection is needed); -ETIMEDOUT: the worker did not begin the inspection in time; -ESHUTDOWN:
 *   no worker can inspect the wheel (the worker has failed, could not be created, or is handing
 *   back timeouts); -EINVAL (NULL); -ECHILD.
 * Since: 0.1.0.
 */
TW_API int tw_engine_dump(struct tw_engine *engine, tw_dump_hook *hook, void *context,
			  int64_t timeout_ns);

TW_END_DECLS

#endif
