/* SPDX-License-Identifier: MIT */
/*
 * The reference model: the promises of an engine, in the slowest and plainest form. It has one
 * sorted list of pending timeouts, one thread, and time as a number that cannot overflow.
 *
 * The order inside a tick is not promised. So the model gets each run and reports whether it was
 * right (model_expire). It also reports runs that should have come by now and have not
 * (model_flushed).
 */
#ifndef ORACLE_MODEL_H
#define ORACLE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

/* Must not wrap: the largest sum of a time, a delay and a tick is far below the limit. */
__extension__ typedef __int128 wide;

enum { MODEL_TIMEOUTS_MAX = 1500, MODEL_NOBODY = -1 };

enum model_life {
	MODEL_NONE, /* no engine */
	MODEL_NEW,
	MODEL_OPEN,
	MODEL_STOPPING,
	MODEL_STOPPED,
};

enum model_state {
	MODEL_PENDING,
	MODEL_DUE, /* at the dispatch hook, or waiting for a run */
	MODEL_RUNNING,
	MODEL_EXPIRED,
	MODEL_CANCELLED,
	MODEL_HANDED_BACK,
};

struct model_timeout {
	int64_t deadline_ns;
	wide due_ns; /* the first tick boundary after the deadline; in a loop, the deadline */
	enum model_state state;
	bool passed_on; /* while it runs: another timeout got its place under the limit */
	bool owed;      /* pending when a flush began */
	bool seen;      /* pending during a whole flush, so the worker has it in its wheel */
	bool moved;     /* rescheduled: its order among others of that time is not promised */
	int next;       /* in the list of pending ones, sorted by due_ns */
};

/* Counters as struct tw_stats has them. */
struct model_counts {
	uint64_t scheduled;
	uint64_t rejected;
	uint64_t expired;
	uint64_t cancelled;
	uint64_t unexpired;
	uint64_t pending;
	uint64_t seen;
};

struct model {
	/* The engine. */
	enum model_life life;
	bool loop;
	int64_t start_ns;
	int64_t now_ns;
	wide tick_ns;
	uint32_t slots; /* a power of two */
	uint64_t limit;
	struct model_counts counts;
	bool any_order;      /* ticks may mix, because entries have waited for memory */
	int64_t flushing_ns; /* when the current flush began */
	int64_t flushed_ns;  /* when the last one that ended began */
	wide latest_ns;      /* of the seen that have expired, the latest due */
	bool overshoot;      /* a timeout expired that was not due yet when the last flush began */
	/* All timeouts ever made. Those of former engines have ended. */
	struct model_timeout timeout[MODEL_TIMEOUTS_MAX];
	int count;
	int first;
};

void model_init(struct model *model);

/* Returns 0, or the code that tw_engine_create should return. */
int model_options_judge(const struct tw_options *options);

/* Makes an engine on a clock that shows `now_ns`. */
void model_create(struct model *model, const struct tw_options *options, int64_t now_ns);

/* Returns the expected result of tw_clock_set. */
int model_clock_set(struct model *model, int64_t now_ns);

/*
 * Returns now + delay, as tw_schedule should compute it. Without a delay it is the last moment
 * before the present tick.
 */
int64_t model_deadline(const struct model *model, int64_t delay_ns);

/*
 * Returns the expected result of tw_schedule_at. The new timeout is the last one. If a callback
 * makes the call, `inside` is its timeout, otherwise MODEL_NOBODY.
 */
int model_schedule_at(struct model *model, int64_t deadline_ns, int inside);

/* Return the expected results of these calls if the handle is not stale. */
int model_reschedule_at(struct model *model, int id, int64_t deadline_ns);
int model_cancel(struct model *model, int id);
enum tw_state model_state_of(const struct model *model, int id);

/* Returns when a loop must be polled at the latest: when the tick of its first timeout is over. */
wide model_poll_ns(const struct model *model);

/* Returns whether a pending timeout is due. */
bool model_any_due(const struct model *model);

/*
 * Report an event of a timeout. Return NULL if it was right, otherwise an error text. A timeout
 * expires, its callback begins, and it ends (with the finaliser). Or it is handed back.
 */
const char *model_expire(struct model *model, int id);
const char *model_run(struct model *model, int id);
const char *model_end(struct model *model, int id);
const char *model_hand_back(struct model *model, int id);

/* Called around a flush. Timeouts due when it began must have expired when it ends. */
void model_flush(struct model *model);
const char *model_flushed(struct model *model);

/* Ends a stop that had no hook: the remaining timeouts were handed back. */
void model_hand_back_all(struct model *model);

#endif
