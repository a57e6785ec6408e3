/* SPDX-License-Identifier: MIT */
/*
 * The descriptor's timer in loop mode (poll.c).
 *
 * Two threads may set the timer, and the last setting counts. The owner's setting loses no wake. A
 * waker first takes the park's state word from PARKED to AWAKE, and then sets the timer. The owner
 * first sets the timer, and then looks at the state word. If that is AWAKE, the owner sets "now"
 * again. The kernel has both settings in one order: if the waker's came first, the owner sees its
 * AWAKE.
 *
 * A waker's late setting must be seen as well, because the owner sets nothing while it takes the
 * timer for right. A poll that finds the state word AWAKE expects one more setting by a waker.
 * Until all expected settings are counted, the timer is not known to be right, so each poll sets
 * it.
 *
 * Both arguments need only two facts: the kernel makes its settings under a lock, one after the
 * other, and a system call happens where the program has it. So state word and count are relaxed.
 * After a later setting of its own, the owner sees all that a waker wrote before the waker's
 * setting. If the owner sees a count before its own setting, the counted setting came before it.
 * Otherwise, by the lock, the owner's look would come before the waker's count, and could not see
 * it.
 *
 * If the owner schedules a timeout between polls, straight into the wheel, and earlier than it has
 * published, it moves the timer at once. That costs a schedule one load of a word that only the
 * owner writes. It costs a system call only if the first of all timeouts changes. The timer is only
 * moved nearer in this case; the next poll moves it back.
 */
#ifndef TWI_TURN_TIMER_H
#define TWI_TURN_TIMER_H

#include "worker/worker.h"

/* The timer's setting is not known. */
#define TWI_TIMER_UNKNOWN INT64_MIN

/* Whether the descriptor has been made. */
bool twi_timer_made(const struct twi_worker *worker);

/* When the next poll is needed, in the engine's time. */
TWI_WORKER_ONLY int64_t twi_timer_due_ns(struct twi_worker *worker);

/* Sets the timer. Must come after the owner has published that it sleeps until `published_ns`. */
TWI_WORKER_ONLY void twi_timer_arm(struct twi_worker *worker, int64_t published_ns, unsigned left);

/* Sets the timer nearer for a timeout that is due earlier than was published. */
TWI_WORKER_ONLY void twi_timer_nearer(struct twi_worker *worker, int64_t deadline_ns);

#endif
