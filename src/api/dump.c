/* SPDX-License-Identifier: MIT */
/*
 * Writes an engine as text. Only the worker may touch some parts, so the worker takes a snapshot of
 * them (turn/snapshot.h). All other parts are atomics and constants, which the calling thread reads
 * itself. Then the caller makes the text, line by line, on its stack.
 */
#include "base/atomic.h"
#include "engine/misuse.h"
#include "turn/snapshot.h"
#include "worker/role.h"
#include "worker/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <tickwheel/dump.h>
#include <tickwheel/error.h>
#include <tickwheel/stats.h>
#include <tickwheel/version.h>

enum { LINE_BYTES = 320 };

struct dump {
	struct tw_engine *engine;
	tw_dump_hook *hook;
	void *context;
	/*
	 * Whether the worker slept when the dump was requested, and its wake_before_ns at that
	 * time.
	 */
	bool parked;
	int64_t before_ns;
};

static TWI_PRINTF(2, 3) void line(const struct dump *dump, const char *format, ...)
{
	char text[LINE_BYTES];
	va_list arguments;
	int bytes;

	va_start(arguments, format);
	bytes = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	if (bytes > 0)
		dump->hook(dump->context, text,
			   bytes < LINE_BYTES ? (size_t)bytes : sizeof text - 1);
}

static const char *state_name(uint32_t state)
{
	static const char *const name[] = {
		[TW_ENGINE_NEW] = "new",
		[TW_ENGINE_STARTING] = "starting",
		[TW_ENGINE_RUNNING] = "running",
		[TW_ENGINE_STALLED] = "stalled: its thread could not be made",
		[TW_ENGINE_FAILED] = "failed: a callback ended its thread",
		[TWI_STATE_STOPPING_STARTING] = "stopping, while its thread is made",
		[TW_ENGINE_STOPPING] = "stopping",
		[TWI_STATE_ORPHAN] = "stopping, and no thread is at it",
		[TW_ENGINE_STOPPED] = "stopped",
	};

	return name[state];
}

static void engine_write(const struct dump *dump)
{
	const struct tw_engine *engine = dump->engine;
	const struct tw_options *options = &engine->options;

	/* RELAXED: only for people to read. */
	line(dump, "engine %p: %s\n", (const void *)engine,
	     state_name(twi_load_relaxed(&engine->worker.state)));
	line(dump, "library: %d.%d.%d\n", TW_VERSION_MAJOR, TW_VERSION_MINOR, TW_VERSION_PATCH);
	line(dump, "time: %" PRId64 " ns\n", twi_clock_now_ns(engine->worker.clock));
	line(dump,
	     "options: wheel %s, tick %" PRIu64 " ns, slots %" PRIu32 ", flags %#" PRIx64 "\n",
	     options->wheel == TW_WHEEL_HASHED ? "hashed" : "hierarchical", options->tick_ns,
	     options->slots, options->flags);
	line(dump,
	     "options: check %" PRIu32 ", transfer batch %" PRIu32 ", pending limit %" PRIu64
	     ", spin %" PRIu64 " ns\n",
	     options->check, options->transfer_batch, options->pending_limit, options->spin_ns);
	line(dump,
	     "options: late %" PRIu64 " ns, slow %" PRIu64
	     " ns, dispatch hook %s, rejection %" PRIu32 ", measure %" PRIu32 "\n",
	     options->late_ns, options->slow_ns, options->dispatch != NULL ? "yes" : "no",
	     options->rejection, options->measure);
}

static void counters_write(const struct dump *dump)
{
	struct tw_stats stats = {.size = sizeof stats};

	(void)tw_stats_get(dump->engine, &stats);
	line(dump,
	     "timeouts: pending %" PRIu64 ", scheduled %" PRIu64 ", rejected %" PRIu64
	     ", expired %" PRIu64 ", cancelled %" PRIu64 ", handed back %" PRIu64 "\n",
	     stats.pending, stats.scheduled, stats.rejected, stats.expired, stats.cancelled,
	     stats.unexpired);
	line(dump,
	     "turns: %" PRIu64 ", parks %" PRIu64 ", transfers %" PRIu64 ", largest %" PRIu64
	     ", transferred %" PRIu64 ", failed checks %" PRIu64 "\n",
	     stats.turns, stats.parks, stats.transfers, stats.largest_transfer, stats.transferred,
	     stats.check_failures);
	line(dump,
	     "runs: latest %" PRIu64 " ns, late %" PRIu64 ", slow %" PRIu64 ", periodic %" PRIu64
	     ", rejected by the executor %" PRIu64 ", dropped %" PRIu64 "\n",
	     stats.latest_ns, stats.late, stats.slow, stats.periodic_runs, stats.executor_rejected,
	     stats.dropped);
}

/* RELAXED, all loads: only for people to read. */
static void worker_write(const struct dump *dump)
{
	const struct twi_worker *worker = &dump->engine->worker;

	line(dump,
	     "worker: %s, %s, executors have %" PRIu32 ", units unseen %" PRIu32
	     ", flushers %" PRIu32 "\n",
	     worker->loop ? "the owner of a loop" : "a thread", dump->parked ? "asleep" : "awake",
	     twi_load_relaxed(&worker->in_flight), twi_load_relaxed(&worker->units_pending),
	     twi_load_relaxed(&worker->flush_wanted) - twi_load_relaxed(&worker->flush_done));
	if (dump->parked && dump->before_ns == INT64_MAX)
		line(dump, "worker: is woken for any deadline\n");
	else if (dump->parked)
		line(dump, "worker: is woken for a deadline before %" PRId64 " ns\n",
		     dump->before_ns);
}

static void levels_write(const struct dump *dump, const struct twi_wheel_snapshot *snapshot)
{
	for (unsigned level = 0; level < TWI_WHEEL_LEVELS; level++)
		if (snapshot->level[level] != 0)
			line(dump, "level %u: %" PRIu64 "\n", level, snapshot->level[level]);
}

static void ages_write(const struct dump *dump, const struct twi_wheel_snapshot *snapshot)
{
	static const char *const name[TWI_SNAPSHOT_AGES] = {
		"overdue",       "below 10 us", "below 100 us", "below 1 ms",  "below 10 ms",
		"below 100 ms",  "below 1 s",   "below 10 s",   "below 100 s", "below 1000 s",
		"below 10000 s", "later",       "never",
	};

	for (unsigned age = 0; age < TWI_SNAPSHOT_AGES; age++)
		if (snapshot->age[age] != 0)
			line(dump, "due %s: %" PRIu64 "\n", name[age], snapshot->age[age]);
}

static void slots_write(const struct dump *dump, const struct twi_wheel_snapshot *snapshot)
{
	for (unsigned i = 0; i < TWI_SNAPSHOT_SLOTS && snapshot->slot[i].count != 0; i++)
		line(dump, "slot %" PRIu32 " of level %u: %" PRIu64 "\n", snapshot->slot[i].number,
		     snapshot->slot[i].level, snapshot->slot[i].count);
}

static void cancelled_write(const struct dump *dump, const struct twi_snapshot *snapshot)
{
	const struct twi_snapshot_node *first = &snapshot->cancelled;

	line(dump, "cancelled, not reclaimed: %" PRIu64 "\n", snapshot->wheel.cancelled);
	if (snapshot->wheel.cancelled != 0)
		line(dump,
		     "oldest cancelled: deadline %" PRId64 " ns, handle {%p, %#" PRIx64
		     "}, kind %p, argument %p\n",
		     first->deadline_ns, first->node, first->generation, (const void *)first->kind,
		     first->arg);
}

static void ingress_write(const struct dump *dump, const struct twi_ingress_snapshot *ingress)
{
	line(dump,
	     "ingress: lanes %u, in rings %" PRIu64 ", of these to be taken out %" PRIu64 "\n",
	     ingress->lanes, ingress->ring, ingress->ring_cancelled);
	line(dump, "ingress: linked %" PRIu64 ", linked to be taken out %" PRIu64 "\n",
	     ingress->linked, ingress->linked_cancelled);
}

static void wheel_write(const struct dump *dump, const struct twi_snapshot *snapshot)
{
	const struct twi_wheel_snapshot *wheel = &snapshot->wheel;

	line(dump, "wheel: %" PRIu64 " in it, tick %" PRIu64 "\n", snapshot->count, snapshot->tick);
	if (snapshot->count != 0)
		line(dump, "wheel: next at tick %" PRIu64 "\n", snapshot->next_due);
	levels_write(dump, wheel);
	line(dump,
	     "outside the slots: overdue %" PRIu64 ", without memory %" PRIu64 ", in order %" PRIu64
	     ", catching up %" PRIu64 ", rejected %" PRIu64 ", about to run %" PRIu64
	     ", fresh %" PRIu64 "\n",
	     wheel->overdue, wheel->unslotted, wheel->ready, wheel->later, wheel->rejected,
	     snapshot->due, snapshot->fresh);
	ages_write(dump, wheel);
	slots_write(dump, wheel);
	cancelled_write(dump, snapshot);
	ingress_write(dump, &snapshot->ingress);
}

/* Returns whether the calling thread may touch the worker's data. */
static bool worker_is_caller(const struct tw_engine *engine)
{
	return twi_worker_inside(&engine->worker) ||
	       (engine->worker.loop && twi_engine_owned(engine));
}

static TWI_WORKER_UNCHECKED int snapshot_make(struct tw_engine *engine, struct twi_snapshot *ret,
					      int64_t until_ns)
{
	struct twi_worker *worker = &engine->worker;
	uint32_t state;

	if (worker_is_caller(engine)) {
		twi_snapshot_here(worker, ret);
		return 0;
	}
	/*
	 * RELAXED: in NEW no timeout was ever accepted, and in STOPPED all have ended. If the
	 * calling thread has seen a timeout scheduled, it does not read NEW here.
	 */
	state = twi_load_relaxed(&worker->state);
	if (state == TW_ENGINE_NEW || state == TW_ENGINE_STOPPED) {
		ret->next_due = TWI_TICK_NEVER;
		return 0;
	}
	return twi_snapshot_ask(worker, ret, until_ns);
}

static int dump_write(const struct dump *dump, int64_t until_ns)
{
	struct twi_snapshot snapshot = {0};
	int error = snapshot_make(dump->engine, &snapshot, until_ns);

	engine_write(dump);
	counters_write(dump);
	worker_write(dump);
	if (error == 0)
		wheel_write(dump, &snapshot);
	else
		line(dump, "wheel: not looked at: %s\n", tw_strerror(error));
	return error;
}

int tw_engine_dump(struct tw_engine *engine, tw_dump_hook *hook, void *context, int64_t timeout_ns)
{
	struct dump dump = {.engine = engine, .hook = hook, .context = context};

	if (engine == NULL || hook == NULL)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	/*
	 * RELAXED, parked and before_ns: the values are only for people to read. They must be read
	 * before the snapshot is requested, because the request wakes the worker.
	 */
	dump.parked = twi_load_relaxed(&engine->worker.park.word) == TWI_PARKED;
	/* RELAXED: as above. */
	dump.before_ns = twi_load_relaxed(&engine->worker.wake_before_ns);
	return dump_write(&dump, twi_until_ns(timeout_ns));
}
