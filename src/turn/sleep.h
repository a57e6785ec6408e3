/* SPDX-License-Identifier: MIT */
/*
 * The worker's sleep.
 */
#ifndef TWI_TURN_SLEEP_H
#define TWI_TURN_SLEEP_H

#include "worker/worker.h"

/*
 * Publishes that the worker sleeps, and which deadlines must wake it. Returns the time until which
 * it may sleep.
 */
TWI_WORKER_ONLY int64_t twi_sleep_publish(struct twi_worker *worker);

/*
 * Sleeps until the wheel or another thread needs the worker, but not beyond `published_ns`, which
 * twi_sleep_publish has returned. Must be called after a look at ingress. `left`: the work that is
 * left, as enum twi_left.
 */
TWI_WORKER_ONLY void twi_sleep_until(struct twi_worker *worker, unsigned left,
				     int64_t published_ns);

/* Returns, as enum twi_left, whether a push may be hidden since the worker published its sleep. */
TWI_WORKER_ONLY unsigned twi_sleep_hidden(const struct twi_worker *worker);

/* Returns whether there is a reason to stay awake, other than time and ingress. */
bool twi_sleep_rejected(const struct twi_worker *worker, unsigned left);

/* Returns the kernel's time for a sleep until `until_ns` of the engine's clock. */
int64_t twi_sleep_kernel_ns(const struct twi_worker *worker, unsigned left, int64_t until_ns);

#endif
