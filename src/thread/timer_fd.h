/* SPDX-License-Identifier: MIT */
/*
 * A timer of the kernel as a file descriptor (timerfd). It is readable from its time on, until it
 * is set anew. No thread ever reads it. Any thread may set it; the last setting counts.
 */
#ifndef TWI_THREAD_TIMER_FD_H
#define TWI_THREAD_TIMER_FD_H

#include <stdint.h>
#include <time.h>

/* DRIVEN: a function stands for the descriptor (thread/park.h). */
enum { TWI_TIMER_FD_NONE = -1, TWI_TIMER_FD_DRIVEN = -2 };

/* If a timer is set to this time, its descriptor is readable at once. */
#define TWI_TIMER_FD_NOW INT64_C(1)

/* Returns the descriptor, or -ENOMEM. */
int twi_timer_fd_open(clockid_t clock);

/* TWI_TIMER_FD_NONE and TWI_TIMER_FD_DRIVEN are accepted. */
void twi_timer_fd_close(int fd);

/* Sets the timer to `until_ns` of its clock. If that is in the past: at once; INT64_MAX: never. */
void twi_timer_fd_set(int fd, int64_t until_ns);

#endif
