/* SPDX-License-Identifier: MIT */
#include "thread/park_fd.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

static struct timespec timespec_of(int64_t ns)
{
	return (struct timespec){.tv_sec = ns / TWI_NS_PER_S, .tv_nsec = ns % TWI_NS_PER_S};
}

static int open_error(void)
{
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -ENOMEM : -EOPNOTSUPP;
}

int twi_park_fd_open(struct twi_park *park, clockid_t clock)
{
	int error;

	park->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (park->event_fd < 0)
		return open_error();
	park->wait_fd = timerfd_create(clock, TFD_CLOEXEC | TFD_NONBLOCK);
	if (park->wait_fd >= 0)
		return 0;
	error = open_error();
	(void)close(park->event_fd);
	park->event_fd = -1;
	return error;
}

void twi_park_fd_close(struct twi_park *park)
{
	(void)close(park->wait_fd);
	(void)close(park->event_fd);
	park->event_fd = park->wait_fd = -1;
}

void twi_park_fd_raise(int event_fd)
{
	const uint64_t one = 1;

	/* The write fails only if the eventfd is at its maximum. Then it is raised already. */
	(void)!write(event_fd, &one, sizeof one);
}

/*
 * Sets the timer. INT64_MAX turns it off. The kernel takes a time of zero as "off", so a time of
 * zero or less is replaced by 1.
 */
static void timer_set(const struct twi_park *park, int64_t until_ns)
{
	struct itimerspec timer = {.it_value = {0, 0}};

	if (until_ns != INT64_MAX)
		timer.it_value = timespec_of(until_ns > 0 ? until_ns : 1);
	(void)timerfd_settime(park->wait_fd, TFD_TIMER_ABSTIME, &timer, NULL);
}

void twi_park_fd_wait(struct twi_park *park, int64_t until_ns, int64_t at_most_ns)
{
	struct pollfd polled[] = {
		{.fd = park->event_fd, .events = POLLIN},
		{.fd = park->wait_fd, .events = POLLIN},
	};
	struct timespec at_most = timespec_of(at_most_ns);
	uint64_t raised;

	timer_set(park, until_ns);
	if (ppoll(polled, 2, at_most_ns == INT64_MAX ? NULL : &at_most, NULL) > 0 &&
	    polled[0].revents != 0)
		(void)!read(park->event_fd, &raised, sizeof raised);
}
