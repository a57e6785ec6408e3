/* SPDX-License-Identifier: MIT */
/*
 * The internals of tickwheel-uv-timer: the timers of one uv_loop_t, and a single timer.
 *
 * One engine in loop mode holds the timers, and one real uv_timer_t, the driver, wakes the loop for
 * them. The engine has a virtual clock that never advances by itself; each poll gets the loop's own
 * time (uv_now).
 *
 * To file a timer is to schedule it in the engine. If a filed timer is started again for a later
 * time, neither the engine nor the driver is touched. When the engine finds the timer at its old
 * time, timer_found files it again. So each filing causes at most one poll that was too early.
 *
 * The driver is never later than the first timer of the engine, but it may be earlier after a stop.
 * A uv_prepare_t corrects it before the loop computes how long it may sleep.
 *
 * A bracket is the time from tw_loop_enter to tw_loop_exit. The loop polls for I/O, and runs most
 * of a program's callbacks, between that uv_prepare_t and a uv_check_t. In this part of an
 * iteration, the first call that needs the engine opens a bracket, which the uv_check_t closes.
 * While timers run, a bracket is open, too. At all other times each call has a bracket of its own.
 * So a program may make its loop and timers on one thread and run them on another.
 *
 * Everything here belongs to the thread that uses the loop, as the loop does.
 */
#ifndef TWI_HOSTS_UV_LOOP_H
#define TWI_HOSTS_UV_LOOP_H

#include "hosts/due.h"

#include <tickwheel/engine.h>
#include <tickwheel/uv_timer.h>
#include <uv.h>

enum timer_flag {
	TIMER_REFERENCED = 1, /* keeps the loop alive while it is active */
	TIMER_ACTIVE = 2,
	TIMER_FILED = 4, /* has a timeout in the engine */
	TIMER_DUE = 8,   /* is in the due list */
	TIMER_CLOSING = 16,
};

/*
 * The driver's time if all timers are too far for the engine. The driver is active, but never runs,
 * because the loop's time never gets so far.
 */
#define TIMER_FAR (UINT64_MAX - 1)

/* A struct tw_uv_timer. Once TIMER_CLOSING is set, `timers` may be freed. */
struct timer {
	void *data;
	struct tw_uv_timers *timers;
	uint64_t flags;
	union {
		/* if TIMER_FILED: the time for which the engine has it, never after due.when */
		uint64_t filed;
		tw_uv_timer_callback *closed; /* if TIMER_CLOSING: the close callback, or NULL */
	};
	tw_uv_timer_callback *callback;
	uint64_t repeat;
	/* While the timer closes, `next` is the timer that was closed before it. */
	struct twi_host_due_link due;
	struct tw_handle handle;
};

struct tw_uv_timers {
	uv_timer_t driver;
	uv_prepare_t prepare;
	uv_check_t check;
	uv_idle_t closer; /* active in the loop only while timers close */
	uv_loop_t *loop;
	uv_timer_cb drive;
	struct tw_engine *engine;
	struct tw_clock *clock;
	uint64_t armed;   /* the driver's time, or UINT64_MAX if it does not run */
	uint64_t now;     /* the loop's time at the last poll */
	uint64_t starts;  /* how many timers have been started */
	uint64_t opened;  /* timers that are initialised and not closed */
	uint64_t active;  /* timers with TIMER_ACTIVE */
	uint64_t holding; /* timers with TIMER_ACTIVE and TIMER_REFERENCED */
	struct twi_host_due_list due;
	struct timer *closing; /* the timer that was closed last */
	unsigned
		handles; /* in tw_uv_timers_close and after: handles of ours that libuv still closes */
	bool polling;    /* between the uv_prepare_t and the uv_check_t */
	bool inside;     /* a bracket is open */
	bool early;      /* the driver may be earlier than needed */
	bool running;    /* callbacks of timers run */
	bool active_until_run; /* libuv before 1.48: a timer that is due is still active */
	bool foreign;          /* the program has closed one of the handles itself */
};

/*
 * Returns true if the program has closed the driver itself. A program does that if it closes all
 * handles that uv_walk visits.
 */
bool twi_uv_gone(const struct tw_uv_timers *timers);

/*
 * Opens a bracket if none is open. Returns 1 if it opened one, 0 if one was open, or a negative
 * error code.
 */
int twi_uv_enter(struct tw_uv_timers *timers);

/*
 * Closes the bracket if `entered` is 1, except while the loop polls: then the uv_check_t closes it.
 */
void twi_uv_leave(struct tw_uv_timers *timers, int entered);

/* Sets the driver to run at `when`. */
void twi_uv_set(struct tw_uv_timers *timers, uint64_t when);

/* Sets the driver to run no later than at `when`. */
void twi_uv_arm(struct tw_uv_timers *timers, uint64_t when);

/*
 * Count a timer as active or inactive. An active, referenced timer makes the driver keep the loop
 * alive.
 */
void twi_uv_activate(struct timer *timer);
void twi_uv_deactivate(struct timer *timer);

/* Counts one more active timer that keeps the loop alive, or one less if `hold` is false. */
void twi_uv_hold(struct tw_uv_timers *timers, bool hold);

/* Starts a timer. Returns 0, or an error code; after an error the timer is stopped. */
int twi_uv_start(struct timer *timer, uint64_t timeout);

void twi_uv_stop(struct timer *timer);

/* Calls `closed` of the timer when the loop closes handles. */
void twi_uv_close_later(struct timer *timer);

/*
 * Frees the timers of a loop that is closed already. Such a loop runs no close callbacks, so the
 * handles are not closed.
 */
void twi_uv_drop(struct tw_uv_timers *timers);

#endif
