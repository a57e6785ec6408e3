/* SPDX-License-Identifier: MIT */
#include "thread/step.h"

#include "base/atomic.h"
#include "base/tick.h"
#include "thread/signals.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum {
	/*
	 * The size of the thread's stack. The thread makes only a few system calls, for which no
	 * system needs more.
	 */
	STACK_BYTES = 256 * 1024,
};

/*
 * Arms the timer again. Returns 0, also if the clock was set during the call; the descriptor is
 * then readable again.
 */
static int timer_arm(int fd)
{
	const struct itimerspec never = {.it_value = {.tv_sec = INT64_MAX / TWI_NS_PER_S}};

	if (timerfd_settime(fd, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET, &never, NULL) != 0 &&
	    errno != ECANCELED)
		return -EOPNOTSUPP;
	return 0;
}

/* Makes the descriptor readable for ever. Used to end the thread's read. */
static void timer_fire(int fd)
{
	const struct itimerspec now = {.it_value = {.tv_nsec = 1}};

	(void)timerfd_settime(fd, TFD_TIMER_ABSTIME, &now, NULL);
}

/*
 * Waits until the clock is set. Returns false if the watch must end, or if the system no longer
 * lets the thread wait.
 */
static bool step_wait(struct twi_step_watch *watch)
{
	uint64_t expired;

	while (read(watch->fd, &expired, sizeof expired) < 0 && errno != ECANCELED)
		if (errno != EINTR)
			return false;
	if (timer_arm(watch->fd) != 0)
		return false;
	/*
	 * RELAXED: this thread and twi_step_watch_end() both set the timer, and the kernel orders
	 * the two settings. If ours comes last, we see the `ending` that was stored before the
	 * other setting. If the other setting comes last, the timer stays readable, and ends the
	 * next read.
	 */
	return !twi_load_relaxed(&watch->ending);
}

static void *watch_body(void *argument)
{
	struct twi_step_watch *watch = argument;

	while (step_wait(watch))
		watch->stepped(watch->context);
	return NULL;
}

/*
 * Makes the thread with its signals blocked, so that it never runs the program's signal handlers. A
 * new thread inherits the mask.
 */
static int thread_make(struct twi_step_watch *watch)
{
	pthread_attr_t attributes;
	sigset_t most, before;
	int error;

	if (pthread_attr_init(&attributes) != 0)
		return -ENOMEM;
	(void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
	twi_signals_fill(&most);
	(void)pthread_sigmask(SIG_SETMASK, &most, &before);
	error = pthread_create(&watch->thread, &attributes, watch_body, watch);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&attributes);
	return error != 0 ? -ENOMEM : 0;
}

int twi_step_watch_start(struct twi_step_watch *watch, void (*stepped)(void *context),
			 void *context)
{
	int error;

	watch->stepped = stepped;
	watch->context = context;
	/* RELAXED: pthread_create publishes this store to the thread. */
	twi_store_relaxed(&watch->ending, false);
	watch->fd = timerfd_create(CLOCK_REALTIME, TFD_CLOEXEC);
	if (watch->fd < 0)
		return errno == EINVAL || errno == ENOSYS ? -EOPNOTSUPP : -ENOMEM;
	error = timer_arm(watch->fd);
	if (error == 0)
		error = thread_make(watch);
	if (error != 0)
		(void)close(watch->fd);
	return error;
}

void twi_step_watch_end(struct twi_step_watch *watch)
{
	int cancel_state;

	/* RELAXED: as in step_wait(). The flag must be stored before the timer is fired. */
	twi_store_relaxed(&watch->ending, true);
	timer_fire(watch->fd);
	/* If the caller were cancelled here, it could not know whether the thread still runs. */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	(void)pthread_join(watch->thread, NULL);
	(void)pthread_setcancelstate(cancel_state, NULL);
	(void)close(watch->fd);
}

void twi_step_watch_forget(struct twi_step_watch *watch)
{
	(void)close(watch->fd);
}
