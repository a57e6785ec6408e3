/* SPDX-License-Identifier: MIT */
/* Shared by the files of the tour. */
#ifndef FAULTS_TOUR_INNER_H
#define FAULTS_TOUR_INNER_H

#include "ledger.h"
#include "race.h"
#include "tour.h"

#include <pthread.h>

#define MS INT64_C(1000000)

enum {
	SOON = 120,
	SOON_MS = 4,
	FAR = 220,
	MOVED = 240,
	MOVED_LIMIT = 300,
	PRODUCERS = 2,
	PRODUCED = 150,
	DUES = 512,
	THREADS = 64,
};

struct tour {
	const struct tour_plan *plan;
	struct tour_result *result;
	struct tw_clock *clock;
	struct tw_engine *real;
	struct tw_engine *moved;
	int64_t patience_ns; /* how long waiting calls wait, by the library's clock */
	int64_t moved_ns;
	int64_t soon_by_ns; /* the time by which all near timeouts on `real` are due */
	atomic_bool calls_made[CALLS];
	/* The counters of the destroyed engines, summed. */
	struct tw_stats books;
	/* The threads that the hook has created; one is the worker of `moved`. */
	pthread_t hook_thread[THREADS];
	size_t hook_threads;
	/*
	 * Timeouts that the dispatch hook accepted. Only the worker may access them until `moved`
	 * is flushed.
	 */
	struct tw_due due[DUES];
	size_t dues;
	atomic_bool closing;
	/* A callback that does not return until another thread opens the gate. */
	atomic_bool gate_entered;
	atomic_bool gate_open;
	atomic_uint waits_ended;
};

extern struct tour tour;

/*
 * Records a call's result, and checks it. `expected` has the codes that may come without a fault.
 */
int64_t tour_code(enum call call, uint32_t expected, int64_t result);
/* Checks that the result is `expected`. */
void tour_exactly(enum call call, int64_t result, int64_t expected);

/* Ends the plan's fault. */
void tour_relent(void);

typedef void tour_step(void);

/* steps_begin.c */
tour_step step_process, step_create, step_prepare, step_schedule, step_schedule_at, step_limit;
/* steps_use.c */
tour_step step_cancel, step_producers, step_callbacks, step_waits;
/* batches.c */
tour_step step_batches;
/* keys.c */
tour_step step_keys;
/* groups.c */
tour_step step_groups;
/* scaled.c */
tour_step step_scaled;
/* scopes.c */
tour_step step_scopes;
/* retries.c */
tour_step step_retries;
/* steps_end.c */
tour_step step_detach, step_usable, step_stop, step_destroy;

/* steps_use.c: queries an entry if it was accepted. */
void tour_ask(struct entry *entry);
/* steps_use.c: moves the virtual clock, and runs the timeouts that the dispatch hook got. */
void tour_moved_advance(int64_t step_ns);

/* callbacks.c: schedules an entry. If the call is rejected, checks the code. Returns the entry. */
struct entry *tour_offer(struct tw_engine *engine, int64_t delay_ns, uint32_t expected);
/* Does the same with a callback of its own, and a note for it. */
struct entry *tour_offer_kind(struct tw_engine *engine, int64_t delay_ns,
			      const struct tw_kind *kind, void *note, uint32_t expected);
/*
 * Cancels an accepted entry. If its callback runs and `wait_ns` is not negative, waits for the
 * callback.
 */
int64_t tour_cancel(struct entry *entry, int64_t wait_ns);

/*
 * A kind whose callback makes every call that a callback may make, and those that it must not make.
 */
extern const struct tw_kind ask_kind;
/* A kind whose callback schedules itself again, `note` times. */
extern const struct tw_kind rearm_kind;
/* A kind whose callback cancels `note`, another entry. */
extern const struct tw_kind cancel_kind;
/* A kind whose callback waits until gate_open is set. */
extern const struct tw_kind gate_kind;

tw_dispatch_hook tour_dispatch;
/* Runs the timeouts that the dispatch hook has accepted. */
void tour_dues_run(void);

#endif
