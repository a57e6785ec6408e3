/* SPDX-License-Identifier: MIT */
/*
 * The log hook of the process. The library is silent until a hook is set.
 */
#ifndef TWI_THREAD_LOG_H
#define TWI_THREAD_LOG_H

#include <stdbool.h>
#include <tickwheel/log.h>

void twi_log_set(const struct tw_log *log);
/* Returns whether a log hook is set. */
bool twi_log_wanted(void);
void twi_log(enum tw_log_level level, const char *text);

#endif
