/* SPDX-License-Identifier: MIT */
/*
 * The worker's sleep.
 */
#ifndef TWI_TURN_SLEEP_H
#define TWI_TURN_SLEEP_H

#include "worker/worker.h"

/*
 * Publishes that the worker sleeps, and which deadlines must wake it. Returns until when
 * it sleeps by that.
 */
TWI_WORKER_ONLY int64_t twi_sleep_publish(struct twi_worker *worker);

/*
 * Sleeps until the wheel or another thread needs the worker, and at most until `published_ns`,
 * which twi_sleep_publish has returned. Must come after a look at ingress. `left`: the work that is
 * left.
 */
TWI_WORKER_ONLY void twi_sleep_until(struct twi_worker *worker, unsigned left,
				     int64_t published_ns);

/* Whether a push may be hidden since the worker published its sleep, as enum twi_left. */
TWI_WORKER_ONLY unsigned twi_sleep_hidden(const struct twi_worker *worker);

/* Whether there is a reason to stay awake, other than time and ingress. */
bool twi_sleep_rejected(const struct twi_worker *worker, unsigned left);

/* The time to give to the kernel for a sleep until `until_ns` of the engine's clock. */
int64_t twi_sleep_kernel_ns(const struct twi_worker *worker, unsigned left, int64_t until_ns);

#endif
