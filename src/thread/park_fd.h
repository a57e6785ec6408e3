/* SPDX-License-Identifier: MIT */
/*
 * A park on file descriptors, for a worker with a clock that no futex counts: a timerfd for the
 * time and an eventfd for the wake.
 *
 * No wake is lost. prepare and wake are those of thread/park.h, on the same state word. If a waker
 * comes after prepare, it makes the exchange and raises the eventfd, which stays raised until it is
 * read. So it does not matter whether the sleeper polls already. The sleeper reads the eventfd
 * after the poll and before the next prepare. A waker of the next sleep raises it after that
 * prepare, because it must have seen PARKED in the state word. So the sleeper never reads away a
 * wake of a later sleep. If a wake of an earlier sleep comes late, it ends the next sleep in vain,
 * and is read then.
 *
 * The timerfd holds an absolute time of its own clock. The kernel expires it also if the clock has
 * run on during a suspend. A new setting takes back an earlier expiry.
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

/* Must be called when no thread waits and none will wake. */
void twi_park_fd_close(struct twi_park *park);

/*
 * The sleeper waits until a wake, `until_ns` of the clock, or `at_most_ns` from now. May return
 * early.
 */
void twi_park_fd_wait(struct twi_park *park, int64_t until_ns, int64_t at_most_ns);

#endif
