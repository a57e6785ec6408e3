/* SPDX-License-Identifier: MIT */
/**
 * @file name.h
 * Names of outcomes, states and ends, for logs and for labels of metrics.
 *
 * Numbers of different enums overlap: 3 is TW_CANCEL_RUNNING, TW_KEYED_REPLACED and
 * TW_ENGINE_STALLED. So each enum has a function. A name is its constant's own part in lower case:
 * TW_CANCEL_RUNNING is "running", TW_END_HANDED_BACK is "handed_back". Names do not change, so that
 * programs may write them down.
 *
 *     printf("cancel: %s\n", tw_cancel_outcome_name(tw_cancel(handle)));
 */
#ifndef TICKWHEEL_NAME_H
#define TICKWHEEL_NAME_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * The name of what tw_cancel, tw_cancel_wait or an item of tw_cancel_many found.
 *
 * Units: `outcome`, an enum tw_cancel_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_cancel_outcome_name(int outcome);

/**
 * The name of what tw_reschedule or tw_reschedule_at found.
 *
 * Units: `outcome`, an enum tw_reschedule_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_reschedule_outcome_name(int outcome);

/**
 * The name of how a timeout ended.
 *
 * Units: `end`, an enum tw_end, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_end_name(int end);

/**
 * The name of the state of a timeout.
 *
 * Units: `state`, an enum tw_state, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_state_name(int state);

/**
 * The name of the state of an engine.
 *
 * Units: `state`, an enum tw_engine_state, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_engine_state_name(int state);

/**
 * The name of what a call for a key found.
 *
 * Units: `outcome`, an enum tw_keyed_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_keyed_outcome_name(int outcome);

/**
 * The name of how an entry of a table of keys ended.
 *
 * Units: `end`, an enum tw_keyed_end, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_keyed_end_name(int end);

/**
 * The name of what a submit to a queue of retries found.
 *
 * Units: `outcome`, an enum tw_retry_submit_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_retry_submit_outcome_name(int outcome);

/**
 * The name of what tw_retry_cancel found.
 *
 * Units: `outcome`, an enum tw_retry_cancel_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_retry_cancel_outcome_name(int outcome);

/**
 * The name of how a task of a queue of retries ended.
 *
 * Units: `end`, an enum tw_retry_end, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. Of a negative code it is the text of tw_strerror, of another number "unknown".
 * Since: 0.1.0.
 */
TW_API const char *tw_retry_end_name(int end);

TW_END_DECLS

#endif
