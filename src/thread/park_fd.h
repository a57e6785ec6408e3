/* SPDX-License-Identifier: MIT */
/*
 * A park on file descriptors, for a worker that uses a clock by which a futex cannot wait. It has a
 * timerfd for the time and an eventfd for wake-ups.
 *
 * No wake-up is lost. prepare and wake are those of thread/park.h, on the same state word. A waker
 * that finds PARKED raises the eventfd, which stays raised until it is read. So it does not matter
 * whether the sleeper has already begun to poll.
 *
 * The sleeper reads the eventfd after the poll and before the next prepare. A waker of the next
 * sleep must have seen that prepare's PARKED, so it raises the eventfd after the read. So the
 * sleeper never clears a wake-up that was meant for a later sleep. A late waker may raise the
 * eventfd when the sleep that it was to end is already over. Then the next sleep ends without a
 * reason, and clears the eventfd.
 *
 * The timerfd is set to an absolute time of the worker's clock. The timer also expires if that time
 * passes while the machine is suspended. A new setting cancels an earlier expiry.
 */
#ifndef TWI_THREAD_PARK_FD_H
#define TWI_THREAD_PARK_FD_H

#include "thread/park.h"

#include <stdint.h>
#include <time.h>

/*
 * Opens the descriptors. No other thread may have the park yet. Returns 0; -ENOMEM if no descriptor
 * is left; -EOPNOTSUPP if the system has no such timer.
 */
int twi_park_fd_open(struct twi_park *park, clockid_t clock);

/* Closes the descriptors. No thread may wait on the park, and none may wake it any more. */
void twi_park_fd_close(struct twi_park *park);

/*
 * Waits until a wake-up, until `until_ns` of the clock, or for `at_most_ns`. May return early. Only
 * the sleeper may call it.
 */
void twi_park_fd_wait(struct twi_park *park, int64_t until_ns, int64_t at_most_ns);

#endif
