/* SPDX-License-Identifier: MIT */
/*
 * [io] The I/O thread. One step reads the clocks, loads a slice of the near window (in a shared
 * set: claims timers), takes all staged items, and then does the work that can wait.
 *
 * Sleep. If there is nothing to do, the thread sleeps until a timer is staged. It sleeps at most a
 * second, because it must notice when the wall clock is set. If an item was staged, it then sleeps
 * for the commit window, so that other items can join the batch. A caller that waits for an answer
 * ends both sleeps. stage.c shows that no wake-up is lost.
 */
#include "durable/io.h"

#include "durable/batch.h"
#include "durable/fresh/table.h"
#include "durable/keep.h"
#include "durable/run.h"
#include "durable/shared/session.h"
#include "durable/stage.h"
#include "durable/take.h"
#include "durable/time/elapsed.h"
#include "durable/window.h"
#include "thread/futex.h"

#include <errno.h>

#define CLOCK_NS INT64_C(1000000000)
#define LIMBO_NS INT64_C(1000000)

enum {
	/* The most dead letters that one step removes, in a few milliseconds. */
	TRIM_MAX = 1000,
};

/* RELAXED: only this thread changes the state. */
static bool failed(const struct tw_durable *set)
{
	return twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED;
}

/* RELAXED: readers load each counter by itself, and the counters need not be of one moment. */
static void counters_show(struct tw_durable *set)
{
	set->counters[TWI_SHOWN_IN_MEMORY] = set->counters[TWI_SHOWN_MEMORY_BYTES] = 0;
	for (int i = 0; i < TWI_AXES; i++) {
		set->counters[TWI_SHOWN_IN_MEMORY] += set->axes[i].in_memory;
		set->counters[TWI_SHOWN_MEMORY_BYTES] += set->axes[i].memory_bytes;
	}
	for (int i = 0; i < TWI_SHOWN_COUNT; i++)
		twi_store_relaxed(&set->shown[i], set->counters[i]);
}

/*
 * Renews the session of a shared set, and claims timers. Returns true if another claim may find
 * more timers.
 */
static bool session_step(struct tw_durable *set)
{
	int error, more = 0;

	if (!set->shared || failed(set))
		return false;
	error = twi_session_beat(set);
	twi_set_condition(set, TWI_CONDITION_CUT, set->session.cut != 0);
	if (error == 0)
		error = more = twi_session_claim(set);
	if (error < 0)
		twi_set_fail(set, error);
	return more == 1;
}

static bool read_ahead(struct tw_durable *set)
{
	int more;

	/* RELAXED: a later step looks at the flag again. */
	if (failed(set) || twi_load_relaxed(&set->closing) != 0)
		return false;
	more = twi_elapsed_follow(set);
	if (more == 0)
		more = twi_window_reserve(set);
	if (more == 0 && !set->shared)
		more = twi_window_load(set);
	/* If there is no memory, or the store is busy or full, the next step tries again. */
	if (more < 0 && more != -ENOMEM && more != -EAGAIN && more != -ENOSPC)
		twi_set_fail(set, more);
	return more == 1;
}

/*
 * Removes the dead letters beyond the bounds, once a second. Returns how many it removed, or an
 * error.
 */
static int dead_trim(struct tw_durable *set)
{
	const struct tw_durable_options *options = &set->options;
	int64_t before_ns = INT64_MIN;
	uint64_t most = options->dead_max != 0 ? options->dead_max : UINT64_MAX;
	int count;

	if ((options->dead_max == 0 && options->dead_keep_ns == 0) ||
	    set->engine_ns < set->trim_at_ns)
		return 0;
	if (options->dead_keep_ns != 0 &&
	    __builtin_sub_overflow(set->accepted_now_ns, (int64_t)options->dead_keep_ns,
				   &before_ns))
		before_ns = INT64_MIN;
	count = options->store.ops->dead_trim(options->store.store, most, before_ns, TRIM_MAX);
	if (count > 0)
		set->counters[TWI_SHOWN_DEAD_REMOVED] += (uint64_t)count;
	/* If there may be more, the next step continues. */
	set->trim_at_ns = set->engine_ns + (count >= TRIM_MAX ? 0 : CLOCK_NS);
	return count;
}

/*
 * Checks the size of the store's log. Measures it once a second only: log_bytes may try in vain to
 * shorten a long log, which takes milliseconds.
 */
static void log_judge(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	uint64_t most = set->options.log_bytes_max, bytes;

	if (store->ops->log_bytes == NULL || failed(set) || set->engine_ns < set->log_at_ns)
		return;
	set->log_at_ns = set->engine_ns + CLOCK_NS;
	bytes = store->ops->log_bytes(store->store);
	set->counters[TWI_SHOWN_LOG_BYTES] = bytes;
	twi_set_condition(set, TWI_CONDITION_SLOW, most != 0 && bytes > most);
}

/*
 * Does the work that follows the commit of a step. `committed`: the step had items to commit.
 * Returns true if another step should follow at once.
 */
static bool rest(struct tw_durable *set, bool committed)
{
	const struct tw_durable_store *store = &set->options.store;
	int error = 0, removed = 0;

	if (set->engine_ns >= set->full_until_ns)
		twi_set_condition(set, TWI_CONDITION_FULL, false);
	for (size_t i = 0; i < set->kind_count; i++)
		twi_keep_unpark(set, &set->kinds[i]);
	twi_keep_limbo(set);
	if (committed && !failed(set))
		error = store->ops->upkeep(store->store);
	/* RELAXED: a later step looks at the flag again. */
	if (error == 0 && !failed(set) && twi_load_relaxed(&set->closing) == 0)
		removed = dead_trim(set);
	if (removed < 0)
		error = removed;
	log_judge(set);
	if (error != 0 && error != -EAGAIN && error != -ENOSPC)
		twi_set_fail(set, error);
	twi_keep_collect(set);
	return removed >= TRIM_MAX;
}

/*
 * Returns true if nothing is under way any more, and everything is stored. `took`: this step has
 * taken items.
 */
static bool close_step(struct tw_durable *set, bool took)
{
	bool clean = twi_keep_disarm_all(set);

	/* The next step takes the last pushes of the callbacks. */
	if (!clean || took || twi_run_any(set) || !twi_handover_empty(&set->staging) ||
	    twi_fresh_timers_any(set) || set->linger_count != 0)
		return false;
	/* If a start was stored, but its run did not begin, it must not count as an attempt. */
	if (!failed(set) && (!set->shared || set->session.cut == 0))
		twi_take_starts_back(set);
	return true;
}

bool twi_io_step(struct tw_durable *set)
{
	struct tw_durable *before = twi_durable_within;
	bool more, took;

	twi_durable_within = set;
	twi_stage_begin(set);
	twi_window_clock(set);
	more = session_step(set);
	more |= read_ahead(set);
	took = twi_take_all(set);
	more |= rest(set, took);
	counters_show(set);
	/*
	 * RELAXED: if this step misses the flag, a later step closes the set. The closing thread
	 * waits.
	 */
	if (twi_load_relaxed(&set->closing) != 0)
		set->closed = close_step(set, took);
	twi_durable_within = before;
	return more || set->back != NULL;
}

static void sleep_until_work(struct tw_durable *set)
{
	int64_t wait_ns = set->shared ? twi_session_wait_ns(set) : twi_window_wait_ns(set);

	if (wait_ns > CLOCK_NS || failed(set))
		wait_ns = CLOCK_NS;
	if (set->linger_count != 0 && set->lingers[0].until_ns - set->engine_ns < wait_ns)
		wait_ns = set->lingers[0].until_ns - set->engine_ns;
	if (!TAILQ_EMPTY(&set->limbo) || wait_ns < LIMBO_NS)
		wait_ns = LIMBO_NS;
	/* RELAXED: if this load misses the flag, the next step looks at it again. */
	if (twi_load_relaxed(&set->closing) != 0)
		wait_ns = LIMBO_NS;
	twi_stage_sleep(set, TWI_ASLEEP_IDLE, wait_ns);
	/*
	 * RELAXED: if this load misses a timer that is staged at this moment, a later call finds
	 * it.
	 */
	if (set->options.window_ns != 0 && twi_load_relaxed(&set->staged_bytes) != 0)
		twi_stage_sleep(set, TWI_ASLEEP_WINDOW, (int64_t)set->options.window_ns);
}

void *twi_io_main(void *context)
{
	struct tw_durable *set = context;

	while (!set->closed) {
		if (!twi_io_step(set) && !set->closed)
			sleep_until_work(set);
	}
	/* RELAXED: the closing thread joins this one, which orders everything. */
	twi_store_relaxed(&set->finished, 1);
	twi_futex_wake(&set->finished);
	return NULL;
}
