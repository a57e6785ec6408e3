/* SPDX-License-Identifier: MIT */
/**
 * @file name.h
 * Names of outcomes, states and ends, for logs and for labels of metrics.
 *
 * Numbers of different enums overlap: 3 is TW_CANCEL_RUNNING, TW_KEYED_REPLACED and
 * TW_ENGINE_STALLED. Therefore each enum has a function of its own. A name is the constant's own
 * part in lower case: TW_CANCEL_RUNNING is "running", TW_END_UNEXPIRED is "unexpired". Names do
 * not change, so that programs may store them.
 *
 * The names of durable timers are in durable_name.h.
 *
 *     printf("cancel: %s\n", tw_cancel_outcome_name(tw_cancel(handle)));
 */
#ifndef TICKWHEEL_NAME_H
#define TICKWHEEL_NAME_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Returns the name of the outcome of tw_cancel, tw_cancel_wait or an item of tw_cancel_many.
 *
 * Units: `outcome`, an enum tw_cancel_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_cancel_outcome_name(int outcome);

/**
 * Returns the name of the outcome of tw_reschedule or tw_reschedule_at.
 *
 * Units: `outcome`, an enum tw_reschedule_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_reschedule_outcome_name(int outcome);

/**
 * Returns the name of a timeout's end.
 *
 * Units: `end`, an enum tw_end, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_end_name(int end);

/**
 * Returns the name of a timeout's state.
 *
 * Units: `state`, an enum tw_state, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_state_name(int state);

/**
 * Returns the name of an engine's state.
 *
 * Units: `state`, an enum tw_engine_state, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_engine_state_name(int state);

/**
 * Returns the name of the outcome of a call on a keyed entry.
 *
 * Units: `outcome`, an enum tw_keyed_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_keyed_outcome_name(int outcome);

/**
 * Returns the name of the end of a keyed entry.
 *
 * Units: `end`, an enum tw_keyed_end, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_keyed_end_name(int end);

/**
 * Returns the name of the outcome of a submit to a queue of retries.
 *
 * Units: `outcome`, an enum tw_retry_submit_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_retry_submit_outcome_name(int outcome);

/**
 * Returns the name of the outcome of tw_retry_cancel.
 *
 * Units: `outcome`, an enum tw_retry_cancel_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_retry_cancel_outcome_name(int outcome);

/**
 * Returns the name of the end of a task of a queue of retries.
 *
 * Units: `end`, an enum tw_retry_end, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_retry_end_name(int end);

TW_END_DECLS

#endif
