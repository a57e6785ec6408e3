/* SPDX-License-Identifier: MIT */
#include "thread/timer_fd.h"

#include "base/tick.h"

#include <errno.h>
#include <stddef.h>
#include <sys/timerfd.h>
#include <unistd.h>

int twi_timer_fd_open(clockid_t clock)
{
	int fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);

	return fd >= 0 ? fd : -ENOMEM;
}

void twi_timer_fd_close(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

void twi_timer_fd_set(int fd, int64_t until_ns)
{
	struct itimerspec timer = {.it_value = {.tv_sec = 0}};

	/* A time of zero would turn the kernel's timer off. */
	if (until_ns < TWI_TIMER_FD_NOW)
		until_ns = TWI_TIMER_FD_NOW;
	if (until_ns != INT64_MAX) {
		timer.it_value.tv_sec = until_ns / TWI_NS_PER_S;
		timer.it_value.tv_nsec = until_ns % TWI_NS_PER_S;
	}
	/* Cannot fail, because descriptor and time are valid. */
	(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &timer, NULL);
}
