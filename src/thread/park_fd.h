/* SPDX-License-Identifier: MIT */
/*
 * A park on file descriptors, for a worker whose clock no futex can wait by: a timerfd for the time
 * and an eventfd for the wake.
 *
 * No wake is lost. prepare and wake are those of thread/park.h, on the same state word. If a waker
 * comes after prepare, it makes the exchange and raises the eventfd, which stays raised until it is
 * read. So it does not matter whether the sleeper polls already. The sleeper reads the eventfd
 * after the poll and before the next prepare. A waker of the next sleep raises it after that
 * prepare, because it must have seen PARKED in the state word. So the sleeper never clears a
 * wake-up that was meant for a later sleep. A late wake-up of an earlier sleep ends the next sleep
 * without a reason, and is cleared then.
 *
 * The timerfd holds an absolute time of its own clock. The timer also expires if that time passed
 * during a suspend. A new setting cancels an earlier expiry.
 */
#ifndef TWI_THREAD_PARK_FD_H
#define TWI_THREAD_PARK_FD_H

#include "thread/park.h"

#include <stdint.h>
#include <time.h>

/*
 * The park must not be shared yet. Returns 0; -ENOMEM if no descriptor is left; -EOPNOTSUPP if the
 * system has no such timer.
 */
int twi_park_fd_open(struct twi_park *park, clockid_t clock);

/* Must be called when no thread waits on the park, and none will wake it. */
void twi_park_fd_close(struct twi_park *park);

/*
 * Waits until a wake-up, until `until_ns` of the clock, or for `at_most_ns`. May return early. Only
 * the sleeper may call it.
 */
void twi_park_fd_wait(struct twi_park *park, int64_t until_ns, int64_t at_most_ns);

#endif
