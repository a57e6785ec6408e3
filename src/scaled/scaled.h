/* SPDX-License-Identifier: MIT */
/*
 * Scaled timeouts. All timeouts of a scaled kind have the same least and most delay, and
 *
 *     deadline = start + least + factor * (most - least)
 *
 * where the factor belongs to the engine and may change while they are pending.
 *
 * Structure. A scaled kind has a queue: an engine in loop mode, which users do not see. Each
 * timeout is an ordinary timeout of that engine, with the deadline start + most. So all deadlines
 * in the queue's wheel are constant. The factor only changes the time that each poll of the queue
 * gets:
 *
 *     queue time = engine time + (1 - factor) * (most - least)
 *
 * A timeout is due at the same moment by both formulas. A lower factor makes the queue's time jump
 * ahead. A higher factor would set it back, but tw_engine_poll_at never goes back: the queue's time
 * stands still until the formula gives a later time, and until then the pending timeouts of the
 * queue wait. The queue's time is never after now + (most - least), so the deadline of a new
 * timeout (now + most) is never before the queue's time. A change of the factor therefore touches
 * neither a wheel nor a timeout. (A list sorted by start time would do as well, but each restart of
 * a timeout would have to move it in the list. With a wheel a restart is one compare-and-swap, and
 * the wheel moves the timeout later.)
 *
 * Timers of a kind. A kind has two timeouts at its engine, both periodic, so that no step after the
 * creation needs memory. Their runs never overlap, because both run on the engine's worker:
 *
 *     driver   is set to the time at which the queue must be polled next. Its run is a turn
 *              (turn.c): it polls the queue for a bounded time, publishes when it needs the next
 *              turn, and sets its own next run.
 *     relay    never runs by itself. Its run makes the driver due at once.
 *
 * Wakes. The queue's park is driven (thread/park.h): if a thread schedules a timeout that is due
 * before the published time, it calls `twi_seat_drive` instead of waking a loop. The protocol is
 * the same as for a loop (E8). A change of the factor calls `twi_seat_drive`, too, once for each
 * kind.
 *
 * A drive (`twi_seat_drive`) makes the driver due at once, by a reschedule. The reschedule fails
 * while the driver runs, and the turn under way may have looked too early to see the reason for the
 * drive. In this case the drive reschedules the relay, which runs after the driver and makes the
 * driver run again. This second reschedule fails only while the relay runs. Then the relay has not
 * made the driver due yet, or the driver's next run has not begun. So after each drive a turn
 * begins that sees the reason.
 *
 * The word `asked` gives the order. Each drive swaps it before it looks at the two timeouts. Each
 * turn swaps it before it looks at the queue and at the factor (E150). If the turn's swap comes
 * first, the drive sees the states of the timeouts as they were in that turn, or later.
 *
 * Seats. An engine has a list of seats, one for each kind, with the handles of the kind's two
 * timers. A change of the factor walks the list. A seat is never freed before the engine, and a
 * handle is safe for ever, so the walk needs no lock and no RCU section. A new kind takes a free
 * seat, or adds one. The creation of a kind and each change of the factor make a read-modify-write
 * of the engine's factor (E151). So either the change sees the seat, or the first turn of the kind
 * sees the factor.
 *
 * Ownership. Queue, wheel and clock: as those of an engine in loop mode. The owner is the thread of
 * a turn, or the one that stops the kind. A kind's creator claims `owner` of a seat by a swap. The
 * seat's other fields belong to the creator until the kind's first turn. Only the next owner writes
 * the handles again.
 *
 * Ends. When the engine is stopped, it hands back the relay. The relay's finaliser stops the queue,
 * which hands back the timeouts to the same hook. tw_scaled_stop stops the queue of one kind. After
 * either stop the driver finds the queue closed, and sets no further run.
 *
 * Fork. A kind stays the parent's. In the child its timers do nothing.
 *
 * Progress. Schedule, cancel and touch: as those of a single timeout. A change of the factor is
 * lock-free for each kind. A turn is bounded: by TWI_SCALED_RUNS callbacks, by TWI_SCALED_TURN_NS
 * plus one callback, and by one slice of the wheel (wheel/hierarchical.c).
 */
#ifndef TWI_SCALED_SCALED_H
#define TWI_SCALED_SCALED_H

#include "engine/engine.h"
#include "scaled/clock.h"

#include <tickwheel/scaled.h>

/* A turn begins no further callback after this time, or after this many callbacks. */
#define TWI_SCALED_TURN_NS INT64_C(200000)
#define TWI_SCALED_RUNS UINT64_C(2048)
/*
 * The most polls of a turn. If the polls run no callback, this is the only bound with a virtual
 * clock, because no time passes then.
 */
#define TWI_SCALED_POLLS 4096u
/* The most timeouts that one poll of a turn moves from other threads into the wheel. */
#define TWI_SCALED_BATCH 2048u

/*
 * Longer delays count as this one: 146 years. The sum of time and delay then fits. Otherwise the
 * deadline would be TW_NEVER, and such a timeout would not expire at any factor.
 */
#define TWI_SCALED_DELAY_MOST_NS (INT64_MAX / 2)

struct tw_scaled {
	struct tw_engine *engine;             /* [const] the user's engine */
	struct tw_engine *queue;              /* [const] the hidden engine, see above */
	struct twi_seat *seat;                /* [const] */
	const struct tw_allocator *allocator; /* [const] */
	int64_t least_ns;                     /* [const] */
	int64_t most_ns;                      /* [const] */
	uint32_t fork_epoch;                  /* [const] */
	struct twi_clock_follow clock;        /* [const] */
};

/* The kinds of the two timers. Their argument is the seat. */
extern const struct tw_kind twi_scaled_driver_kind;
extern const struct tw_kind twi_scaled_relay_kind;

/* seat.c: returns a seat for a new kind, or NULL if there is no memory. */
struct twi_seat *twi_seat_take(struct tw_scaled *scaled);
/* seat.c: gives the seat back for another kind. Its timers must have ended. */
void twi_seat_give(struct twi_seat *seat);
/* seat.c: makes a seat's timers visible. Afterwards a change of the factor sees them. */
void twi_seat_fill(struct twi_seat *seat, struct tw_handle driver, struct tw_handle relay);
/* seat.c: reads one of a seat's handles. */
struct tw_handle twi_seat_handle(const _Atomic uint64_t *half);
/* seat.c: makes one of a seat's timers due at once. Returns false if it runs, or has ended. */
bool twi_seat_due(const _Atomic uint64_t *half);
/* seat.c: makes sure that a turn of the seat's kind begins after this call. */
void twi_seat_drive(struct twi_seat *seat);
/*
 * Does the same as twi_seat_drive, for the park of a kind's queue. A waker calls this function
 * instead of waking a thread.
 */
void twi_seat_park_drive(struct twi_park *park);

/* factor.c: returns how far the queue's time is ahead of the engine's, by the present factor. */
int64_t twi_scaled_ahead_ns(const struct tw_scaled *scaled);

/* Returns whether the kind belongs to the parent of this forked process. */
static inline bool twi_scaled_of_parent(const struct tw_scaled *scaled)
{
	return scaled->fork_epoch != twi_fork_epoch;
}

#endif
