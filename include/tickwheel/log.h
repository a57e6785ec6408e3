/* SPDX-License-Identifier: MIT */
/**
 * @file log.h
 * Messages of the library. The library never prints them: a program that wants its messages sets a
 * hook.
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

/** The argument of tw_log_set. It must stay alive while it is set, and while any thread may still
 * be inside its hook. A static variable is the simplest choice. */
struct tw_log {
	tw_log_hook *hook;
	void *context;
};

/**
 * Sets the log hook of the process; NULL makes the library silent again (as it is at first).
 *
 * The library reports these events. More than 64 engines are alive (reported once). An engine has
 * lost its worker. A check of a wheel has failed. A schedule tried to start the engine, and the
 * start failed. A clock of type TW_CLOCK_TSC has fallen back to CLOCK_MONOTONIC. If the library
 * rejects a call that a program should not make, it reports a warning, once per engine and kind of
 * misuse. docs/debugging.md lists these warnings.
 *
 * Units: none.
 * Threads: any. The hook runs in the thread that reports the event, and must not call the library.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: `log` is not copied; see struct tw_log.
 * Returns: 0; -EINVAL if `log` has no hook.
 * Since: 0.1.0.
 */
TW_API int tw_log_set(const struct tw_log *log);

TW_END_DECLS

#endif
