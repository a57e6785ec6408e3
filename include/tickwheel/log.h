/* SPDX-License-Identifier: MIT */
/**
 * @file log.h
 * The library never prints. A program that wants its messages sets a hook.
 */
#ifndef TICKWHEEL_LOG_H
#define TICKWHEEL_LOG_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** The severity of a message. */
enum tw_log_level {
	TW_LOG_INFO = 0,
	TW_LOG_WARNING = 1,
	TW_LOG_ERROR = 2,
};

/** Receives one line without a newline; `text` is valid during the call only. */
typedef void tw_log_hook(void *context, enum tw_log_level level, const char *text);

/** The argument of tw_log_set. Keep it alive (best: static) while it is set and while a call may be
 * in it. */
struct tw_log {
	tw_log_hook *hook;
	void *context;
};

/**
 * Sets the log hook of the process; NULL makes the library silent again (as it is at first).
 *
 * These events are reported: more than 64 engines alive (once), an engine that lost its worker, a
 * failed check of a wheel, a lazy start that failed, and a time stamp counter clock that falls back
 * to another clock. Calls that a program should not make and that are rejected are reported as
 * warnings, once per engine and kind of misuse. docs/debugging.md lists them.
 *
 * Units: none.
 * Threads: any. The hook runs in the thread that has the message, and must not call the library.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: `log` is not copied; it must outlive its use.
 * Returns: 0; -EINVAL if `log` has no hook.
 * Since: 0.1.0.
 */
TW_API int tw_log_set(const struct tw_log *log);

TW_END_DECLS

#endif
