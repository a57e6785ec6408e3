/* SPDX-License-Identifier: MIT */
/*
 * The data that each thread keeps: a stock of blocks, a lane number, and the callback that it runs.
 *
 * Lane numbers. Each number except 63 belongs to one thread of the process at a time, so that this
 * thread needs no locked instruction to write to its lane. A thread gets the lowest number that is
 * free. Numbers below 64 are near: their lanes lie in an array, and the quick paths use them. For a
 * greater (far) number, `lane` is 63 and `far` is the number. Threads without a number of their own
 * share 63: those whose exit would not be reported, and those beyond 65,535 threads.
 *
 * Lifetime. The first use attaches the thread; thread exit (or detach) gives everything back.
 * Destructors of other thread-specific data may run after ours and use the library again. Then the
 * thread attaches again, and gives everything back in the next round of destructors. In the last
 * round its exit can no longer be reported, so its stock keeps no blocks.
 */
#ifndef TWI_THREAD_THREAD_H
#define TWI_THREAD_THREAD_H

#include "base/compiler.h"
#include "memory/pool.h"

#include <stdbool.h>
#include <stdint.h>

enum {
	TWI_LANES = 64, /* near lane numbers, the shared lane's included */
	TWI_LANE_SHARED = TWI_LANES - 1,
	TWI_LANES_MAX = 1 << 16, /* near and far lane numbers */
};

struct twi_pin;
struct twi_presence;

/*
 * A hold: the right of one thread to touch one wheel, because it is the worker or the owner of a
 * loop. Only this thread opens and closes the hold.
 */
struct twi_hold {
	struct twi_hold *next; /* an older hold of the thread, still open */
	void *worker;          /* the worker whose wheel the thread may touch */
	void (*close)(
		/* called if the thread ends before it closes the hold; may be NULL */
		void *worker);
};

struct twi_thread {
	struct twi_stock stock;
	void *run;    /* the innermost callback that runs on this thread, or NULL */
	void *worker; /* the worker that this thread is, or NULL */
	/*
	 * The worker of the wheel that the thread used last and may still touch, or NULL. If it is
	 * not NULL, the thread is attached.
	 */
	void *wheel_of;
	/*
	 * The thread's open holds, the latest first. If there is one, and the thread is attached,
	 * wheel_of is not NULL.
	 */
	struct twi_hold *holds;
	uint32_t lane;   /* the lane number while the thread is attached; if that is far, 63 */
	uint32_t far;    /* the lane number if it is 64 or more, otherwise 0 */
	uint32_t chance; /* the last random number: selects samples of runs (expiry/measure.h) */
	/* The pin of the thread's lane, or NULL if the thread has no near lane of its own. */
	struct twi_pin *pin;
	/*
	 * The mark of the thread's lane, or NULL (thread/presence.h). If it is not NULL, the thread
	 * is attached and has a near lane of its own.
	 */
	struct twi_presence *presence;
	bool attached;
	uint8_t exit_rounds; /* rounds in which the thread's exit was reported */
};

extern _Thread_local struct twi_thread twi_thread_self;

/* Gives the thread its lane number, and makes sure that its exit is reported. */
void twi_thread_attach(struct twi_thread *thread);

/* Gives back everything that the thread keeps. */
void twi_thread_release(struct twi_thread *thread);

/* Opens a hold. The thread must be attached. */
void twi_hold_open(struct twi_thread *thread, struct twi_hold *hold);

/* Closes a hold of this thread, if it is open. */
void twi_hold_close(struct twi_thread *thread, struct twi_hold *hold);

/* For tests: returns whether no other thread than the calling one has a lane of its own. */
bool twi_thread_alone(void);

static inline struct twi_thread *twi_thread(void)
{
	if (TWI_UNLIKELY(!twi_thread_self.attached))
		twi_thread_attach(&twi_thread_self);
	return &twi_thread_self;
}

#endif
