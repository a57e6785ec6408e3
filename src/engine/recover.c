/* SPDX-License-Identifier: MIT */
/*
 * Take-over after fork: an engine of the parent becomes the child's (docs/fork.md).
 *
 * The parent's threads may have been in the middle of a step, so everything that they shared is
 * replaced: rings, queues, counters, park and wheel. Only the nodes stay. The timeouts are found in
 * the slabs (timeout/recovery.h). They are inserted directly into the new wheel, because no other
 * thread has it yet. The engine's start passes the wheel to the next worker (E12).
 *
 * The state word at the fork decides what happens to a timeout:
 *
 *     INIT, LINKED, WHEELED, OWNED   the timeout was pending, and stays pending
 *     DUE, RUNNING                   the run is the parent's, so the timeout has ended
 *     DUE, RUNNING; periodic         the run is the parent's, and the next run is the child's
 *     DUE, RUNNING; with a date      the only run is the parent's, so the timeout has ended
 *     DUE, RUNNING; over             cancelled, or in its last run: the timeout has ended
 *     CANCELLED, EXPIRED             the timeout has ended, and is not visited
 *
 * The steps that can fail come first, so that a recovery that fails changes nothing.
 */
#include "base/atomic.h"
#include "base/tick.h"
#include "engine/engine.h"
#include "expiry/measure.h"
#include "expiry/periodic.h"
#include "expiry/slow.h"
#include "expiry/wall.h"
#include "ingress/lanes.h"
#include "timeout/recovery.h"
#include "worker/role.h"

#include <errno.h>
#include <string.h>
#include <tickwheel/fork.h>

struct recovery {
	struct twi_worker *worker;
	struct twi_thread *thread;
	uint64_t flags;
	uint64_t kept;
};

int twi_engine_recoverable(const struct tw_engine *engine)
{
	/* RELAXED: in a forked child no other thread changes the state of a parent's engine. */
	switch (twi_load_relaxed(&engine->worker.state)) {
	case TW_ENGINE_NEW:
	case TW_ENGINE_STARTING:
	case TW_ENGINE_RUNNING:
	case TW_ENGINE_STALLED:
	case TW_ENGINE_FAILED:
		return 0;
	default:
		return -ESHUTDOWN;
	}
}

static bool word_waits(uint64_t word)
{
	return twi_word_pending(word) || twi_word_state(word) == TWI_WORD_OWNED;
}

/*
 * Returns whether at the fork the parent was in a run of the chain, or about to begin one, and the
 * chain was not over.
 */
static bool chain_runs(uint64_t word)
{
	return twi_word_running(word) && (word & TWI_WORD_CHAIN) == TWI_WORD_PERIODIC;
}

static bool node_goes_on(struct twi_node *node, uint64_t word)
{
	return word_waits(word) ||
	       (chain_runs(word) &&
		twi_rule_mode(twi_chain_rule(twi_node_chain(node))) != TWI_RULE_WALL);
}

/* Returns the new state word for a timeout whose last run is the parent's. */
static uint64_t word_ended(uint64_t word)
{
	uint64_t ended = twi_word_to(word, TWI_WORD_EXPIRED) & ~(TWI_WORD_QUEUED | TWI_WORD_WAITER);

	/*
	 * A chain that runs and gets here is a timeout with a date. If its bit PERIODIC stayed,
	 * tw_cancel would report CANCELLED.
	 */
	return chain_runs(word) ? ended & ~TWI_WORD_PERIODIC : ended;
}

/* Inserts a node into the wheel, under the deadline that it had at the fork. */
static TWI_WORKER_UNCHECKED void node_keep(struct recovery *recovery, struct twi_node *node,
					   uint64_t word)
{
	uint64_t next = word & ~(TWI_WORD_QUEUED | TWI_WORD_WAITER);

	if (twi_wall_is(node, word)) {
		/*
		 * The deadline must no longer say "listed" (expiry/wall.h), because the child's
		 * list is empty. RELAXED: no other thread has the node yet.
		 */
		twi_store_relaxed(&node->deadline_ns, twi_wall_first_ns(recovery->worker));
	} else if (twi_word_running(word)) {
		twi_chain_inherit(recovery->worker, node, word);
		next &= ~TWI_WORD_RESCHEDULED;
	}
	if (twi_word_state(word) != TWI_WORD_OWNED)
		next = twi_word_to(next, TWI_WORD_WHEELED);
	/* RELAXED: the start publishes the state word with the engine. */
	twi_store_relaxed(&node->word, next);
	node->place = TWI_PLACE_NONE;
	twi_wheel_insert(recovery->worker->wheel, node);
	recovery->kept++;
}

/* Returns the state word of the next generation, so that the timeout's handle becomes stale. */
static uint64_t word_stale(uint64_t word)
{
	return twi_word_to(twi_word_next_generation(word), TWI_WORD_CANCELLED);
}

static void finaliser_run(const struct recovery *recovery, const struct tw_kind *kind, void *arg)
{
	struct twi_run run = {
		.outer = recovery->thread->run,
		.worker = recovery->worker,
		.thread = recovery->thread,
	};

	/*
	 * The finaliser runs inside a struct twi_run, as in a hand-back. Otherwise the finaliser
	 * could destroy the engine, which is not open yet.
	 */
	recovery->thread->run = &run;
	kind->finaliser(arg, TW_END_UNEXPIRED);
	recovery->thread->run = run.outer;
}

static void node_drop(const struct recovery *recovery, struct twi_node *node, uint64_t word)
{
	const struct tw_kind *kind = twi_node_kind(node);
	bool finalised = (recovery->flags & TW_REINIT_FINALISE) != 0 && word_waits(word);
	void *arg = twi_node_arg(node);

	if (finalised && (word & TWI_WORD_PERIODIC) != 0)
		arg = twi_chain_arg(twi_node_chain(node));
	twi_recovery_end(recovery->thread, node, word_stale(word));
	if (finalised && kind->finaliser != NULL)
		finaliser_run(recovery, kind, arg);
}

static void node_recover(void *context, struct twi_node *node, uint64_t word)
{
	struct recovery *recovery = context;

	if ((recovery->flags & TW_REINIT_KEEP) == 0)
		node_drop(recovery, node, word);
	else if (node_goes_on(node, word))
		node_keep(recovery, node, word);
	else
		twi_recovery_end(recovery->thread, node, word_ended(word));
}

/* Advances the empty wheel to now, so that timeouts with an earlier deadline count as overdue. */
static TWI_WORKER_UNCHECKED void wheel_wind(struct twi_worker *worker)
{
	struct twi_due_batch batch = {.node = worker->due, .capacity = TWI_DUE_BATCH};
	uint64_t limit = twi_wheel_limit(worker->wheel, twi_clock_now_ns(worker->clock));

	twi_wheel_advance(worker->wheel, limit, &batch);
}

/*
 * Sets up the worker again. The worker keeps the parent's fork epoch, so that calls on the engine
 * are still rejected until engine_open.
 */
static TWI_WORKER_UNCHECKED void worker_renew(struct tw_engine *engine, struct twi_wheel *wheel,
					      struct twi_wall *wall)
{
	struct twi_worker *worker = &engine->worker;
	const struct twi_park park = worker->park;
	const struct tw_allocator *allocator = worker->allocator;
	struct tw_clock *clock = worker->clock;
	struct twi_measure *measure = worker->measure;
	struct twi_watch *watch = worker->watch;
	uint32_t fork_epoch = worker->fork_epoch;
	int64_t epoch_ns = worker->epoch_ns;

	twi_lanes_free(worker);
	twi_wheel_destroy(worker->wheel);
	/* RELAXED: no other thread uses the engine yet. */
	twi_wall_destroy(twi_load_relaxed(&worker->wall), twi_engine_of_parent(engine));
	twi_timer_fd_close(park.timer_fd);
	memset(worker, 0, sizeof *worker);
	twi_engine_worker_init(worker, &engine->options);
	worker->park.event_fd = park.event_fd;
	worker->park.wait_fd = park.wait_fd;
	worker->allocator = allocator;
	worker->clock = clock;
	worker->watch = watch;
	twi_watch_renew(watch);
	worker->measure = measure;
	twi_measure_renew(measure);
	worker->fork_epoch = fork_epoch;
	worker->epoch_ns = epoch_ns;
	worker->wheel = wheel;
	twi_store_relaxed(&worker->wall, wall); /* RELAXED: as above. */
	if (wall != NULL) {
		/* RELAXED: as above. */
		(void)twi_fetch_or_relaxed(&worker->marks, TWI_MARK_WALL);
		twi_wall_open(wall);
	}
	wheel_wind(worker);
	engine->thread_made = false;
	/* RELAXED: no other thread uses the engine yet. */
	twi_store_relaxed(&engine->stop_claimed, false);
}

/* Opens the engine. Starts it if it has timeouts. */
static TWI_WORKER_UNCHECKED int engine_open(struct tw_engine *engine, uint64_t kept)
{
	struct twi_worker *worker = &engine->worker;

	/* RELAXED: no other thread uses the engine yet. */
	twi_store_relaxed(&worker->direct_scheduled_count, kept);
	/* RELAXED: as above. */
	twi_store_relaxed(&worker->wheel_bytes, twi_wheel_bytes(worker->wheel));
	if (worker->pending_limit != 0)
		twi_store_relaxed(&worker->slots_taken, kept); /* RELAXED: as above. */
	worker->fork_epoch = twi_fork_epoch;
	if (kept == 0)
		return 0;
	/* E12: releases the wheel and its timeouts to the next worker. */
	twi_store_release(&worker->state, TW_ENGINE_STALLED);
	return twi_engine_start(engine);
}

/*
 * Makes new data for wall timeouts if the parent had some, because the thread and the descriptor of
 * its watch stay with the parent.
 */
static int wall_inherit(struct twi_worker *worker, struct twi_wall **ret_wall)
{
	/* RELAXED: no other thread uses the engine yet. */
	return twi_load_relaxed(&worker->wall) != NULL ? twi_wall_create(worker, ret_wall) : 0;
}

static int clock_inherit(struct twi_worker *worker)
{
	const struct twi_clock_ops *ops = worker->clock->ops;

	return ops->inherit != NULL ? ops->inherit(worker->clock, &worker->park) : 0;
}

TWI_WORKER_UNCHECKED int twi_engine_recover(struct tw_engine *engine, uint64_t flags)
{
	struct recovery recovery = {.worker = &engine->worker, .flags = flags};
	struct twi_wheel *wheel = twi_engine_wheel(engine);
	struct twi_wall *wall = NULL;
	int error;

	if (wheel == NULL)
		return -ENOMEM;
	error = wall_inherit(&engine->worker, &wall);
	if (error == 0)
		error = clock_inherit(&engine->worker);
	if (error != 0) {
		twi_wall_destroy(wall, false);
		twi_wheel_destroy(wheel);
		return error;
	}
	/* Cannot fail: the caller has checked that the fork was not inside a call. */
	(void)twi_recovery_take();
	worker_renew(engine, wheel, wall);
	recovery.thread = twi_thread();
	twi_recovery_visit(engine, node_recover, &recovery);
	return engine_open(engine, recovery.kept);
}

static void node_renounce(void *thread, struct twi_node *node, uint64_t word)
{
	twi_recovery_end(thread, node, word_stale(word));
}

void twi_engine_renounce(struct tw_engine *engine)
{
	if (!twi_forked())
		twi_recovery_visit(engine, node_renounce, twi_thread());
}
