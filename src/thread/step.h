/* SPDX-License-Identifier: MIT */
/*
 * Notices that the wall clock was set. A timer descriptor of the kernel waits for a time that never
 * comes, and becomes readable when the wall clock is set (TFD_TIMER_CANCEL_ON_SET). No futex counts
 * such an event, and the descriptor of a loop counts another clock. So a thread waits for it, and
 * calls `stepped`.
 *
 * Order. The thread arms the timer again before it calls `stepped`. So `stepped` comes after each
 * step that the thread has not waited for yet, and none is lost.
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
 * Starts to watch. A step from the return on is noticed. Returns 0; -ENOMEM if no descriptor or
 * thread can be made; -EOPNOTSUPP if the system has no such timer.
 */
int twi_step_watch_start(struct twi_step_watch *watch, void (*stepped)(void *context),
			 void *context);

/* Ends the thread, and waits for it. */
void twi_step_watch_end(struct twi_step_watch *watch);

/* In a forked child, which has the descriptor but no thread: closes the descriptor. */
void twi_step_watch_forget(struct twi_step_watch *watch);

#endif
