/* SPDX-License-Identifier: MIT */
/*
 * The end of an engine.
 */
#ifndef TWI_TURN_FINISH_H
#define TWI_TURN_FINISH_H

#include "worker/worker.h"

/*
 * Hands back all timeouts that are left, waits for executors, and stores STOPPED. Returns false if
 * an executor's run, or another thread's call, has not ended by `until_ns` (CLOCK_MONOTONIC;
 * INT64_MAX: waits without a limit). Then the caller is still the worker.
 */
bool twi_worker_finish(struct twi_worker *worker, int64_t until_ns);

#endif
