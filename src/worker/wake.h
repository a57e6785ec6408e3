/* SPDX-License-Identifier: MIT */
/*
 * Why the worker wakes up.
 */
#ifndef TWI_WORKER_WAKE_H
#define TWI_WORKER_WAKE_H

#include <stdint.h>

/* Why a sleep ended. */
enum twi_wake {
	/* The worker has slept until the time that it had chosen. */
	TWI_WAKE_DEADLINE = 0,
	/*
	 * Another thread has scheduled, rescheduled or cancelled a timeout, and the worker was
	 * needed for it at once.
	 */
	TWI_WAKE_PRODUCER = 1,
	/* A flush, a stop, or a clock that was moved by hand. */
	TWI_WAKE_CALL = 2,
	/*
	 * The worker looks again because a push was not linked yet or may be hidden; or the system
	 * has woken the worker.
	 */
	TWI_WAKE_OTHER = 3,
	TWI_WAKE_CAUSES = 4,
};

/*
 * The value of wake_before_ns while the worker is awake. No deadline is earlier, so no producer
 * wakes it.
 */
#define TWI_WAKE_NOBODY INT64_MIN

#endif
