/* SPDX-License-Identifier: MIT */
/*
 * The public functions of an engine. They check the arguments and pass the call on to the other
 * parts of the library.
 */
#include "base/atomic.h"
#include "engine/misuse.h"
#include "expiry/due.h"
#include "expiry/slow.h"
#include "expiry/wall.h"
#include "ingress/lanes.h"
#include "thread/futex.h"
#include "timeout/recovery.h"
#include "worker/role.h"
#include "worker/state.h"

#include <errno.h>

/*
 * Returns an error if `engine` is NULL, or if this is a forked child and the engine belongs to its
 * parent.
 */
static int engine_check(const struct tw_engine *engine)
{
	if (engine == NULL)
		return -EINVAL;
	return twi_engine_of_parent(engine) ? twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD) : 0;
}

/*
 * Returns whether the caller is the worker itself, inside a callback, the hand-back hook, or the
 * dispatch hook.
 */
static bool on_worker(const struct tw_engine *engine)
{
	return twi_worker_inside(&engine->worker);
}

int tw_engine_create(const struct tw_options *options, struct tw_engine **ret_engine)
{
	struct tw_options read;
	int error;

	if (ret_engine == NULL)
		return -EINVAL;
	error = twi_options_read(options, &read);
	if (error != 0)
		return error;
	if (twi_recovery_take() != 0)
		return twi_misuse(NULL, TWI_MISUSE_REINIT_INSIDE, -EDEADLK);
	error = twi_engine_create(&read, ret_engine);
	return error == -EBUSY ? twi_misuse(NULL, TWI_MISUSE_CLOCK_TWICE, error) : error;
}

struct tw_engine *tw_default_engine(void)
{
	return twi_default_engine();
}

int tw_default_options_set(const struct tw_options *options)
{
	struct tw_options read;
	int error = options != NULL ? twi_options_read(options, &read) : -EINVAL;

	return error != 0 ? error : twi_default_wish(&read);
}

int tw_engine_start(struct tw_engine *engine)
{
	int error = engine_check(engine);

	return error != 0 ? error : twi_engine_start(engine);
}

/*
 * Joins the threads of the default engine after a stop. Does nothing for other engines: destroy
 * joins their threads, but the default engine is never destroyed. Without the join, tools report
 * the threads as leaked when the process exits.
 */
static void stopped_join(struct tw_engine *engine)
{
	bool claimed = false;

	if (!twi_default_is(engine))
		return;
	/*
	 * A destructor of thread-specific data may call stop on the worker's thread, which cannot
	 * join itself. A later stop from another thread then joins it. If the engine has no thread,
	 * the field is zero.
	 */
	if (pthread_equal(engine->thread, pthread_self()) != 0)
		return;
	/*
	 * RELAXED: decides only which thread joins. twi_engine_stop, which has just returned, has
	 * acquired the data that the join reads.
	 */
	if (!twi_cas_relaxed(&engine->join_claimed, &claimed, true))
		return;
	twi_wall_unwatch(twi_wall_of(&engine->worker));
	twi_engine_thread_join(engine);
}

int tw_engine_stop(struct tw_engine *engine, tw_unexpired_hook *on_unexpired, void *context,
		   int64_t timeout_ns)
{
	int error = engine_check(engine);

	if (error != 0)
		return error;
	if (twi_engine_inside(engine))
		return twi_misuse(engine, TWI_MISUSE_STOP_INSIDE, -EDEADLK);
	error = twi_engine_stop(engine, on_unexpired, context, twi_until_ns(timeout_ns));
	if (error == 0)
		stopped_join(engine);
	return error;
}

/*
 * Returns whether the engine's start has failed and it has no timeouts: none was accepted during
 * the start, and none was kept after a fork.
 */
static TWI_WORKER_UNCHECKED bool empty_handed(const struct tw_engine *engine, uint32_t state)
{
	return state == TW_ENGINE_STALLED && twi_lanes_unused(&engine->worker) &&
	       engine->worker.wheel->count == 0;
}

/*
 * Returns whether the caller is in a finaliser that runs during the engine's fork recovery. A child
 * that was forked inside a callback of the parent also counts as inside the engine. But such a
 * child cannot begin a recovery. So twi_forked is still true there, and this function returns
 * false.
 */
static bool being_taken_over(const struct tw_engine *engine)
{
	return !twi_forked() && twi_engine_inside(engine);
}

static bool seat_taken(const struct twi_seat *seat)
{
	/* E151: if the seat is free, acquires everything that its previous owner did with it. */
	return twi_load_acquire(&seat->owner) != NULL && seat->fork_epoch == twi_fork_epoch;
}

/* Returns whether the engine has a scaled kind that this process made and has not destroyed yet. */
static bool seats_taken(const struct tw_engine *engine)
{
	/* E151: acquires the links of the list of seats. */
	const struct twi_seat *seat = twi_load_acquire(&engine->seats);

	while (seat != NULL && !seat_taken(seat))
		seat = seat->next;
	return seat != NULL;
}

bool twi_engine_destroyable(const struct tw_engine *engine)
{
	/*
	 * E12: pairs with the store of STOPPED by the thread that completes stop. Without it the
	 * caller could free memory that a callback still uses.
	 */
	uint32_t state = twi_load_acquire(&engine->worker.state);

	twi_tsan_acquire(&engine->worker.state);
	return state == TW_ENGINE_STOPPED || state == TW_ENGINE_NEW || empty_handed(engine, state);
}

int tw_engine_destroy(struct tw_engine *engine)
{
	if (engine == NULL)
		return 0;
	if (twi_default_is(engine))
		return twi_misuse(engine, TWI_MISUSE_DESTROY_DEFAULT, -EBUSY);
	if (twi_engine_of_parent(engine)) {
		if (being_taken_over(engine))
			return twi_misuse(engine, TWI_MISUSE_DESTROY_INSIDE, -EDEADLK);
		twi_engine_renounce(engine);
		twi_engine_free(engine);
		return 0;
	}
	if (twi_engine_inside(engine))
		return twi_misuse(engine, TWI_MISUSE_DESTROY_INSIDE, -EDEADLK);
	if (!twi_engine_destroyable(engine) || seats_taken(engine))
		return twi_misuse(engine, TWI_MISUSE_DESTROY_RUNNING, -EBUSY);
	twi_engine_thread_join(engine);
	twi_engine_free(engine);
	return 0;
}

int tw_engine_flush(struct tw_engine *engine, int64_t timeout_ns)
{
	int error = engine_check(engine);

	if (error != 0)
		return error;
	if (on_worker(engine))
		return twi_misuse(engine, TWI_MISUSE_FLUSH_INSIDE, -EDEADLK);
	return twi_engine_flush(engine, twi_until_ns(timeout_ns));
}

int64_t tw_engine_now(struct tw_engine *engine)
{
	return engine != NULL ? twi_clock_now_ns(engine->worker.clock) : -EINVAL;
}

int tw_engine_state(struct tw_engine *engine)
{
	int error = engine_check(engine);
	uint32_t state;

	if (error != 0)
		return error;
	state = twi_load_acquire(&engine->worker.state); /* E12: as above. */
	twi_tsan_acquire(&engine->worker.state);
	return state <= TW_ENGINE_STOPPED ? (int)state : TW_ENGINE_STOPPING;
}

int tw_engine_watch(struct tw_engine *engine)
{
	int error = engine_check(engine);

	if (error != 0)
		return error;
	return engine->worker.watch != NULL ? twi_watch_look(&engine->worker) : -EINVAL;
}

static TWI_COLD int due_rejected(enum twi_due_claim claim)
{
	switch (claim) {
	case TWI_DUE_PENDING:
		return twi_misuse(NULL, TWI_MISUSE_DUE_PENDING, -ESTALE);
	case TWI_DUE_RUNNING:
		return twi_misuse(NULL, TWI_MISUSE_DUE_RUNNING, -ESTALE);
	default:
		return twi_misuse(NULL, TWI_MISUSE_DUE_ENDED, -ESTALE);
	}
}

int tw_due_run(const struct tw_due *due)
{
	enum twi_due_claim claim;

	if (due == NULL)
		return -EINVAL;
	if (!twi_handle_sane(due->handle))
		return twi_misuse_handle(due->handle);
	if (twi_handle_of_parent(due->handle))
		return -ECHILD;
	claim = twi_due_run(due);
	return claim == TWI_DUE_TAKEN ? 0 : due_rejected(claim);
}
