/* SPDX-License-Identifier: MIT */
/*
 * A park on file descriptors, for a worker whose clock no futex counts: a timerfd for the time, an
 * eventfd for the wake.
 *
 * No wake is lost. prepare and wake are those of mech/park.h, on the same word: a waker that comes
 * after prepare makes the exchange and raises the eventfd, which stays raised until it is read. So
 * it does not matter whether the sleeper polls already. The sleeper reads it after the poll and
 * before the next prepare; a waker of the next sleep raises it after that prepare, which it has
 * seen in the word. So no wake of a later sleep is ever read away. One of an earlier sleep that
 * comes late ends the next sleep in vain, and is read then.
 *
 * The timerfd holds an absolute time of its own clock, and the kernel expires it also when the
 * clock has run on over a suspend. Setting it takes back what it had expired before.
 */
#ifndef TWI_MECH_PARK_FD_H
#define TWI_MECH_PARK_FD_H

#include "mech/park.h"

#include <stdint.h>
#include <time.h>

/* Not shared yet. 0; -ENOMEM: no descriptor left; -EOPNOTSUPP: the system has no such timer. */
int twi_park_fd_open(struct twi_park *park, clockid_t clock);

/* Nobody waits, and nobody will wake. */
void twi_park_fd_close(struct twi_park *park);

/* The sleeper: until a wake, `until_ns` of the clock, or `at_most_ns` from now; may return early. */
void twi_park_fd_wait(struct twi_park *park, int64_t until_ns, int64_t at_most_ns);

#endif
