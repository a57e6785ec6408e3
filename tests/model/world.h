/* SPDX-License-Identifier: MIT */
/*
 * Shared by the harnesses of an engine: an engine with a thread of the harness as its worker, and
 * timeouts that count how they ended.
 */
#ifndef MODEL_WORLD_H
#define MODEL_WORLD_H

#include "engine/engine.h"
#include "model.h"

#include <tickwheel.h>

enum { WORLD_TICK_NS = 1000000 };

/* The time of the virtual clock: many ticks after the engine was created. */
#define WORLD_NOW_NS INT64_C(1000000000)
/* A deadline in the past, so the timeout is due at once. */
#define WORLD_DUE_NS INT64_C(0)

struct world {
	struct tw_clock *clock; /* NULL stands for CLOCK_MONOTONIC */
	struct tw_engine *engine;
	struct twi_worker *worker;
	bool has_worker; /* whether a thread of the harness is the worker */
};

extern struct world world;

/* How a timeout has ended. This is ordinary memory, so an unordered reader has a race. */
struct probe {
	unsigned ran;
	unsigned ended[4]; /* indexed by enum tw_end; counted by the finaliser */
	unsigned unexpired;
	int outcome; /* the return code of a harness's call */
	struct tw_handle handle;
};

/* Kinds whose `arg` is a struct probe. probe_kind has a finaliser, bare_kind does not. */
extern const struct tw_kind probe_kind;
extern const struct tw_kind bare_kind;
/* A kind whose callback ends the worker's thread. */
extern const struct tw_kind probe_exit_kind;
tw_unexpired_hook probe_hand_back;

/*
 * In setup: creates an engine of one slot with a virtual clock. `options` is from world_options, or
 * NULL.
 */
struct tw_options world_options(void);
void world_open(const struct tw_options *options);

/*
 * In setup: sets the engine's state. With STARTING, a thread of the harness is the worker and calls
 * world_work. With RUNNING, threads of the harness make the worker's turns.
 */
void world_life(uint32_t life);

/*
 * In setup: gives each of the first `count` threads a lane. With WORLD_STOCK_EMPTY, the block that
 * a thread gave back last is the next one that it takes.
 */
enum world_stock { WORLD_STOCK_EMPTY, WORLD_STOCK_FILLED };
void world_threads(unsigned count, enum world_stock stock);
/*
 * In setup: blocks that this thread gives back go to the depot at once, where other threads may
 * take them.
 */
void world_thread_bare(unsigned thread);

/*
 * In setup, for a layer above the engine: a running engine and four threads. Blocks that the second
 * thread gives back go to the depot.
 */
void world_open_layer(void);

/* An allocator for a layer. Each allocation gets memory pages of its own. */
extern const struct tw_allocator world_pages;

/*
 * In setup: moves the clock three ticks forward. A transferred timeout that was scheduled for the
 * old time is then due.
 */
void world_time_goes_on(void);

/* In setup: the main fiber schedules a timeout, which stays in ingress. */
void world_schedule(struct probe *probe, const struct tw_kind *kind, int64_t deadline_ns);

/* Does all that a worker's thread does, from its beginning to its end. */
void world_work(void);

/* Makes one turn as the worker, on the calling thread. Another thread may make the next turn. */
void world_turn(void);

/*
 * In finish, when no thread is left to wake the worker: waits until `count` timeouts are pending.
 * The worker may need a few more looks, if its barrier has failed or a push was interrupted between
 * its two steps.
 */
void world_await_pending(int64_t count);

/* In finish: stops and destroys the engine. If no other thread is the worker, this creates one. */
void world_close(void);

/* Checks that the timeout has ended once, and returns how. */
enum tw_end probe_end(const struct probe *probe);

#endif
