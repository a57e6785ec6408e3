/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes a set: its options, its kinds, its memory, its store, its thread.
 *
 * The opening thread opens the store, loads the first slice of the near window, and only then
 * starts the I/O thread. From then on the [io] fields of the set belong to the I/O thread. When the
 * I/O thread has ended, they belong to the closing thread.
 */
#include "durable/open.h"

#include "base/sized.h"

#include "durable/batch.h"
#include "durable/fresh/table.h"
#include "durable/io.h"
#include "durable/keep.h"
#include "durable/run.h"
#include "durable/shared/session.h"
#include "durable/stage.h"
#include "durable/time/elapsed.h"
#include "durable/window.h"
#include "thread/futex.h"
#include "thread/rcu.h" /* the flavour of liburcu for the hash table */

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <tickwheel/fork.h>
#include <time.h>

#define KIB UINT64_C(1024)
#define SECOND_NS UINT64_C(1000000000)
#define STAGED_LEAST (64 * KIB)
#define STAGED_MOST (KIB * KIB * KIB * KIB)
#define DAY_NS (86400 * SECOND_NS)
#define NEAR_COUNT_MOST (UINT64_C(1) << 32)

enum {
	BATCH_MOST = 1000000,
	/*
	 * The most operations of a batch for a server. The server commits this many in a fraction
	 * of a session's time.
	 */
	SHARED_BATCH_MOST = 4000,
	PAYLOAD_MOST = 1048576,
	DAYS_NEAR = 7,
};

static const struct tw_durable_options defaults = {
	.level = TW_DURABLE_LEVEL_DISK,
	.batch_max = 10000,
	.window_ns = 2000000,
	.staged_bytes_max = 64 * KIB * KIB,
	.near_ns = 120 * SECOND_NS,
	.near_max = 1000000,
	.near_bytes_max = 512 * KIB * KIB,
	.payload_max = 4096,
	.catch_up_per_s = 10000,
	.log_bytes_max = KIB * KIB * KIB,
	.late_ns = SECOND_NS,
	.clock_step_max_ns = DAY_NS,
};

int tw_durable_options_init(struct tw_durable_options *ret_options, size_t size)
{
	return twi_options_fill(ret_options, size, sizeof defaults, &defaults, sizeof defaults);
}

static bool within(uint64_t value, uint64_t least, uint64_t most)
{
	return least <= value && value <= most;
}

static bool shared_right(const struct tw_durable_store_ops *ops)
{
	return ops->flags == 0 ||
	       (ops->flags == TW_DURABLE_STORE_SHARED && ops->beat != NULL && ops->claim != NULL);
}

static bool store_right(const struct tw_durable_store *store)
{
	const struct tw_durable_store_ops *ops = store->ops;

	return ops != NULL && ops->size >= sizeof *ops && shared_right(ops) && ops->open != NULL &&
	       ops->reserve != NULL && ops->commit != NULL && ops->near != NULL &&
	       ops->find != NULL && ops->find_key != NULL && ops->dead != NULL &&
	       ops->upkeep != NULL && ops->close != NULL;
}

static int options_check(const struct tw_durable_options *options)
{
	int error;

	if (options == NULL)
		return -EINVAL;
	error = twi_size_check(options, options->size, sizeof *options, sizeof *options);
	if (error != 0)
		return error;
	if (options->flags != 0 || !store_right(&options->store) ||
	    !within(options->level, TW_DURABLE_LEVEL_PROCESS, TW_DURABLE_LEVEL_DISK) ||
	    !within(options->batch_max, 1, BATCH_MOST) || options->window_ns > 60 * SECOND_NS ||
	    !within(options->staged_bytes_max, STAGED_LEAST, STAGED_MOST) ||
	    !within(options->near_ns, SECOND_NS, DAYS_NEAR * DAY_NS) ||
	    !within(options->near_max, 1, NEAR_COUNT_MOST) ||
	    !within(options->near_bytes_max, STAGED_LEAST, STAGED_MOST) ||
	    options->payload_max > PAYLOAD_MOST || !within(options->catch_up_per_s, 1, SECOND_NS) ||
	    !within(options->dead_keep_ns, 0, INT64_MAX) ||
	    !within(options->clock_step_max_ns, SECOND_NS, INT64_MAX))
		return -EINVAL;
	return 0;
}

static bool name_right(const char *name)
{
	size_t length = name == NULL ? 0 : strnlen(name, TWI_DURABLE_NAME_MAX + 1);

	return length >= 1 && length <= TWI_DURABLE_NAME_MAX &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_.-") == length;
}

static int kind_check(const struct tw_durable_kind *kind)
{
	int error;

	if (kind == NULL)
		return -EINVAL;
	error = twi_size_check(kind, kind->size, sizeof *kind, sizeof *kind);
	if (error != 0)
		return error;
	if ((kind->flags & ~(uint32_t)(TW_DURABLE_KIND_AT_MOST_ONCE | TW_DURABLE_KIND_ELAPSED)) !=
		    0 ||
	    kind->run == NULL || kind->reserved != 0 || kind->linger_ns > 60 * SECOND_NS ||
	    !name_right(kind->name))
		return -EINVAL;
	/* If the schedule is wrong, it has no first delay, and the error code says why. */
	if (kind->schedule != NULL) {
		int64_t delay_ns = tw_retry_delay(kind->schedule, 0);

		if (delay_ns < 0)
			return (int)delay_ns;
	}
	return 0;
}

static int kinds_check(const struct tw_durable_kind *const *kinds, size_t count)
{
	if (kinds == NULL || count == 0 || count > TWI_DURABLE_KINDS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		int error = kind_check(kinds[i]);

		if (error != 0)
			return error;
		for (size_t j = 0; j < i; j++) {
			if (strcmp(kinds[i]->name, kinds[j]->name) == 0)
				return -EINVAL;
		}
	}
	return 0;
}

enum {
	SLOTS_LEAST = 1024,
	SLOTS_MOST = 1 << 20,
	/* The table has one slot for each SLOT_BYTES of staged timers. */
	SLOT_BYTES = 256,
	/*
	 * Timers per bucket if near_max timers are in memory. HASH_MOST limits the buckets to 6
	 * MiB.
	 */
	HASH_LOAD = 4,
	HASH_LEAST = 1024,
	HASH_MOST = 1 << 18,
};

static int64_t system_wall_ns(void *context)
{
	struct timespec now;

	(void)context;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * TWI_NS_PER_S + now.tv_nsec;
}

/*
 * Returns the smallest power of two that is not below `wanted`, within the powers `least` and
 * `most`.
 */
static uint64_t power_within(uint64_t wanted, uint64_t least, uint64_t most)
{
	uint64_t count = least;

	while (count < most && count < wanted)
		count *= 2;
	return count;
}

static bool axes_set(struct tw_durable *set, size_t kinds)
{
	for (int i = 0; i < TWI_AXES; i++) {
		set->axes[i].cursor = (struct twi_position){INT64_MIN, INT64_MIN, 0};
		set->axes[i].confirm_until_ns = INT64_MIN;
		set->axes[i].kinds = calloc(kinds, 1);
		if (set->axes[i].kinds == NULL)
			return false;
	}
	return true;
}

static void kind_set(struct tw_durable *set, size_t number, const struct tw_durable_kind *user)
{
	struct twi_durable_kind *kind = &set->kinds[number];

	kind->user = user;
	kind->set = set;
	kind->axis =
		(user->flags & TW_DURABLE_KIND_ELAPSED) != 0 ? TWI_AXIS_ELAPSED : TWI_AXIS_WALL;
	set->elapsed = set->elapsed || twi_durable_elapsed(kind);
	set->axes[kind->axis].kinds[number] = 1;
	set->names[number] = user->name;
	TAILQ_INIT(&kind->parked);
}

static bool kinds_set(struct tw_durable *set, const struct tw_durable_kind *const *kinds,
		      size_t count)
{
	set->kinds = calloc(count, sizeof *set->kinds);
	set->names = calloc(count, sizeof *set->names);
	if (set->kinds == NULL || set->names == NULL || !axes_set(set, count))
		return false;
	set->kind_count = count;
	for (size_t i = 0; i < count; i++)
		kind_set(set, i, kinds[i]);
	return true;
}

static bool tables_make(struct tw_durable *set)
{
	uint64_t slots =
		power_within(set->options.staged_bytes_max / SLOT_BYTES, SLOTS_LEAST, SLOTS_MOST);
	uint64_t buckets;

	set->slot_mask = slots - 1;
	set->slots = calloc(slots, sizeof *set->slots);
	set->batch = twi_batch_create(set->options.batch_max);
	/* The table has a fixed size, because liburcu resizes a table on a thread of its own. */
	buckets = power_within(set->options.near_max / HASH_LOAD, HASH_LEAST, HASH_MOST);
	set->hash = cds_lfht_new_flavor(buckets, buckets, buckets, 0, &twi_rcu_flavor, NULL);
	set->fresh_end = &set->fresh_open;
	return set->slots != NULL && set->batch != NULL && set->hash != NULL &&
	       twi_fresh_timers_create(set, slots);
}

static void set_free(struct tw_durable *set)
{
	if (set->slots != NULL && set->hash != NULL)
		twi_keep_free_all(set);
	if (set->hash != NULL)
		(void)cds_lfht_destroy(set->hash, NULL);
	twi_fresh_timers_destroy(set);
	twi_batch_destroy(set->batch);
	free(set->lingers);
	free(set->slots);
	for (int i = 0; i < TWI_AXES; i++)
		free(set->axes[i].kinds);
	free(set->names);
	free(set->kinds);
	free(set);
}

static struct tw_durable *set_make(struct tw_engine *engine,
				   const struct tw_durable_kind *const *kinds, size_t count,
				   const struct tw_durable_options *options,
				   const struct twi_durable_hooks *hooks)
{
	struct tw_durable *set = aligned_alloc(TWI_CACHE_LINE, sizeof *set);

	if (set == NULL)
		return NULL;
	memset(set, 0, sizeof *set);
	set->engine = engine;
	set->options = *options;
	set->hooks = *hooks;
	if (hooks->boot != NULL)
		strncpy(set->boot, hooks->boot, sizeof set->boot - 1);
	else
		twi_elapsed_system_boot(set->boot, sizeof set->boot);
	set->generation = tw_fork_generation();
	set->shared = options->store.ops->flags == TW_DURABLE_STORE_SHARED;
	if (set->shared && set->options.batch_max > SHARED_BATCH_MOST)
		set->options.batch_max = SHARED_BATCH_MOST;
	TAILQ_INIT(&set->held);
	TAILQ_INIT(&set->limbo);
	if (kinds_set(set, kinds, count) && tables_make(set))
		return set;
	set_free(set);
	return NULL;
}

/* Returns whether the store can do everything that the options and the kinds need. */
static bool store_able(const struct tw_durable *set)
{
	const struct tw_durable_options *options = &set->options;
	const struct tw_durable_store_ops *ops = options->store.ops;

	if ((options->dead_max != 0 || options->dead_keep_ns != 0) && ops->dead_trim == NULL)
		return false;
	return !set->elapsed ||
	       (ops->near_kinds != NULL && ops->clock != NULL && ops->clock_set != NULL);
}

static int clocks_open(struct tw_durable *set, const struct tw_durable_opened *opened)
{
	int64_t wall_ns = twi_durable_wall_ns(set);
	int error;

	if (opened->highest_ns > wall_ns &&
	    opened->highest_ns - wall_ns > (int64_t)set->options.clock_step_max_ns)
		return -ETIME;
	error = set->elapsed ? twi_elapsed_open(set) : 0;
	if (error != 0)
		return error;
	twi_window_clock_init(set);
	for (int i = 0; i < TWI_AXES && opened->clean == 0; i++)
		set->axes[i].confirm_until_ns =
			set->axes[i].now_ns + (int64_t)set->options.window_ns;
	return 0;
}

/* Asks the store which kinds are paused. RELAXED: no other thread knows the set yet. */
static int paused_open(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	unsigned char *paused;
	int error;

	if (store->ops->paused == NULL)
		return 0;
	paused = calloc(set->kind_count, 1);
	if (paused == NULL)
		return -ENOMEM;
	error = store->ops->paused(store->store, paused);
	for (size_t i = 0; i < set->kind_count && error == 0; i++)
		twi_store_relaxed(&set->kinds[i].paused, paused[i]);
	free(paused);
	return error;
}

static int session_open(struct tw_durable *set)
{
	int error = twi_session_beat(set);

	return error == 0 && set->session.cut != 0 ? -ETIMEDOUT : error;
}

static int store_open(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	struct tw_durable_opened opened = {0};
	int error;

	if (!store_able(set))
		return -ENOTSUP;
	error = store->ops->open(store->store, set->names, set->kind_count, &opened);
	if (error != 0)
		return error;
	if (opened.level < set->options.level)
		return -ENOTSUP;
	set->unknown_kinds = opened.unknown_kinds;
	error = paused_open(set);
	/*
	 * The session must be opened before the clocks, because the clock of a shared set is the
	 * server's.
	 */
	if (error == 0 && set->shared)
		error = session_open(set);
	if (error == 0)
		error = clocks_open(set, &opened);
	if (error != 0)
		return error;
	error = twi_window_reserve(set);
	if (error != 0)
		return error;
	error = set->shared ? twi_session_claim(set) : twi_window_load(set);
	return error < 0 ? error : 0;
}

/* Starts the I/O thread with all signals blocked, because they are for the program's threads. */
static int thread_start(struct tw_durable *set)
{
	sigset_t all, before;
	int error;

	if (set->hooks.driven)
		return 0;
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&set->thread, NULL, twi_io_main, set);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error == 0 ? 0 : -ENOMEM;
}

/* Undoes an open that has failed. Afterwards no loaded timer runs. */
static void open_undo(struct tw_durable *set)
{
	/* RELAXED: the loop below waits for callbacks that miss the flag. */
	twi_store_relaxed(&set->closing, 1);
	while (!twi_keep_disarm_all(set) || twi_run_any(set))
		TWI_PAUSE();
}

int twi_durable_open(struct tw_engine *engine, const struct tw_durable_kind *const *kinds,
		     size_t count, const struct tw_durable_options *options,
		     const struct twi_durable_hooks *hooks, struct tw_durable **ret)
{
	const struct tw_durable_store *store;
	struct tw_durable *set;
	int error = options_check(options);

	if (error != 0)
		return error;
	/* From here on the store belongs to this call, which closes it on failure. */
	store = &options->store;
	error = engine == NULL || ret == NULL ? -EINVAL : kinds_check(kinds, count);
	if (error == 0)
		error = tw_engine_start(engine);
	set = error == 0 ? set_make(engine, kinds, count, options, hooks) : NULL;
	if (error == 0 && set == NULL)
		error = -ENOMEM;
	if (error == 0)
		error = store_open(set);
	if (error == 0)
		error = thread_start(set);
	if (error == 0) {
		*ret = set;
		return 0;
	}
	if (set != NULL) {
		open_undo(set);
		set_free(set);
	}
	store->ops->close(store->store, 0);
	return error;
}

int tw_durable_open(struct tw_engine *engine, const struct tw_durable_kind *const *kinds,
		    size_t count, const struct tw_durable_options *options,
		    struct tw_durable **ret_durable)
{
	static const struct twi_durable_hooks system = {
		.wall_ns = system_wall_ns,
		.boot_ns = twi_elapsed_system_ns,
	};

	return twi_durable_open(engine, kinds, count, options, &system, ret_durable);
}

/*
 * Waits for the I/O thread, or makes its steps if a test drives the set. Returns false if the set
 * is not closed in time.
 */
static bool wait_closed(struct tw_durable *set, int64_t timeout_ns)
{
	int64_t until_ns = twi_until_ns(timeout_ns);

	if (set->hooks.driven) {
		(void)twi_io_step(set);
		(void)twi_io_step(set);
		return set->closed;
	}
	/* RELAXED: the join orders everything that the thread has done. */
	while (twi_load_relaxed(&set->finished) == 0) {
		if (twi_futex_wait(&set->finished, 0, until_ns) == -ETIMEDOUT)
			return false;
	}
	(void)pthread_join(set->thread, NULL);
	return true;
}

int tw_durable_close(struct tw_durable *durable, int64_t timeout_ns)
{
	const struct tw_durable_store *store;
	bool failed;

	if (durable == NULL)
		return 0;
	if (twi_durable_check(durable) != 0)
		return -ECHILD;
	if (timeout_ns < 0)
		return -EINVAL;
	if (twi_durable_within == durable)
		return -EDEADLK;
	/*
	 * RELAXED: the wake-up below orders the store before the I/O thread's load, and the close
	 * waits for callbacks.
	 */
	twi_store_relaxed(&durable->closing, 1);
	twi_stage_wake(durable);
	if (!wait_closed(durable, timeout_ns))
		return -ETIMEDOUT;
	/* RELAXED: the I/O thread has ended. */
	failed = twi_load_relaxed(&durable->state) == TW_DURABLE_STATE_FAILED;
	store = &durable->options.store;
	store->ops->close(store->store, !failed);
	set_free(durable);
	return failed ? -EIO : 0;
}
