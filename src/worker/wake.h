/* SPDX-License-Identifier: MIT */
/*
 * Why the worker wakes up.
 */
#ifndef TWI_WORKER_WAKE_H
#define TWI_WORKER_WAKE_H

#include <stdint.h>

/* Why a sleep ended. */
enum twi_wake {
	/* The time until which the worker slept has come. */
	TWI_WAKE_DEADLINE = 0,
	/* Another thread has scheduled, rescheduled or cancelled a timeout that could not wait. */
	TWI_WAKE_PRODUCER = 1,
	/* flush, stop, or a clock that was moved. */
	TWI_WAKE_CALL = 2,
	/* The worker looks again at a push that was not linked; or the system woke it. */
	TWI_WAKE_OTHER = 3,
	TWI_WAKE_CAUSES = 4,
};

/* The value while the worker is awake: no deadline is earlier, so no producer wakes it. */
#define TWI_WAKE_NOBODY INT64_MIN

#endif
