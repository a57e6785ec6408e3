/* SPDX-License-Identifier: MIT */
/*
 * Does the same operations on the real engine and on the model, and compares everything that a user
 * can observe (play.c).
 *
 * The comparison is exact although the real engine has a thread. The worker does nothing visible
 * unless a timeout is due. So when an operation has made one due, the player flushes. There are two
 * exceptions. A callback may hold the worker, and then operations continue while due timeouts have
 * not run. And callbacks make operations themselves.
 *
 * The baton is a lock that makes each step exact: its holder makes the call to the engine and asks
 * the model in one step. The player holds it, and releases it only while it waits for the worker. A
 * running callback takes it.
 *
 * A loop has no thread besides the player. There the player polls when it would flush, with and
 * without a budget, until tw_engine_next_due reports that no timeout is due. The results of the
 * polls are compared too.
 *
 * The first difference ends the process by play_failed.
 */
#ifndef ORACLE_PLAY_H
#define ORACLE_PLAY_H

#include "fault.h"
#include "model.h"
#include "op.h"

#include <pthread.h>
#include <tickwheel.h>

/* The longest time that any step may take, in real time. */
#define PLAY_PATIENCE_S 20
#define PLAY_PATIENCE_NS (PLAY_PATIENCE_S * INT64_C(1000000000))

struct play;

/* What a timeout's callback does. */
struct script {
	enum act act;
	int64_t argument;
	enum act then;
	int64_t again;
	int generation;
	bool hold;
};

/* A timeout as its user sees it. It has the same number (`id`) as the model's timeout. */
struct record {
	struct play *play;
	int id;
	struct tw_handle handle;
	struct tw_engine *engine;
	const struct tw_kind *kind;
	struct script script;
	int finalised;
	bool reborn; /* whether its node serves a later timeout, so that the handle is stale */
	bool stale;  /* whether a call has returned that the handle is stale */
};

/* Timeouts that the dispatch hook accepted and that have not run yet. */
struct accepted {
	struct tw_due due[MODEL_TIMEOUTS_MAX];
	int at;
	int count;
};

struct play {
	struct model model;
	struct record record[MODEL_TIMEOUTS_MAX];
	struct tw_engine *engine;
	struct tw_clock *clock;
	struct fault memory;
	bool poor;              /* whether there is no memory at present */
	long long bytes_before; /* how many bytes were allocated before the engine was made */
	int64_t dispatch_accepts;
	struct accepted accepted;
	bool loop;  /* whether the engine has no thread, so that the player polls */
	bool owned; /* whether its timeouts are owner-only */
	uint64_t polls;
	uint64_t batch;        /* option transfer_batch */
	uint64_t flushes;      /* how many flushes this engine has served */
	struct tw_stats stats; /* the statistics as last read */
	int rejections;        /* how many schedules were rejected; each uses up a node too */
	int stale_unseen;      /* how many stale handles no later handle explains */

	/* The baton, and the state that threads wait for with it. */
	pthread_mutex_t baton;
	pthread_cond_t changed;
	int holder;  /* the timeout that holds the worker, or MODEL_NOBODY */
	bool hooked; /* whether the current stop reports the timeouts that it hands back */
	bool flushing;
	bool flushed;
	int flush_code;
	pthread_t flusher;

	/* For the report. */
	const struct sequence *sequence;
	int at;
};

/*
 * Called once, by any thread, with the place and text of the difference. The function must not
 * return. The pointer must be set before the first play.
 */
extern void (*play_failed)(const struct sequence *sequence, int at, const char *what);

/* Must be called once, before anything else in the process. Allocates the memory that the plays
 * need. */
void play_prepare(void);

/* Plays a whole sequence, and destroys all its engines. */
void play_run(const struct sequence *sequence);

/* Reports a difference during a play. */
_Noreturn void play_fail(struct play *play, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/*
 * Fails the play unless the two values are equal. `id` is the timeout that is compared, or
 * MODEL_NOBODY.
 */
void play_expect(struct play *play, int id, const char *what, long long actual, long long expected);
/* Fails the play unless `problem`, the model's text, is NULL. */
void play_judge(struct play *play, int id, const char *problem);

/* The calling thread's part in the play. play_enter takes the baton, and play_leave returns it. */
struct play_self {
	bool player;
	int depth;  /* how many times it has entered: a finaliser runs inside a callback's cancel */
	int inside; /* the timeout of the thread's current callback, or MODEL_NOBODY */
};
extern _Thread_local struct play_self play_self;
void play_enter(struct play *play);
void play_leave(struct play *play);
/* Releases the baton until another thread signals a change. Fails the play if none does so. */
void play_wait(struct play *play, const char *what);
/* Makes another thread do the operation as the player, while the player waits. */
typedef void play_step(struct play *play, const struct op *op);
void play_aside(struct play *play, const struct op *op, play_step *step);

/* Returns the timeout that is `back` before the newest, or MODEL_NOBODY if there is none. */
int play_pick(const struct play *play, int64_t back);
bool play_held(const struct play *play);

/* engine.c */
play_step play_create, play_destroy, play_start, play_stop, play_due, play_memory;
void play_finish(struct play *play);
/* Waits until a stop has ended. The worker's part must be over or about to end. */
void play_stop_complete(struct play *play);

/* flush.c */
play_step play_flush, play_release;
/* Releases the baton for a call in which callbacks may run. In a loop the player runs them. */
void play_work_begin(struct play *play);
void play_work_end(struct play *play);
/* Waits until no timeout is due, or the worker is held. */
void play_quiet(struct play *play);
/* If another thread was in a flush when the engine was stopped, waits until the flush has ended. */
void play_flush_overtaken(struct play *play);

/* timeout.c */
struct scheduling {
	bool by_delay;
	int64_t time_ns; /* delay or deadline */
	bool final;
	struct script script;
};
/* Asks the model to schedule the next timeout, and makes its record. Returns the expected
 * result. */
int play_schedule_ask(struct play *play, const struct scheduling *what);
/* Compares the engine's result with the model's. */
void play_scheduled(struct play *play, int id, int code, struct tw_handle handle);
void play_schedule_one(struct play *play, const struct scheduling *what);
void play_cancel_one(struct play *play, int id, bool wait);
void play_clock_to(struct play *play, wide now_ns);
void play_move_one(struct play *play, int id, bool by_delay, int64_t time_ns);
play_step play_schedule, play_cancel, play_clock, play_reschedule;

/*
 * many.c: begins a batch. Each play_many_add asks the model for the result of one item. At the end
 * the engine gets one call for all items.
 */
void play_many_begin(struct play *play);
void play_many_add(struct play *play, const struct scheduling *what);
void play_many_add_handle(struct play *play, int id);
/* These two make the engine's call. If the batch is empty, they make none. */
void play_many_schedule(struct play *play, bool by_delay);
void play_many_cancel(struct play *play);

/* callback.c */
extern const struct tw_kind play_kind;
/* Returns the kind with or without a finaliser, for all threads or owner-only. */
const struct tw_kind *play_kind_of(bool final, bool owned);
tw_dispatch_hook play_dispatch;
tw_unexpired_hook play_hand_back;
play_step play_misuse;

/* compare.c */
/* Returns the expected result of a call with this handle, which may be stale. */
int play_expected(struct play *play, int id, int actual, int stale_code, int fresh_code);
void play_compare_handle(struct play *play, int id);
void play_compare_counts(struct play *play);
/* Compares everything. */
void play_compare(struct play *play);

#endif
