/* SPDX-License-Identifier: MIT */
/*
 * The log hook of the process. Silent until one is set.
 */
#ifndef TWI_MECH_LOG_H
#define TWI_MECH_LOG_H

#include <tickwheel/log.h>

void twi_log_set(const struct tw_log *log);
void twi_log(enum tw_log_level level, const char *text);

#endif
