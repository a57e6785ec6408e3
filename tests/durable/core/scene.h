/* SPDX-License-Identifier: MIT */
/*
 * A set on an engine in loop mode with a virtual clock, and a store in memory. The test itself
 * makes the steps of the I/O thread. So one thread does everything, in the same order in each run,
 * and never sleeps.
 */
#ifndef TESTS_DURABLE_SCENE_H
#define TESTS_DURABLE_SCENE_H

#include "check.h"
#include "memory_store.h"

#include "durable/io.h"
#include "durable/open.h"

#include <errno.h>
#include <string.h>
#include <tickwheel.h>

enum { ACKS_MAX = 65536, RUNS_MAX = 65536 };

#define SECOND INT64_C(1000000000)
/* The wall clock at the start: the beginning of 2026. */
#define WALL_START (INT64_C(1767225600) * SECOND)

struct scene_run {
	struct tw_durable_id id;
	uint64_t attempt;
	int64_t due_ns, wall_ns, boot_ns;
	size_t bytes;
	unsigned char first; /* the first byte of the payload */
};

struct scene {
	struct tw_clock *clock;
	struct tw_engine *engine;
	struct disk *disk;
	struct tw_durable *set;
	struct tw_durable_options options;
	int64_t wall_step_ns; /* how far the wall clock was set forward */
	bool elapsed;         /* whether `counted` is one of the kinds */
	int64_t boot_start_ns;
	int boot; /* how often the machine was restarted; a test does so at most once */
	size_t ack_count, run_count;
	struct tw_durable_ack acks[ACKS_MAX];
	struct scene_run runs[RUNS_MAX];
	int result;      /* what the callback returns */
	int64_t next_ns; /* the next deadline, if the callback returns TW_DURABLE_NEXT */
	int states, state, error;
	/* if not NULL, called in a run */
	int (*within)(struct scene *scene, const struct tw_durable_self *self);
};

extern struct scene scene;
/*
 * Kinds of timers:
 * - plain has no options;
 * - retried tries again after 10 s and after 20 s;
 * - once runs its timers at most once;
 * - single runs one timer at a time;
 * - late does not run timers that are late by more than 10 s;
 * - patient is `retried` with a linger of 5 s, patient_once is `once` with that linger;
 * - counted counts elapsed time, and has retries.
 */
extern const struct tw_durable_kind plain, retried, once, single, late, patient, patient_once,
	counted;

void scene_make(void);
void scene_open(void);
int scene_try_open(void);
void scene_close(void);
/*
 * scene_reopen closes and opens the set. scene_kill does the same, but cuts the disk first, as kill
 * -9 would.
 */
void scene_reopen(void);
void scene_kill(void);
void scene_end(void);

int64_t scene_wall(void);
int64_t scene_boot(void);
/* Makes steps of the I/O thread, and polls of the engine, until both have nothing to do. */
void scene_settle(void);
/*
 * Moves both clocks forward by `ns`, in steps, and settles after each step. A step ends at the next
 * deadline, but after half a second at most.
 */
void scene_pass(int64_t ns);

struct tw_durable_id scene_schedule(const struct tw_durable_kind *kind, int64_t delay_ns,
				    const char *payload);
/* Returns the last acknowledgement for a context. Fails if there is none. */
struct tw_durable_ack scene_ack(const void *context);

#endif
