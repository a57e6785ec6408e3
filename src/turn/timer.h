/* SPDX-License-Identifier: MIT */
/*
 * The descriptor's timer in loop mode (poll.c).
 *
 * The owner and a waker may both set the timer, and the last setting counts. Even so, the owner's
 * setting never overrides a wake-up. A waker first takes the park's state word from PARKED to
 * AWAKE, and then sets the timer. The owner first sets the timer, and then looks at the state word.
 * If that is AWAKE, the owner sets "now" again. The kernel makes one setting after the other: if
 * the waker's setting came first, the owner finds AWAKE in the state word.
 *
 * The owner must also notice a waker's late setting, because it makes no system call if its record
 * of the timer (timer_ns) already shows the wanted time. A poll that finds the state word AWAKE
 * expects one more setting by a waker. Until all expected settings are counted, the timer is not
 * known to be right, so each poll sets it.
 *
 * The two paragraphs above rely on only two facts: the kernel makes its settings under a lock, one
 * after the other, and a system call is not moved to another place in the program. So the accesses
 * to state word and count are relaxed. After a later setting of its own, the owner sees all that a
 * waker wrote before the waker's setting. A waker counts its setting after it has made it. So if
 * the owner reads a count and then sets the timer, the counted setting came before the owner's. If
 * the waker's setting came after the owner's, the waker would also count after the owner's read.
 *
 * If the owner schedules a timeout between polls that is earlier than the published time, it moves
 * the timer at once. For this a schedule must load one field that only the owner writes. The
 * schedule makes a system call only if the new timeout is the earliest of all. A schedule never
 * sets the timer to a later time; the next poll does that.
 */
#ifndef TWI_TURN_TIMER_H
#define TWI_TURN_TIMER_H

#include "worker/worker.h"

/* Stands for a setting that is not known. */
#define TWI_TIMER_UNKNOWN INT64_MIN

/* Returns whether the descriptor has been made. */
bool twi_timer_made(const struct twi_worker *worker);

/* Returns when the next poll is needed, in the engine's time. */
TWI_WORKER_ONLY int64_t twi_timer_due_ns(struct twi_worker *worker);

/*
 * Sets the timer. Must be called after the owner has published that it sleeps until `published_ns`.
 * `left`: the work that is left, as enum twi_left.
 */
TWI_WORKER_ONLY void twi_timer_arm(struct twi_worker *worker, int64_t published_ns, unsigned left);

/* Sets the timer to an earlier time, for a timeout that is due before the published time. */
TWI_WORKER_ONLY void twi_timer_nearer(struct twi_worker *worker, int64_t deadline_ns);

#endif
