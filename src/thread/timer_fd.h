/* SPDX-License-Identifier: MIT */
/*
 * A timer of the kernel as a file descriptor (timerfd). The descriptor is readable from the timer's
 * time on, until the timer is set again. No thread ever reads it. Any thread may set the timer; the
 * last setting counts.
 */
#ifndef TWI_THREAD_TIMER_FD_H
#define TWI_THREAD_TIMER_FD_H

#include <stdint.h>
#include <time.h>

/*
 * NONE stands for a timer without a descriptor. DRIVEN stands for a park whose wakers call a
 * function instead (thread/park.h).
 */
enum { TWI_TIMER_FD_NONE = -1, TWI_TIMER_FD_DRIVEN = -2 };

/* If a timer is set to this time, its descriptor is readable at once. */
#define TWI_TIMER_FD_NOW INT64_C(1)

/* Opens a timer of this clock. Returns the descriptor, or -ENOMEM. */
int twi_timer_fd_open(clockid_t clock);

/* Closes the descriptor. Does nothing for TWI_TIMER_FD_NONE and TWI_TIMER_FD_DRIVEN. */
void twi_timer_fd_close(int fd);

/*
 * Sets the timer to `until_ns` of its clock. It expires at once if that is in the past, and never
 * if it is INT64_MAX.
 */
void twi_timer_fd_set(int fd, int64_t until_ns);

#endif
