/* SPDX-License-Identifier: MIT */
/*
 * Moves deadlines to rounder ticks.
 */
#ifndef TWI_EXPIRY_SLACK_H
#define TWI_EXPIRY_SLACK_H

#include "worker/worker.h"

/* Returns a deadline that is later by at most `slack_ns`. */
int64_t twi_slacken(const struct twi_worker *worker, int64_t deadline_ns, uint64_t slack_ns);

#endif
