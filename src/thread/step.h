/* SPDX-License-Identifier: MIT */
/*
 * Notices that the wall clock was set. A timer descriptor (timerfd) is set to a time that never
 * comes, and becomes readable when the wall clock is set (TFD_TIMER_CANCEL_ON_SET). A futex cannot
 * wait for this event, and the descriptor of a loop uses another clock. So a separate thread waits
 * on the timer descriptor, and calls `stepped`.
 *
 * Order. The thread arms the timer again before it calls `stepped`. If the clock is set after that,
 * the descriptor becomes readable again, and `stepped` is called once more. So no step is lost.
 */
#ifndef TWI_THREAD_STEP_H
#define TWI_THREAD_STEP_H

#include <pthread.h>
#include <stdbool.h>

struct twi_step_watch {
	void (*stepped)(void *context); /* [const] */
	void *context;                  /* [const] */
	pthread_t thread;               /* [const] */
	int fd;                         /* [const] */
	_Atomic bool ending;            /* [atomic] */
};

/*
 * Starts to watch. Every step after the return is noticed. Returns 0; -ENOMEM if no descriptor or
 * thread can be made; -EOPNOTSUPP if the system has no such timer.
 */
int twi_step_watch_start(struct twi_step_watch *watch, void (*stepped)(void *context),
			 void *context);

/* Ends the thread, and waits for it. */
void twi_step_watch_end(struct twi_step_watch *watch);

/* Closes the descriptor in a forked child, which has the descriptor but no thread. */
void twi_step_watch_forget(struct twi_step_watch *watch);

#endif
