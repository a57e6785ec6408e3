/* SPDX-License-Identifier: MIT */
/*
 * The end of an engine.
 */
#ifndef TWI_TURN_FINISH_H
#define TWI_TURN_FINISH_H

#include "worker/worker.h"

/*
 * Hands back all timeouts that are left, waits for executors, and stores STOPPED. False
 * if they have not ended by `until_ns` (CLOCK_MONOTONIC; INT64_MAX: waits). Then the caller still
 * is the worker.
 */
bool twi_worker_finish(struct twi_worker *worker, int64_t until_ns);

#endif
