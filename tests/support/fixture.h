/* SPDX-License-Identifier: MIT */
/*
 * An engine in virtual time. The test moves the clock, and after each step every due timeout has
 * fired. Closing the fixture checks the engine's counters (the books): scheduled = expired +
 * cancelled + handed back.
 */
#ifndef TESTS_FIXTURE_H
#define TESTS_FIXTURE_H

#include "check.h"

#include <stdatomic.h>
#include <tickwheel.h>

/* How long a test waits in real time for an event that must come. Builds for mutants set less. */
#ifndef PATIENCE_NS
#define PATIENCE_NS (60 * NS_PER_S)
#endif

/* Records the timeouts that stop hands back. */
struct back_log {
	atomic_int count;
	_Atomic int64_t remaining_ns;
	_Atomic(void *) arg;
	_Atomic(const struct tw_kind *) kind;
	struct tw_handle handle;
};

struct fixture {
	struct tw_clock *clock;
	struct tw_engine *engine;
	int64_t now_ns;
	int64_t tick_ns;
	struct back_log back;
};

/*
 * Returns the default options, but with a check of the wheel in each turn, and with the hashed
 * wheel unless TESTS_WHEEL=hierarchical is set.
 */
struct tw_options fixture_options(void);

/*
 * Open an engine at `start_ns` (or 0) of a clock of its own. If `options` is NULL, fixture_options
 * is used.
 */
void fixture_open_at(struct fixture *fixture, const struct tw_options *options, int64_t start_ns);
void fixture_open(struct fixture *fixture, const struct tw_options *options);

/* Moves the clock and waits until all due timeouts have fired. */
void fixture_advance_to(struct fixture *fixture, int64_t now_ns);
void fixture_advance(struct fixture *fixture, int64_t step_ns);

/* Waits until the worker has seen everything that happened before this call. */
void fixture_flush(struct fixture *fixture);

/* Stops the engine with the hook back_log_hook, which writes into `back`. */
void fixture_stop(struct fixture *fixture);

/* Stops the engine if the test has not, checks the books, and destroys it. */
void fixture_close(struct fixture *fixture);

/* Destroys a stopped engine and its clock. */
void fixture_destroy(struct fixture *fixture);

tw_unexpired_hook back_log_hook;

struct tw_stats stats_of(struct tw_engine *engine);
void check_books(struct tw_engine *engine);
/* Checks the books of a stopped engine. Also checks that no work is left, and that each sleep of
 * the worker has a counted reason. */
void check_last_books(struct tw_engine *engine);

/* Opens an engine in real time. If `options` is NULL, it has the defaults. */
struct tw_engine *real_engine_open(const struct tw_options *options);
void real_engine_close(struct tw_engine *engine);

int64_t monotonic_ns(void);
void sleep_ns(int64_t duration_ns);

/* Waits in real time until `*value` is at least `target`. Returns false if that does not happen. */
bool wait_until_at_least(atomic_int *value, int target);

bool same_handle(struct tw_handle left, struct tw_handle right);

#endif
