/* SPDX-License-Identifier: MIT */
/*
 * What each thread keeps: a stock of blocks, a lane number, the callback it is in.
 *
 * Lane numbers. 0 to 62 belong to one thread of the process at a time: what is written under them
 * needs no locked instruction. 63 is shared by all threads that come later.
 *
 * Life. The first use attaches the thread; its end (or detach) gives everything back. Destructors
 * of other thread data may run after ours and use the library again: the thread attaches anew, for
 * as many rounds as POSIX grants destructors, and after that takes and gives blocks one at a time.
 */
#ifndef TWI_MECH_THREAD_H
#define TWI_MECH_THREAD_H

#include "base/compiler.h"
#include "mech/pool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	TWI_LANES = 64,
	TWI_LANE_SHARED = TWI_LANES - 1,
};

struct twi_pin;

struct twi_thread {
	struct twi_stock stock;
	void *run;       /* the innermost callback that runs on this thread, or NULL */
	void *worker;    /* whose worker this thread is, or NULL */
	void *wheel_of;  /* the worker whose wheel it touched last, and may still touch; or NULL.
			 * Not NULL: the thread is attached. */
	uint32_t lane;   /* its lane number, while attached */
	uint32_t chance; /* the last random number: which runs are samples (worker/measure.h) */
	/* Its lane's pin, or NULL while it has no lane of its own. */
	struct twi_pin *pin;
	bool attached;
	uint8_t exit_rounds; /* times that its end was told so far */
};

extern _Thread_local struct twi_thread twi_thread_self;

/* Gives the thread its lane number, and arranges to be told of its end. */
void twi_thread_attach(struct twi_thread *thread);

/* Gives back all that the thread keeps. */
void twi_thread_release(struct twi_thread *thread);

/* In a forked child, at its begin: this thread is the only one. */
void twi_thread_inherit(void);

/* Whether no thread but the calling one has a lane of its own. */
bool twi_thread_alone(void);

static inline struct twi_thread *twi_thread(void)
{
	if (TWI_UNLIKELY(!twi_thread_self.attached))
		twi_thread_attach(&twi_thread_self);
	return &twi_thread_self;
}

#endif
