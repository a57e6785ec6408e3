/* SPDX-License-Identifier: MIT */
/**
 * @file durable_name.h
 * Names of the outcomes and states of durable timers, for logs and for labels of metrics. They
 * follow the rules of name.h: TW_DURABLE_ATTEMPTED is "attempted", TW_DURABLE_STATE_CLOCK_STEPPED
 * is "clock_stepped", and names do not change.
 */
#ifndef TICKWHEEL_DURABLE_NAME_H
#define TICKWHEEL_DURABLE_NAME_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/**
 * Returns the name of the outcome of a call for a durable timer, or of its acknowledgement.
 *
 * Units: `outcome`, an enum tw_durable_outcome, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown". TW_DURABLE_UNKNOWN is "unknown", too.
 * Since: 0.1.0.
 */
TW_BESIDE_API const char *tw_durable_outcome_name(int outcome);

/**
 * Returns the name of a set's state. tw_durable_stats_print uses the same names.
 *
 * Units: `state`, an enum tw_durable_state, or a code as returned.
 * Threads: any.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: the text is static.
 * Returns: the name, never NULL. For a negative code it is the text of tw_strerror, and for a
 *   number that is not in the enum it is "unknown".
 * Since: 0.1.0.
 */
TW_BESIDE_API const char *tw_durable_state_name(int state);

TW_END_DECLS

#endif
