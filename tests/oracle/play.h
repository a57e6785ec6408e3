/* SPDX-License-Identifier: MIT */
/*
 * Both engines do the same operations, and every observable is compared (playing: play.c).
 *
 * What makes it exact although the real engine has a thread. The worker does nothing that can be
 * seen unless something is due; so as soon as an operation has made something due, the player
 * settles. There are two ways to have more than that: a callback may be told to hold the worker;
 * then operations go on beside it, with timeouts that are due and have not run. And callbacks do
 * operations themselves. Whoever runs, callback or player, has the baton, and asks the model in the
 * same breath as the engine; the player gives it away only while it waits for the worker.
 *
 * A loop has no thread beside the player. There the player polls where it would settle, with and
 * without a budget, until tw_next_due says that nothing is due; and what that says is compared too.
 *
 * The first difference ends the process, by way of play_failed.
 */
#ifndef ORACLE_PLAY_H
#define ORACLE_PLAY_H

#include "fault.h"
#include "model.h"
#include "op.h"

#include <pthread.h>
#include <tickwheel.h>

/* How long anything may take in real time. */
#define PLAY_PATIENCE_S 20
#define PLAY_PATIENCE_NS (PLAY_PATIENCE_S * INT64_C(1000000000))

struct play;

/* What a callback is to do. */
struct script {
	enum act act;
	int64_t argument;
	enum act then;
	int64_t again;
	int generation;
	bool hold;
};

/* A timeout as its user sees it. Its number is that of the model's timeout. */
struct record {
	struct play *play;
	int id;
	struct tw_handle handle;
	struct tw_engine *engine;
	const struct tw_kind *kind;
	struct script script;
	int finalised;
	bool reborn; /* its node serves a later one: the handle is stale */
	bool stale;  /* it said so */
};

/* Accepted by the dispatch hook, not run yet. */
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
	bool poor;              /* there is no memory now */
	long long bytes_before; /* that the allocator had given out before the engine */
	int64_t dispatch_accepts;
	struct accepted accepted;
	bool loop;  /* no thread: the player polls */
	bool owned; /* its timeouts are of the owner's kinds */
	uint64_t polls;
	uint64_t batch;        /* option transfer_batch */
	uint64_t settles;      /* that this engine has served */
	struct tw_stats stats; /* as they were at the last look */
	int refusals;          /* a refused schedule uses a node up too */
	int stale_unseen;      /* handles that are stale and no later one says why */

	/* The baton, and what is waited for with it. */
	pthread_mutex_t baton;
	pthread_cond_t changed;
	int holder;  /* who holds the worker, or MODEL_NOBODY */
	bool hooked; /* the stop under way tells what it hands back */
	bool settling;
	bool settled;
	int settle_code;
	pthread_t settler;

	/* For the report. */
	const struct sequence *sequence;
	int at;
};

/*
 * Called once, with what differs and where, by any thread; must not return. To be set before the
 * first play.
 */
extern void (*play_failed)(const struct sequence *sequence, int at, const char *what);

/* Once in a process, before anything else: memory that is never short. */
void play_prepare(void);

/* Does a whole sequence, and takes everything down again. */
void play_run(const struct sequence *sequence);

/* Inside. */
_Noreturn void play_fail(struct play *play, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* `id` is the timeout that it is about, or MODEL_NOBODY. */
void play_expect(struct play *play, int id, const char *what, long long actual, long long expected);
/* `problem` as the model says it: NULL is good. */
void play_judge(struct play *play, int id, const char *problem);

/* The baton. The player has it unless it waits; callbacks take it where they are not the player. */
struct play_self {
	bool player;
	int depth;  /* how often it has entered: a finaliser runs inside a callback's cancel */
	int inside; /* the timeout whose callback the thread is in, or MODEL_NOBODY */
};
extern _Thread_local struct play_self play_self;
void play_enter(struct play *play);
void play_leave(struct play *play);
/* Waits, the baton given away, for something to change; fails when nothing does. */
void play_wait(struct play *play, const char *what);
/* Does the operation in another thread, as the player. */
typedef void play_step(struct play *play, const struct op *op);
void play_aside(struct play *play, const struct op *op, play_step *step);

/* Counted back from the newest; MODEL_NOBODY when there is none. */
int play_pick(const struct play *play, int64_t back);
bool play_held(const struct play *play);

/* engine.c */
play_step play_create, play_destroy, play_start, play_stop, play_due, play_memory;
void play_finish(struct play *play);
/* All of the worker's part is over, or about to be: waits for the end. */
void play_stop_complete(struct play *play);

/* settle.c */
play_step play_settle, play_release;
/* In a loop: the player is the worker while it calls what may run callbacks, without the baton. */
void play_work_begin(struct play *play);
void play_work_end(struct play *play);
/* Until nothing is due, or the worker is held. */
void play_quiet(struct play *play);
/* The settle under way, if there is one, has ended by stop. */
void play_settle_overtaken(struct play *play);

/* timeout.c */
struct scheduling {
	bool by_delay;
	int64_t time_ns; /* delay or deadline */
	bool final;
	struct script script;
};
/* What the model says to the next one; its record is made. */
int play_schedule_ask(struct play *play, const struct scheduling *what);
/* The engine has said the same. */
void play_scheduled(struct play *play, int id, int code, struct tw_handle handle);
void play_schedule_one(struct play *play, const struct scheduling *what);
void play_cancel_one(struct play *play, int id, bool wait);
void play_clock_to(struct play *play, wide now_ns);
void play_move_one(struct play *play, int id, bool by_delay, int64_t time_ns);
play_step play_schedule, play_cancel, play_clock, play_reschedule;

/* many.c: batches. The model is asked as they are put together, the engine once. */
void play_many_begin(struct play *play);
void play_many_add(struct play *play, const struct scheduling *what);
void play_many_add_handle(struct play *play, int id);
/* Of none: nothing is done. */
void play_many_schedule(struct play *play, bool by_delay);
void play_many_cancel(struct play *play);

/* callback.c */
extern const struct tw_kind play_kind;
/* With a finaliser or not, for everybody or for the owner only. */
const struct tw_kind *play_kind_of(bool final, bool owned);
tw_dispatch_hook play_dispatch;
tw_hand_back play_hand_back;
play_step play_misuse;

/* compare.c */
/* What a call about a handle should have answered, given that handles may be stale. */
int play_expected(struct play *play, int id, int actual, int stale_code, int fresh_code);
void play_compare_handle(struct play *play, int id);
void play_compare_counts(struct play *play);
/* All of it. */
void play_compare(struct play *play);

#endif
