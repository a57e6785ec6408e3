/* SPDX-License-Identifier: MIT */
/*
 * The reference model: what an engine promises, in the slowest and plainest way. One sorted list of
 * pending timeouts, one thread, time as a number with room to spare.
 *
 * The order inside a tick is not promised, so the model is told what has run and says whether that
 * was right (model_expire); and it says what must have run by now and has not (model_settled).
 */
#ifndef ORACLE_MODEL_H
#define ORACLE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

/* Nothing wraps: the largest sum of a time, a delay and a tick is far away. */
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
	MODEL_DUE, /* with the dispatch hook, or waiting for a run */
	MODEL_RUNNING,
	MODEL_EXPIRED,
	MODEL_CANCELLED,
	MODEL_HANDED_BACK,
};

struct model_timeout {
	int64_t deadline_ns;
	wide due_ns; /* the first tick boundary after the deadline */
	enum model_state state;
	bool passed_on; /* while it runs: its place under the limit went to another one */
	bool owed;      /* pending when a settle began */
	bool seen;      /* pending through a whole settle: the worker has it in its wheel */
	bool moved;     /* rescheduled: where it comes among others of that time is not promised */
	int next;       /* in the list of pending ones, sorted by due_ns */
};

/* Counters as struct tw_stats has them. */
struct model_counts {
	uint64_t scheduled;
	uint64_t refused;
	uint64_t expired;
	uint64_t cancelled;
	uint64_t handed_back;
	uint64_t pending;
	uint64_t seen;
};

struct model {
	/* The engine. */
	enum model_life life;
	int64_t start_ns;
	int64_t now_ns;
	wide tick_ns;
	uint32_t slots; /* a power of two */
	uint64_t limit;
	struct model_counts counts;
	bool any_order;      /* ticks may mix: entries have waited for memory */
	int64_t settling_ns; /* when the settle under way began */
	int64_t settled_ns;  /* when the last one that ended began */
	wide latest_ns;      /* of the seen that have expired, the latest due */
	bool overshoot;      /* something expired that was not due yet when the last settle began */
	/* All timeouts ever made, those of former engines too; these have ended. */
	struct model_timeout timeout[MODEL_TIMEOUTS_MAX];
	int count;
	int first;
};

void model_init(struct model *model);

/* 0, or the code that tw_engine_create answers with. */
int model_options_judge(const struct tw_options *options);

/* An engine on a clock that shows `now_ns`. */
void model_create(struct model *model, const struct tw_options *options, int64_t now_ns);

/* tw_clock_set's answer. */
int model_clock_set(struct model *model, int64_t now_ns);

/* now + delay, as tw_schedule has it. */
int64_t model_deadline(const struct model *model, int64_t delay_ns);

/*
 * tw_schedule_at's answer; the new timeout is the last one. `inside` is the timeout whose callback
 * makes the call, or MODEL_NOBODY.
 */
int model_schedule_at(struct model *model, int64_t deadline_ns, int inside);

/* What these answer, as long as the handle is not stale. */
int model_reschedule_at(struct model *model, int id, int64_t deadline_ns);
int model_cancel(struct model *model, int id);
enum tw_state model_state_of(const struct model *model, int id);

/* Something is pending whose time has come. */
bool model_any_due(const struct model *model);

/*
 * What happened to a timeout: NULL if that was right, else what was wrong. It expires, its callback
 * begins, ends (with the finaliser); or it is handed back.
 */
const char *model_expire(struct model *model, int id);
const char *model_run(struct model *model, int id);
const char *model_end(struct model *model, int id);
const char *model_hand_back(struct model *model, int id);

/* Around a settle: what was due when it began must have expired when it ends. */
void model_settle(struct model *model);
const char *model_settled(struct model *model);

/* The end of a stop that had no hook to tell: what is left was handed back. */
void model_hand_back_all(struct model *model);

#endif
