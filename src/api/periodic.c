/* SPDX-License-Identifier: MIT */
/*
 * tw_schedule_periodic and tw_schedule_wall check the arguments and start a chain. tw_period_next
 * and tw_period_set change a running chain's interval. expiry/periodic.c runs chains, and
 * expiry/wall.c handles dates of the wall clock.
 */
#include "api/schedule.h"

#include "base/atomic.h"
#include "base/sized.h"
#include "base/tick.h"
#include "engine/misuse.h"
#include "expiry/periodic.h"
#include "expiry/wall.h"
#include "timeout/recovery.h"
#include "worker/role.h"
#include "worker/state.h"

#include <errno.h>
#include <tickwheel/periodic.h>
#include <tickwheel/wall.h>

enum { PPM_MAX = 1000000 };

static int period_check(const struct tw_period *period)
{
	int error;

	if (period == NULL)
		return -EINVAL;
	error = twi_size_check(period, period->size, sizeof *period, sizeof *period);
	if (error != 0)
		return error;
	if (period->first_ns == INT64_MIN || period->period_ns == INT64_MIN)
		return -ERANGE;
	if (period->period_ns < 1 || period->mode > TW_PERIOD_FIXED_DELAY ||
	    period->missed > TW_MISSED_DELAY || period->jitter_ppm > PPM_MAX ||
	    period->reserved != 0)
		return -EINVAL;
	return 0;
}

static int engine_check(const struct tw_engine *engine)
{
	if (engine == NULL)
		return -EINVAL;
	return twi_engine_of_parent(engine) ? twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD) : 0;
}

static int chain_kind_check(const struct tw_kind *kind)
{
	int error = twi_kind_check(kind);

	if (error != 0)
		return error;
	/*
	 * An owner-only kind is rejected, because other threads than the owner change a chain's
	 * state word: a thread of an executor may run the chain, and then returns it to the worker
	 * through a queue.
	 */
	return (kind->flags & TW_KIND_FLAG_OWNER_ONLY) != 0 ? -EINVAL : 0;
}

static int arguments_check(const struct tw_engine *engine, const struct tw_period *period,
			   const struct tw_kind *kind)
{
	int error = engine_check(engine);

	if (error == 0)
		error = period_check(period);
	return error != 0 ? error : chain_kind_check(kind);
}

/* Returns the seed of the jitter: the caller's, or one that differs between chains. */
static uint64_t seed_of(const struct tw_period *period, const struct twi_chain *chain,
			int64_t now_ns)
{
	if (period->seed != 0)
		return period->seed;
	return (uint64_t)(uintptr_t)chain * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)now_ns;
}

/* Schedules a chain. If `ret_id` is not NULL, writes the id before the push. */
static int periodic_schedule(struct tw_engine *engine, const struct tw_period *period,
			     const struct tw_kind *kind, void *arg, struct tw_handle *ret_handle,
			     tw_id *ret_id)
{
	int error = arguments_check(engine, period, kind);
	struct twi_thread *thread;
	struct twi_chain *chain;
	int64_t deadline_ns;

	if (error != 0)
		return error;
	thread = twi_thread();
	chain = twi_pool_take_warm(&thread->stock);
	if (chain == NULL)
		return twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	chain->scheduled_ns = twi_clock_after_ns(engine->worker.clock, period->first_ns);
	twi_chain_begin(chain, period, twi_rule_of(period), arg,
			seed_of(period, chain, chain->scheduled_ns));
	deadline_ns = twi_chain_deadline_ns(&engine->worker, chain, kind, period->period_ns);
	if (ret_id != NULL && !twi_id_promise(thread, ret_id))
		error = twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	else
		error = twi_chain_schedule(engine, thread, deadline_ns, kind, chain, ret_handle);
	if (error != 0)
		twi_pool_give(&thread->stock, chain);
	return error;
}

int tw_schedule_periodic(struct tw_engine *engine, const struct tw_period *period,
			 const struct tw_kind *kind, void *arg, struct tw_handle *ret_handle)
{
	return periodic_schedule(engine, period, kind, arg, ret_handle, NULL);
}

int tw_id_schedule_periodic(struct tw_engine *engine, const struct tw_period *period,
			    const struct tw_kind *kind, void *arg, tw_id *ret_id)
{
	tw_id before;
	int error;

	if (ret_id == NULL)
		return -EINVAL;
	before = *ret_id;
	error = periodic_schedule(engine, period, kind, arg, NULL, ret_id);
	if (error != 0)
		*ret_id = before;
	return error;
}

/* Returns the calling thread's run of this chain, or NULL if the thread is not inside one. */
static struct twi_chain_run *chain_run_of(struct tw_handle self, struct twi_run *run)
{
	/*
	 * RELAXED: if this thread runs the timeout's callback, no other thread changes the word's
	 * generation.
	 */
	uint64_t word = twi_load_relaxed(&twi_node_of_handle(self)->word);

	if (!twi_word_same(word, self.generation) || (word & TWI_WORD_CHAIN) == 0 ||
	    twi_word_state(word) != TWI_WORD_RUNNING)
		return NULL;
	while (run != NULL && run->node != self.node)
		run = run->outer;
	if (run == NULL || TWI_CONTAINER_OF(run, struct twi_chain_run, run)->once)
		return NULL;
	return TWI_CONTAINER_OF(run, struct twi_chain_run, run);
}

/*
 * Finds the calling thread's run of this chain, in which it may set an interval. Returns an error
 * if there is none.
 */
static int own_run_find(struct tw_handle self, int64_t interval_ns, struct twi_chain_run **ret_own)
{
	if (!twi_handle_sane(self))
		return twi_misuse_handle(self);
	if (interval_ns == INT64_MIN)
		return -ERANGE;
	if (twi_handle_of_parent(self))
		return -ECHILD;
	*ret_own = chain_run_of(self, twi_thread()->run);
	return *ret_own != NULL ? 0 : twi_misuse(NULL, TWI_MISUSE_PERIOD_OUTSIDE, -EPERM);
}

int tw_period_next(struct tw_handle self, int64_t delay_ns)
{
	struct twi_chain_run *own;
	int error = own_run_find(self, delay_ns, &own);

	if (error == 0)
		own->interval_ns = delay_ns > 0 ? delay_ns : 0;
	return error;
}

int tw_period_set(struct tw_handle self, int64_t period_ns)
{
	struct twi_chain_run *own;
	int error = own_run_find(self, period_ns, &own);

	if (error != 0)
		return error;
	if (period_ns < 1)
		return -EINVAL;
	own->interval_ns = period_ns;
	twi_chain_period_set(own->chain, period_ns);
	return 0;
}

static int wall_arguments_check(const struct tw_engine *engine, int64_t wall_ns,
				const struct tw_kind *kind)
{
	int error = engine_check(engine);

	if (error != 0)
		return error;
	return wall_ns == INT64_MIN ? -ERANGE : chain_kind_check(kind);
}

/*
 * Makes the engine's data for wall timeouts. Returns -ESHUTDOWN if the engine stops or has stopped,
 * because no thread and no descriptor may be made for it then.
 */
static int wall_make(struct tw_engine *engine)
{
	/* RELAXED: the state may change at once. The schedule checks it again. */
	uint32_t state = twi_load_relaxed(&engine->worker.state);

	if (!twi_state_accepts(state) && state != TW_ENGINE_NEW && state != TW_ENGINE_STALLED)
		return -ESHUTDOWN;
	return twi_engine_wall(engine);
}

int tw_schedule_wall(struct tw_engine *engine, int64_t wall_ns, const struct tw_kind *kind,
		     void *arg, struct tw_handle *ret_handle)
{
	const struct tw_period date = {.period_ns = wall_ns, .runs = 1};
	int error = wall_arguments_check(engine, wall_ns, kind);
	struct twi_thread *thread;
	struct twi_chain *chain;

	if (error != 0)
		return error;
	thread = twi_thread();
	error = wall_make(engine);
	if (error != 0)
		return twi_schedule_reject(engine, thread, NULL, error);
	chain = twi_pool_take_warm(&thread->stock);
	if (chain == NULL)
		return twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	twi_chain_begin(chain, &date, twi_rule_of_wall(kind->slack_ns), arg, 0);
	error = twi_chain_schedule(engine, thread, twi_wall_first_ns(&engine->worker), kind, chain,
				   ret_handle);
	if (error != 0)
		twi_pool_give(&thread->stock, chain);
	return error;
}
