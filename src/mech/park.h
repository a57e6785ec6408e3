/* SPDX-License-Identifier: MIT */
/*
 * Where the worker sleeps, and how it is woken. One sleeper, any number of wakers. It sleeps on a
 * futex; where a caller's event loop is the worker, its sleep is the loop's, and the wake is a timer
 * descriptor that is set to "now" (worker/poll.c).
 *
 * Protocol. The sleeper says that it is about to sleep (E8), looks once more at every reason to
 * stay awake, and waits. A waker makes its reason visible first, then looks whether someone sleeps.
 * Both sides store, then load, all sequentially consistent: at least one of them sees the other, so
 * no wake is lost. The winner of the exchange from PARKED to AWAKE wakes: at most one system call
 * per sleep. The sleeper waits on the word itself, or on file descriptors (mech/park_fd.h).
 *
 * Progress. prepare, cancel and wake are wait-free; wait blocks.
 */
#ifndef TWI_MECH_PARK_H
#define TWI_MECH_PARK_H

#include "base/atomic.h"
#include "base/compiler.h"
#include "base/test_point.h"
#include "mech/futex.h"
#include "mech/timer_fd.h"

#include <stdbool.h>
#include <stdint.h>

enum { TWI_AWAKE = 0, TWI_PARKED = 1 };

/* park_fd.c: wakes who sleeps on the descriptor. */
void twi_park_fd_raise(int event_fd);

struct twi_park {
	_Atomic uint32_t word; /* [atomic E8] */
	int event_fd;          /* [const] raised to wake; -1: the word is a futex */
	int wait_fd;           /* [const] beside it, a timer */
	/* The descriptor of a loop, or TWI_TIMER_FD_NONE. */
	int timer_fd;           /* [handoff E8] made while awake; read by who has seen PARKED */
	_Atomic uint32_t kicks; /* [atomic] times that a waker has set it */
};

static inline void twi_park_init(struct twi_park *park)
{
	/* RELAXED: not shared yet. */
	twi_store_relaxed(&park->word, TWI_AWAKE);
	park->event_fd = park->wait_fd = -1;
	park->timer_fd = TWI_TIMER_FD_NONE;
}

/* The sleeper, before it looks at its reasons for the last time. */
static inline void twi_park_prepare(struct twi_park *park)
{
	TWI_TEST_POINT("park:preparing");
	/* E8: store PARKED, then load the reasons; pairs with wake. */
	twi_store_seq_cst(&park->word, TWI_PARKED);
	TWI_TEST_POINT("park:prepared");
}

/* The sleeper, when it found a reason to stay awake, or woke up. */
static inline void twi_park_done(struct twi_park *park)
{
	/* RELAXED: a waker that still sees PARKED makes one wake-up too many, no harm. */
	twi_store_relaxed(&park->word, TWI_AWAKE);
}

/* The sleeper. Until a wake or `until_ns` of CLOCK_MONOTONIC; may return early. */
static inline void twi_park_wait(struct twi_park *park, int64_t until_ns)
{
	(void)twi_futex_wait(&park->word, TWI_PARKED, until_ns);
}

/* The sleeper, between prepare and done: nobody has woken it. */
static inline bool twi_park_undisturbed(struct twi_park *park)
{
	/* RELAXED: why it was woken, the next turn acquires. */
	return twi_load_relaxed(&park->word) == TWI_PARKED;
}

/* The system's part of a wake. The park may be gone. */
static inline void twi_park_call(_Atomic uint32_t *word, int event_fd)
{
	if (TWI_LIKELY(event_fd < 0))
		twi_futex_wake(word);
	else
		twi_park_fd_raise(event_fd);
}

/* A loop, which is awake from here on. True when somebody has woken it, or is about to. */
static inline bool twi_park_take_back(struct twi_park *park)
{
	/* RELAXED: as above; whether there are reasons, the look before the next sleep tells (E8). */
	return twi_exchange_relaxed(&park->word, TWI_AWAKE) == TWI_AWAKE;
}

/* As twi_park_call, of a loop, whose park is still there. */
static inline void twi_park_kick(struct twi_park *park, int timer_fd)
{
	twi_timer_fd_set(timer_fd, TWI_TIMER_FD_NOW);
	TWI_TEST_POINT("park:kicked");
	/* RELAXED: the kernel's order of the settings is enough, see worker/poll.c. */
	(void)twi_fetch_add_relaxed(&park->kicks, 1);
}

/* Any thread, after it has made its reason visible by a seq_cst store or exchange. */
static inline void twi_park_wake(struct twi_park *park)
{
	int event_fd, timer_fd;

	/* E8: the reason was stored before; pairs with prepare. */
	if (TWI_LIKELY(twi_load_seq_cst(&park->word) == TWI_AWAKE))
		return;
	TWI_TEST_POINT("park:waking");
	event_fd = park->event_fd;
	timer_fd = park->timer_fd;
	/* RELAXED: decides which of the wakers calls the system. */
	if (twi_exchange_relaxed(&park->word, TWI_AWAKE) != TWI_PARKED)
		return;
	if (TWI_UNLIKELY(timer_fd != TWI_TIMER_FD_NONE))
		twi_park_kick(park, timer_fd);
	else
		twi_park_call(&park->word, event_fd);
}

#endif
