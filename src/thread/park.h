/* SPDX-License-Identifier: MIT */
/*
 * A park: where a worker sleeps, and how other threads wake it. There is one sleeper and any number
 * of wakers. The sleeper waits on a futex, or on file descriptors (thread/park_fd.h). In loop mode
 * the caller's event loop sleeps instead, and a waker sets a timer descriptor to "now"
 * (turn/poll.c). A driven park has a function instead of a descriptor. The waker calls this
 * function, which makes another thread poll (scaled/scaled.h).
 *
 * Protocol. The sleeper publishes that it is about to sleep (E8), looks once more at every reason
 * to stay awake, and waits. A waker first makes its reason visible, then checks whether the worker
 * sleeps. Both sides store, then load, all sequentially consistent. So at least one side sees the
 * other's store, and no wake-up is lost. Several wakers may find PARKED. Only the waker that
 * replaces PARKED makes the system call, so there is at most one call per sleep.
 *
 * Progress. prepare, done and wake are wait-free; wait blocks.
 */
#ifndef TWI_THREAD_PARK_H
#define TWI_THREAD_PARK_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/test_point.h"
#include "thread/futex.h"
#include "thread/timer_fd.h"

#include <stdbool.h>
#include <stdint.h>

enum { TWI_AWAKE = 0, TWI_PARKED = 1 };

/* park_fd.c: wakes the thread that sleeps on the descriptor. */
void twi_park_fd_raise(int event_fd);

struct twi_park {
	_Atomic uint32_t word; /* [atomic E8] */
	int event_fd;          /* [const] wakers raise it; it is -1 if `word` is the futex */
	int wait_fd;           /* [const] the timerfd of park_fd.h */
	/* The descriptor of a loop, TWI_TIMER_FD_DRIVEN, or TWI_TIMER_FD_NONE. */
	/* [handoff E8] the sleeper sets it while awake; a waker that saw PARKED reads it */
	int timer_fd;
	_Atomic uint32_t kicks; /* [atomic] how often wakers have set timer_fd */
};

/*
 * [atomic] The function that wakers of driven parks call, maybe inside an RCU section. One global
 * variable is enough, because only one layer makes driven parks. A field would make the park
 * larger. The park must fit in one cache line with the other reasons to wake up (worker.h).
 */
typedef void twi_park_driver(struct twi_park *park);
extern _Atomic(twi_park_driver *) twi_park_drives;

static inline void twi_park_init(struct twi_park *park)
{
	/* RELAXED: no other thread has the park yet. */
	twi_store_relaxed(&park->word, TWI_AWAKE);
	park->event_fd = park->wait_fd = -1;
	park->timer_fd = TWI_TIMER_FD_NONE;
}

/* Makes the park a driven one. No other thread may have it yet. */
static inline void twi_park_drive(struct twi_park *park, twi_park_driver *driver)
{
	/*
	 * RELAXED: each call stores the same pointer. The waker's load of PARKED (E8) makes it
	 * visible together with timer_fd.
	 */
	twi_store_relaxed(&twi_park_drives, driver);
	park->timer_fd = TWI_TIMER_FD_DRIVEN;
}

/*
 * Publishes that the sleeper is about to sleep. The sleeper calls it before its last look at the
 * reasons to stay awake.
 */
static inline void twi_park_prepare(struct twi_park *park)
{
	TWI_TEST_POINT("park:preparing");
	/*
	 * E8: pairs with twi_park_wake(). PARKED must be stored before the reasons are loaded.
	 * Otherwise a wake-up could be lost.
	 */
	twi_store_seq_cst(&park->word, TWI_PARKED);
	TWI_TEST_POINT("park:prepared");
}

/*
 * Ends a sleep. The sleeper calls it when it finds a reason to stay awake, and after it wakes up.
 */
static inline void twi_park_done(struct twi_park *park)
{
	/*
	 * RELAXED: a waker that still sees PARKED makes one superfluous wake-up, which does no
	 * harm.
	 */
	twi_store_relaxed(&park->word, TWI_AWAKE);
}

/*
 * Waits until a wake-up or until `until_ns` of CLOCK_MONOTONIC. May return early. Only the sleeper
 * calls it.
 */
static inline void twi_park_wait(struct twi_park *park, int64_t until_ns)
{
	(void)twi_futex_wait(&park->word, TWI_PARKED, until_ns);
}

/* Returns true if no waker has woken the sleeper. The sleeper calls it between prepare and done. */
static inline bool twi_park_undisturbed(struct twi_park *park)
{
	/* RELAXED: the next turn acquires the reason for the wake-up. */
	return twi_load_relaxed(&park->word) == TWI_PARKED;
}

/*
 * Makes the system call of a wake-up. Does not read the park, which may already be freed: the
 * caller has copied the descriptor before.
 */
static inline void twi_park_call(_Atomic uint32_t *word, int event_fd)
{
	if (TWI_LIKELY(event_fd < 0))
		twi_futex_wake(word);
	else
		twi_park_fd_raise(event_fd);
}

/* Ends the sleep of a loop. Returns true if a waker has woken the loop, or is just doing so. */
static inline bool twi_park_take_back(struct twi_park *park)
{
	/* RELAXED: before its next sleep, the owner looks at all reasons to stay awake (E8). */
	return twi_exchange_relaxed(&park->word, TWI_AWAKE) == TWI_AWAKE;
}

/* Does the same as twi_park_call for a loop. The park must still exist. */
static inline void twi_park_kick(struct twi_park *park, int timer_fd)
{
	if (timer_fd == TWI_TIMER_FD_DRIVEN) {
		twi_load_relaxed (&twi_park_drives)(park); /* RELAXED: as in twi_park_drive. */
		return;
	}
	twi_timer_fd_set(timer_fd, TWI_TIMER_FD_NOW);
	TWI_TEST_POINT("park:kicked");
	/*
	 * RELAXED: the kernel orders the settings of the timer, and that is enough (turn/timer.h).
	 */
	(void)twi_fetch_add_relaxed(&park->kicks, 1);
}

/*
 * Wakes the sleeper if it sleeps. Any thread may call it, after it has made its reason visible by a
 * seq_cst store or exchange.
 */
static inline void twi_park_wake(struct twi_park *park)
{
	int event_fd, timer_fd;

	/*
	 * E8: pairs with twi_park_prepare(). The caller's reason must be stored before this load.
	 */
	if (TWI_LIKELY(twi_load_seq_cst(&park->word) == TWI_AWAKE))
		return;
	TWI_TEST_POINT("park:waking");
	event_fd = park->event_fd;
	timer_fd = park->timer_fd;
	/* RELAXED: decides only which of the wakers makes the system call. */
	if (twi_exchange_relaxed(&park->word, TWI_AWAKE) != TWI_PARKED)
		return;
	if (TWI_UNLIKELY(timer_fd != TWI_TIMER_FD_NONE))
		twi_park_kick(park, timer_fd);
	else
		twi_park_call(&park->word, event_fd);
}

#endif
