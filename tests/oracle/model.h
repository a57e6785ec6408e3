/* SPDX-License-Identifier: MIT */
/*
 * The reference model: the promises of an engine, in the slowest and plainest form. It has one
 * sorted list of pending timeouts, one thread, and time as a number that cannot overflow.
 *
 * The order inside a tick is not promised. So the player passes each run to the model, which
 * reports whether the run was right (model_expire). The model also reports a timeout that should
 * have run before the flush ended (model_flushed).
 */
#ifndef ORACLE_MODEL_H
#define ORACLE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

/* 128 bits, so that no sum of a time, a delay and a tick can overflow. */
__extension__ typedef __int128 wide;

enum { MODEL_TIMEOUTS_MAX = 1500, MODEL_NOBODY = -1 };

enum model_life {
	MODEL_NONE, /* there is no engine */
	MODEL_NEW,
	MODEL_OPEN,
	MODEL_STOPPING,
	MODEL_STOPPED,
};

enum model_state {
	MODEL_PENDING,
	MODEL_DUE, /* expired: it is at the dispatch hook, or waits for its run */
	MODEL_RUNNING,
	MODEL_EXPIRED,
	MODEL_CANCELLED,
	MODEL_HANDED_BACK,
};

struct model_timeout {
	int64_t deadline_ns;
	wide due_ns; /* the first tick boundary after the deadline; in a loop, the deadline */
	enum model_state state;
	/* while it runs: whether another timeout has got its place under the limit */
	bool passed_on;
	bool owed; /* whether it was pending when a flush began */
	/* whether it was pending during a whole flush, so the worker has it in its wheel */
	bool seen;
	/* whether it was rescheduled: then its order among others of that time is not promised */
	bool moved;
	int next; /* the next pending timeout, sorted by due_ns */
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
	/* whether timeouts of different ticks may mix, because of no memory, or a poll's budget */
	bool any_order;
	int64_t flushing_ns; /* the time at which the current flush began */
	int64_t flushed_ns;  /* the time at which the last flush that has ended began */
	wide latest_ns;      /* the latest due_ns of the seen timeouts that have expired */
	/* whether a timeout has expired although it was not due when the last flush began */
	bool overshoot;
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
 * Returns now + delay, as tw_schedule should compute it. For a delay of 0 or less, that is the last
 * nanosecond before the present tick.
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

/* Returns the latest time at which a loop must be polled: the end of its first timeout's tick. */
wide model_poll_ns(const struct model *model);

/* Returns whether a pending timeout is due. */
bool model_any_due(const struct model *model);

/*
 * Each of these functions reports an event of a timeout to the model. It returns NULL if the event
 * was right, otherwise an error text. Either a timeout expires, its callback begins, and it ends
 * (with the finaliser), or it is handed back.
 */
const char *model_expire(struct model *model, int id);
const char *model_run(struct model *model, int id);
const char *model_end(struct model *model, int id);
const char *model_hand_back(struct model *model, int id);

/* Called around a flush. Timeouts due when it began must have expired when it ends. */
void model_flush(struct model *model);
const char *model_flushed(struct model *model);

/* Ends a stop without a hook: all remaining timeouts count as handed back. */
void model_hand_back_all(struct model *model);

#endif
