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

/* Where the virtual clock stands: many ticks after the engine was made. */
#define WORLD_NOW_NS INT64_C(1000000000)
/* Due at once, and never. */
#define WORLD_DUE_NS INT64_C(0)

struct world {
	struct tw_clock *clock; /* NULL: CLOCK_MONOTONIC */
	struct tw_engine *engine;
	struct twi_worker *worker;
	bool has_worker; /* a thread of the harness is it */
};

extern struct world world;

/* What becomes of a timeout; ordinary memory, so a reader that nothing orders is a race. */
struct probe {
	unsigned ran;
	unsigned ended[4]; /* by enum tw_end: the finaliser */
	unsigned unexpired;
	int outcome; /* of a harness's call */
	struct tw_handle handle;
};

/* `arg` is a struct probe. With a finaliser, and without. */
extern const struct tw_kind probe_kind;
extern const struct tw_kind bare_kind;
/* Its callback ends the worker's thread. */
extern const struct tw_kind probe_exit_kind;
tw_unexpired_hook probe_hand_back;

/* In setup. An engine of one slot with a virtual clock; `options` from world_options, or NULL. */
struct tw_options world_options(void);
void world_open(const struct tw_options *options);

/*
 * In setup. STARTING: a thread of the harness is the worker, by world_work. RUNNING: threads of the
 * harness make its turns.
 */
void world_life(uint32_t life);

/*
 * In setup: these threads have a lane. Their stock is empty, so a thread takes next the block that
 * it gave back last.
 */
enum world_stock { WORLD_STOCK_EMPTY, WORLD_STOCK_FILLED };
void world_threads(unsigned count, enum world_stock stock);
/* In setup: what this thread gives goes to the depot at once, where others may have it. */
void world_thread_bare(unsigned thread);

/*
 * In setup, for a layer above the engine: one that runs, and four threads; the second one's memory
 * goes to all.
 */
void world_open_layer(void);

/* Memory for a layer, of pages of its own. */
extern const struct tw_allocator world_pages;

/* In setup: makes the timeouts due that were scheduled for now and are transferred. */
void world_time_goes_on(void);

/* In setup: a timeout in ingress, made by main. */
void world_schedule(struct probe *probe, const struct tw_kind *kind, int64_t deadline_ns);

/* The worker's thread, from begin to end. */
void world_work(void);

/* One turn of the worker by the calling thread, which may then be another one. */
void world_turn(void);

/*
 * In finish, if no thread is left to wake it: the worker has done its work; or it looks again soon,
 * because its barrier has failed or a push was cut.
 */
void world_await_pending(int64_t count);

/* In finish: stops, with the worker's part if no other thread does it, and destroys. */
void world_close(void);

/* Exactly one end; returns which. */
enum tw_end probe_end(const struct probe *probe);

#endif
