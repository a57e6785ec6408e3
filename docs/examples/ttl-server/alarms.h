/* SPDX-License-Identifier: MIT */
/*
 * One-shot alarms for an event loop: the only room that knows tickwheel.
 *
 * Every function here belongs to the loop's thread, and alarms ring on it: the engine's worker only
 * passes on what is due, so what an alarm is about needs neither a lock nor an atomic.
 *
 * An alarm is set once and rings at most once. Whoever set it keeps the pointer until the alarm
 * rings or until alarm_clear, whichever comes first; after either it must forget the pointer. A
 * cleared alarm never rings, even if its timeout has expired and is on its way already.
 */
#ifndef TTL_SERVER_ALARMS_H
#define TTL_SERVER_ALARMS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct alarm;
struct alarms;
struct tw_stats;

/* What an alarm does on the loop's thread. */
typedef void alarm_ring(void *owner);

/* What happened to expired timeouts, the ones whose alarm was cleared on the way included. */
struct alarms_figures {
	uint64_t rung_count;
	/* Cleared after the expiry and before the ring: the race, won by the clearing. */
	uint64_t overtaken_count;
	uint64_t early_count;
	/* From the deadline to the loop: up to a tick by design, the rest is waiting for CPU. */
	uint64_t lateness_p50_us;
	uint64_t lateness_p99_us;
	uint64_t lateness_max_us;
};

/* `loop`: without a worker. 0, or a negative errno value. */
int alarms_create(uint64_t tick_ns, bool loop, struct alarms **ret_alarms);
/* After alarms_stop. NULL is accepted. */
void alarms_destroy(struct alarms *alarms);

/* A file descriptor that becomes readable when alarms_run has something to do. */
int alarms_fd(const struct alarms *alarms);
void alarms_run(struct alarms *alarms);

/* Stops the engine; alarms that did not ring have ended by then: their owners must not clear them.
 * 0, or a negative errno value. */
int alarms_stop(struct alarms *alarms);

/* The clock that deadlines count in. */
int64_t alarms_now_ns(struct alarms *alarms);

/* 0, or a negative errno value (no memory; stopped). */
int alarm_set(struct alarms *alarms, int64_t deadline_ns, alarm_ring *ring, void *owner,
	      struct alarm **ret_alarm);
/* NULL is accepted. */
void alarm_clear(struct alarm *alarm);

void alarms_figures_get(const struct alarms *alarms, struct alarms_figures *ret_figures);
void alarms_stats_get(struct alarms *alarms, struct tw_stats *ret_stats);

/* Prints the account of all alarms ever set, after alarms_stop; returns how many were lost, plus
 * how many the engine counts otherwise. 0 is the only good answer. */
uint64_t alarms_account(struct alarms *alarms, FILE *stream);

#endif
