/* SPDX-License-Identifier: MIT */
/*
 * One-shot alarms for an event loop. Only this part of the server uses tickwheel.
 *
 * Only the loop's thread may call these functions, and alarms ring on it. The engine's worker only
 * passes on the due timeouts. So the data to which an alarm belongs needs neither a lock nor
 * atomics.
 *
 * An alarm is set once and rings at most once. The owner of an alarm keeps the pointer until the
 * alarm rings or is cleared, and must not use it afterwards. A cleared alarm never rings, even if
 * its timeout has already expired and is on its way to the loop.
 */
#ifndef TTL_SERVER_ALARMS_H
#define TTL_SERVER_ALARMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct alarm;
struct alarms;
struct tw_stats;

/* The function that an alarm calls on the loop's thread. */
typedef void alarm_ring(void *owner);

/* Figures about expired timeouts, including those whose alarm was cleared after the expiry. */
struct alarms_figures {
	uint64_t rung_count;
	/* Alarms that were cleared after the expiry and before the ring, so that the clear won the
	 * race. */
	uint64_t overtaken_count;
	uint64_t early_count;
	/* The time from the deadline to the ring: up to a tick by design, the rest is waiting for
	 * CPU. */
	uint64_t lateness_p50_us;
	uint64_t lateness_p99_us;
	uint64_t lateness_max_us;
};

/* Creates the alarms. If `loop` is true, the engine has no worker thread. Returns 0, or a negative
 * errno value. */
int alarms_create(uint64_t tick_ns, bool loop, struct alarms **ret_alarms);
/* Frees the alarms. Must be called after alarms_stop. NULL is accepted. */
void alarms_destroy(struct alarms *alarms);

/* Returns a descriptor that becomes readable when alarms_run has something to do. */
int alarms_fd(const struct alarms *alarms);
void alarms_run(struct alarms *alarms);

/* Stops the engine. On return all alarms have ended, including those that did not ring, so their
 * owners must not clear them. Returns 0, or a negative errno value. */
int alarms_stop(struct alarms *alarms);

/* Returns the time of the clock in which deadlines are given. */
int64_t alarms_now_ns(struct alarms *alarms);

/* Sets an alarm. Returns 0, or a negative errno value (no memory, or stopped). */
int alarm_set(struct alarms *alarms, int64_t deadline_ns, alarm_ring *ring, void *owner,
	      struct alarm **ret_alarm);
/* Clears an alarm, which then never rings. NULL is accepted. */
void alarm_clear(struct alarm *alarm);

void alarms_figures_get(const struct alarms *alarms, struct alarms_figures *ret_figures);
void alarms_stats_get(struct alarms *alarms, struct tw_stats *ret_stats);

/* Prints the account of all alarms ever set; must be called after alarms_stop. Returns how many
 * alarms were lost, plus the differences to the engine's own counters. Any result other than 0 is
 * an error. */
uint64_t alarms_account(struct alarms *alarms, FILE *stream);

#endif
