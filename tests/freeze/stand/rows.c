/* SPDX-License-Identifier: MIT */
/*
 * The victim's calls, and the rows of the table. README.md lists the same pairs of function and
 * point; check_points.py compares both with the sources.
 */
#include "rows.h"

#include "memory/pool.h"

#include <errno.h>

#define NS_PER_MS INT64_C(1000000)

/* A number of blocks: those of the thread's own stock, plus two and a half magazines. */
enum { MANY = TWI_BLOCK_WARM + 2 * TWI_RUN_BLOCKS + TWI_RUN_BLOCKS / 2 };

struct stand row_stand;

/* Arms the stand for one call only, so that the victim stops in no other call. */
#define ARMED(call)                                                                                \
	do {                                                                                       \
		stand_arm(&row_stand);                                                             \
		call;                                                                              \
		stand_disarm();                                                                    \
	} while (0)

static void attempt_schedule(void)
{
	ARMED((void)scene_schedule(NULL));
}

static void attempt_schedule_at(void)
{
	int result;

	ARMED(result = tw_schedule_at(scene.engine, TW_NEVER, &scene_kind, NULL, NULL));
	if (result == 0)
		atomic_fetch_add(&scene.accepted, 1);
}

static void attempt_schedule_periodic(void)
{
	static const struct tw_period period = TW_PERIOD_RATE(TW_NEVER);
	int result;

	ARMED(result = tw_schedule_periodic(scene.engine, &period, &scene_kind, NULL, NULL));
	if (result == 0)
		atomic_fetch_add(&scene.accepted, 1);
}

static const struct tw_item row_items[] = {{TW_NEVER, &scene_kind, NULL},
					   {TW_NEVER, &scene_kind, NULL},
					   {TW_NEVER, &scene_kind, NULL}};
enum { ROW_ITEMS = sizeof row_items / sizeof row_items[0] };

static void attempt_schedule_many(void)
{
	int scheduled;

	ARMED(scheduled = tw_schedule_many(scene.engine, row_items, ROW_ITEMS, NULL, NULL));
	if (scheduled > 0)
		atomic_fetch_add(&scene.accepted, scheduled);
}

static void attempt_schedule_many_at(void)
{
	int scheduled;

	ARMED(scheduled = tw_schedule_many_at(scene.engine, row_items, ROW_ITEMS, NULL, NULL));
	if (scheduled > 0)
		atomic_fetch_add(&scene.accepted, scheduled);
}

/*
 * Runs callbacks, so that the thread has more blocks than one magazine. Then the block of a
 * rejected call fills the magazine.
 */
static void blocks_collect(void)
{
	while (scene_due_run())
		;
}

static void attempt_rejected(void)
{
	blocks_collect();
	ARMED((void)tw_schedule(scene.closed_engine, 1, &scene_kind, NULL, NULL));
}

static void attempt_rejected_at(void)
{
	blocks_collect();
	ARMED((void)tw_schedule_at(scene.closed_engine, 0, &scene_kind, NULL, NULL));
}

static void attempt_rejected_periodic(void)
{
	static const struct tw_period period = TW_PERIOD_RATE(TW_NEVER);

	blocks_collect();
	ARMED((void)tw_schedule_periodic(scene.closed_engine, &period, &scene_kind, NULL, NULL));
}

/* Schedules a timeout. In turn, one stays in ingress, and the next is moved into the wheel. */
static struct tw_handle victim_make(void)
{
	static unsigned turn;
	struct tw_handle handle = {0};

	(void)scene_schedule(&handle);
	if (++turn % 2 == 0)
		(void)tw_engine_flush(scene.engine, TW_NEVER);
	return handle;
}

static void attempt_cancel(void)
{
	struct tw_handle handle = victim_make();
	int outcome;

	ARMED(outcome = tw_cancel(handle));
	atomic_fetch_add(&scene.cancelled, outcome == TW_CANCEL_DONE);
}

/* Cancels a batch, with some timeouts in the wheel and some in ingress. */
static void attempt_sweep(void)
{
	struct tw_handle handles[3] = {victim_make(), victim_make(), victim_make()};
	int cancelled;

	ARMED(cancelled = tw_cancel_many(handles, 3, NULL));
	if (cancelled > 0)
		atomic_fetch_add(&scene.cancelled, cancelled);
}

static void attempt_sweep_chain(void)
{
	static size_t at;
	int cancelled;

	ARMED(cancelled = tw_cancel_many(&scene.due[at++ % DUES].handle, 1, NULL));
	atomic_fetch_add(&scene.cancelled, cancelled);
}

static void attempt_sweep_magazines(void)
{
	struct tw_handle handles[MANY];
	int cancelled;

	for (int i = 0; i < MANY; i++)
		(void)scene_schedule(&handles[i]);
	ARMED(cancelled = tw_cancel_many(handles, MANY, NULL));
	atomic_fetch_add(&scene.cancelled, cancelled);
}

/*
 * Cancels more timeouts than the thread's stock holds blocks, so that it must give blocks to the
 * depot.
 */
static void cancel_many(int (*cancel)(struct tw_handle handle))
{
	struct tw_handle handles[MANY];
	int done = 0;

	for (int i = 0; i < MANY; i++)
		(void)scene_schedule(&handles[i]);
	for (int i = 0; i < MANY; i++) {
		int outcome;

		ARMED(outcome = cancel(handles[i]));
		done += outcome == TW_CANCEL_DONE;
	}
	atomic_fetch_add(&scene.cancelled, done);
}

static void attempt_cancel_many(void)
{
	cancel_many(tw_cancel);
}

static int cancel_wait_ever(struct tw_handle handle)
{
	return tw_cancel_wait(handle, TW_NEVER);
}

static void attempt_cancel_wait_many(void)
{
	cancel_many(cancel_wait_ever);
}

static void attempt_cancel_wait(void)
{
	struct tw_handle handle = victim_make();
	int outcome;

	ARMED(outcome = tw_cancel_wait(handle, TW_NEVER));
	atomic_fetch_add(&scene.cancelled, outcome == TW_CANCEL_DONE);
}

/* Reschedules to an earlier deadline, because only such a call passes all test points. */
static void attempt_reschedule(void)
{
	struct tw_handle handle = victim_make();

	ARMED((void)tw_reschedule(handle, INT64_C(3600) * 1000 * NS_PER_MS));
}

static void attempt_reschedule_at(void)
{
	struct tw_handle handle = victim_make();

	ARMED((void)tw_reschedule_at(handle, INT64_MAX - 1));
}

/* Reschedules to the same deadline, which does not count as earlier. */
static void attempt_postpone_at(void)
{
	struct tw_handle handle = victim_make();

	ARMED((void)tw_reschedule_at(handle, TW_NEVER));
}

/* Waits for a timeout that an executor has. */
static void attempt_wait(void)
{
	int outcome;

	ARMED(outcome = tw_cancel_wait(scene.due[DUES - 1].handle, TW_NEVER));
	if (outcome != TW_CANCEL_EXPIRED && outcome != TW_CANCEL_STALE)
		fail("the wait for a callback did not see its end");
}

/* Cancels a periodic timeout that an executor has. The executor then frees its blocks. */
static void attempt_cancel_chain(void)
{
	static size_t at;
	int outcome;

	ARMED(outcome = tw_cancel(scene.due[at++ % DUES].handle));
	/*
	 * If the executor ran the chain while this thread was stopped, the chain waits for its next
	 * run, and the cancel returns DONE instead of STOPPED.
	 */
	atomic_fetch_add(&scene.cancelled,
			 outcome == TW_CANCEL_STOPPED || outcome == TW_CANCEL_DONE);
}

static void attempt_cancel_wait_chain(void)
{
	static size_t at;
	struct tw_handle handle = scene.due[at++ % DUES].handle;
	bool waited = tw_timeout_state(handle) == TW_STATE_INIT;
	int outcome;

	ARMED(outcome = tw_cancel_wait(handle, 0));
	atomic_fetch_add(&scene.cancelled,
			 (waited && outcome == -ETIMEDOUT) || outcome == TW_CANCEL_DONE);
}

static void attempt_due_run(void)
{
	ARMED((void)scene_due_run());
}

static void attempt_start(void)
{
	ARMED((void)tw_engine_start(scene.engine));
}

static void attempt_flush(void)
{
	ARMED((void)tw_engine_flush(scene.engine, TW_NEVER));
}

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)context;
	(void)text;
	(void)bytes;
}

static void attempt_dump(void)
{
	ARMED((void)tw_engine_dump(scene.engine, on_text, NULL, TW_NEVER));
}

static void attempt_pending(void)
{
	ARMED((void)tw_engine_pending(scene.engine));
}

static void attempt_stats(void)
{
	struct tw_stats stats = {.size = sizeof stats};

	ARMED((void)tw_stats_get(scene.engine, &stats));
}

static void attempt_stop(void)
{
	ARMED((void)tw_engine_stop(scene.engine, scene_hand_back, NULL, 0));
}

static void attempt_stop_and_end(void)
{
	ARMED((void)tw_engine_stop(scene.engine, scene_hand_back_and_end, NULL, 0));
}

/* Attaches, then schedules. Each time the thread's stock is used up, the attach must fill it. */
static void attempt_attach(void)
{
	ARMED((void)tw_thread_attach());
	(void)scene_schedule(NULL);
}

static void attempt_detach(void)
{
	(void)scene_schedule(NULL);
	ARMED((void)tw_thread_detach());
}

static void attempt_clock_set(void)
{
	ARMED((void)tw_clock_set(scene.clock, (scene.due_ms + 1) * NS_PER_MS));
}

const struct row rows[] = {
	{"tw_schedule", "slab:installing", attempt_schedule, SETTING_SCARCE, 0},
	{"tw_schedule", "pool:refill", attempt_schedule, SETTING_RUNNING, 0},
	{"tw_schedule", "depot:giving", attempt_rejected, SETTING_EXECUTOR, 0},
	{"tw_schedule", "schedule:open", attempt_schedule, SETTING_RUNNING, SECTION},
	{"tw_schedule", "ring_push:written", attempt_schedule, SETTING_RUNNING, SECTION},
	{"tw_schedule", "mpsc_push:exchanged", attempt_schedule, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule", "schedule:pushed", attempt_schedule, SETTING_RUNNING, SECTION},
	{"tw_schedule", "park:waking", attempt_schedule, SETTING_VIRTUAL, SECTION},
	{"tw_schedule", "start:starting", attempt_schedule, SETTING_NEW, STOP_WAITS},
	{"tw_schedule", "start:failed", attempt_schedule, SETTING_UNLUCKY, STOP_WAITS},

	{"tw_schedule_at", "slab:installing", attempt_schedule_at, SETTING_SCARCE, 0},
	{"tw_schedule_at", "pool:refill", attempt_schedule_at, SETTING_RUNNING, 0},
	{"tw_schedule_at", "depot:giving", attempt_rejected_at, SETTING_EXECUTOR, 0},
	{"tw_schedule_at", "schedule:open", attempt_schedule_at, SETTING_RUNNING, SECTION},
	{"tw_schedule_at", "ring_push:written", attempt_schedule_at, SETTING_RUNNING, SECTION},
	{"tw_schedule_at", "mpsc_push:exchanged", attempt_schedule_at, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule_at", "schedule:pushed", attempt_schedule_at, SETTING_RUNNING, SECTION},
	{"tw_schedule_at", "park:waking", attempt_schedule_at, SETTING_VIRTUAL, SECTION},
	{"tw_schedule_at", "start:starting", attempt_schedule_at, SETTING_NEW, STOP_WAITS},
	{"tw_schedule_at", "start:failed", attempt_schedule_at, SETTING_UNLUCKY, STOP_WAITS},

	{"tw_schedule_many", "slab:installing", attempt_schedule_many, SETTING_SCARCE, SECTION},
	{"tw_schedule_many", "pool:refill", attempt_schedule_many, SETTING_RUNNING, SECTION},
	{"tw_schedule_many", "schedule:open", attempt_schedule_many, SETTING_RUNNING, SECTION},
	{"tw_schedule_many", "ring_push:written", attempt_schedule_many, SETTING_RUNNING, SECTION},
	{"tw_schedule_many", "batch:chained", attempt_schedule_many, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule_many", "mpsc_push:exchanged", attempt_schedule_many, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule_many", "schedule:pushed", attempt_schedule_many, SETTING_RUNNING, SECTION},
	{"tw_schedule_many", "park:waking", attempt_schedule_many, SETTING_VIRTUAL, SECTION},
	{"tw_schedule_many", "start:starting", attempt_schedule_many, SETTING_NEW, STOP_WAITS},
	{"tw_schedule_many", "start:failed", attempt_schedule_many, SETTING_UNLUCKY, STOP_WAITS},

	{"tw_schedule_many_at", "slab:installing", attempt_schedule_many_at, SETTING_SCARCE,
	 SECTION},
	{"tw_schedule_many_at", "pool:refill", attempt_schedule_many_at, SETTING_RUNNING, SECTION},
	{"tw_schedule_many_at", "schedule:open", attempt_schedule_many_at, SETTING_RUNNING,
	 SECTION},
	{"tw_schedule_many_at", "ring_push:written", attempt_schedule_many_at, SETTING_RUNNING,
	 SECTION},
	{"tw_schedule_many_at", "batch:chained", attempt_schedule_many_at, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule_many_at", "mpsc_push:exchanged", attempt_schedule_many_at, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule_many_at", "schedule:pushed", attempt_schedule_many_at, SETTING_RUNNING,
	 SECTION},
	{"tw_schedule_many_at", "park:waking", attempt_schedule_many_at, SETTING_VIRTUAL, SECTION},
	{"tw_schedule_many_at", "start:starting", attempt_schedule_many_at, SETTING_NEW,
	 STOP_WAITS},
	{"tw_schedule_many_at", "start:failed", attempt_schedule_many_at, SETTING_UNLUCKY,
	 STOP_WAITS},

	{"tw_cancel_many", "cancel:read", attempt_sweep, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "cancel:seen", attempt_sweep, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "cancel:wheeled", attempt_sweep, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "cancel:swapped", attempt_sweep, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "cancel:won", attempt_sweep, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "ring_push:written", attempt_sweep, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "mpsc_push:exchanged", attempt_sweep, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_cancel_many", "depot:giving", attempt_sweep_magazines, SETTING_RUNNING, SECTION},
	{"tw_cancel_many", "cancel:running", attempt_sweep_chain, SETTING_CHAINS, SECTION},

	{"tw_schedule_periodic", "slab:installing", attempt_schedule_periodic, SETTING_SCARCE, 0},
	{"tw_schedule_periodic", "pool:refill", attempt_schedule_periodic, SETTING_RUNNING, 0},
	{"tw_schedule_periodic", "depot:giving", attempt_rejected_periodic, SETTING_EXECUTOR, 0},
	{"tw_schedule_periodic", "schedule:open", attempt_schedule_periodic, SETTING_RUNNING,
	 SECTION},
	{"tw_schedule_periodic", "ring_push:written", attempt_schedule_periodic, SETTING_RUNNING,
	 SECTION},
	{"tw_schedule_periodic", "mpsc_push:exchanged", attempt_schedule_periodic, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_schedule_periodic", "schedule:pushed", attempt_schedule_periodic, SETTING_RUNNING,
	 SECTION},
	{"tw_schedule_periodic", "park:waking", attempt_schedule_periodic, SETTING_VIRTUAL,
	 SECTION},
	{"tw_schedule_periodic", "start:starting", attempt_schedule_periodic, SETTING_NEW,
	 STOP_WAITS},
	{"tw_schedule_periodic", "start:failed", attempt_schedule_periodic, SETTING_UNLUCKY,
	 STOP_WAITS},

	{"tw_cancel", "cancel:read", attempt_cancel, SETTING_RUNNING, SECTION},
	{"tw_cancel", "cancel:seen", attempt_cancel, SETTING_RUNNING, SECTION},
	{"tw_cancel", "cancel:wheeled", attempt_cancel, SETTING_RUNNING, SECTION},
	{"tw_cancel", "cancel:swapped", attempt_cancel, SETTING_RUNNING, SECTION},
	{"tw_cancel", "cancel:won", attempt_cancel, SETTING_RUNNING, SECTION},
	{"tw_cancel", "ring_push:written", attempt_cancel, SETTING_RUNNING, SECTION},
	{"tw_cancel", "mpsc_push:exchanged", attempt_cancel, SETTING_RUNNING, SECTION | RINGLESS},
	{"tw_cancel", "depot:giving", attempt_cancel_many, SETTING_RUNNING, SECTION},
	{"tw_cancel", "cancel:running", attempt_cancel_chain, SETTING_CHAINS, SECTION},

	{"tw_reschedule", "reschedule:seen", attempt_reschedule, SETTING_RUNNING, SECTION},
	{"tw_reschedule", "reschedule:queued", attempt_reschedule, SETTING_RUNNING, SECTION},
	{"tw_reschedule", "ring_push:written", attempt_reschedule, SETTING_RUNNING, SECTION},
	{"tw_reschedule", "mpsc_push:exchanged", attempt_reschedule, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_reschedule", "reschedule:pushed", attempt_reschedule, SETTING_RUNNING, SECTION},
	{"tw_reschedule_at", "reschedule:seen", attempt_postpone_at, SETTING_RUNNING, STOP_WAITS},
	{"tw_reschedule_at", "reschedule:swapped", attempt_postpone_at, SETTING_RUNNING,
	 STOP_WAITS},
	{"tw_reschedule_at", "reschedule:queued", attempt_reschedule_at, SETTING_RUNNING, SECTION},
	{"tw_reschedule_at", "ring_push:written", attempt_reschedule_at, SETTING_RUNNING, SECTION},
	{"tw_reschedule_at", "mpsc_push:exchanged", attempt_reschedule_at, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_reschedule_at", "reschedule:pushed", attempt_reschedule_at, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "cancel:read", attempt_cancel_wait, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "cancel:seen", attempt_cancel_wait, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "cancel:wheeled", attempt_cancel_wait, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "cancel:swapped", attempt_cancel_wait, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "cancel:won", attempt_cancel_wait, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "ring_push:written", attempt_cancel_wait, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "mpsc_push:exchanged", attempt_cancel_wait, SETTING_RUNNING,
	 SECTION | RINGLESS},
	{"tw_cancel_wait", "depot:giving", attempt_cancel_wait_many, SETTING_RUNNING, SECTION},
	{"tw_cancel_wait", "cancel:running", attempt_cancel_wait_chain, SETTING_CHAINS, SECTION},
	{"tw_cancel_wait", "cancel_wait:seen", attempt_wait, SETTING_EXECUTOR, 0},
	{"tw_cancel_wait", "cancel_wait:waiting", attempt_wait, SETTING_EXECUTOR, 0},

	{"tw_due_run", "due:seen", attempt_due_run, SETTING_EXECUTOR, STOP_WAITS},
	{"tw_due_run", "run:begin", attempt_due_run, SETTING_EXECUTOR, STOP_WAITS},
	{"tw_due_run", "run:ending", attempt_due_run, SETTING_EXECUTOR, STOP_WAITS},
	{"tw_due_run", "run:ended", attempt_due_run, SETTING_EXECUTOR, STOP_WAITS},
	{"tw_due_run", "depot:giving", attempt_due_run, SETTING_EXECUTOR, STOP_WAITS},
	{"tw_due_run", "chain:ending", attempt_due_run, SETTING_CHAINS, STOP_WAITS},
	{"tw_due_run", "reschedule:queued", attempt_due_run, SETTING_CHAINS, STOP_WAITS},
	{"tw_due_run", "ring_push:written", attempt_due_run, SETTING_CHAINS, STOP_WAITS},
	{"tw_due_run", "mpsc_push:exchanged", attempt_due_run, SETTING_CHAINS,
	 STOP_WAITS | RINGLESS},
	{"tw_due_run", "reschedule:pushed", attempt_due_run, SETTING_CHAINS, STOP_WAITS},
	{"tw_due_run", "due:counted", attempt_due_run, SETTING_EXECUTOR, SECTION},

	{"tw_engine_start", "start:starting", attempt_start, SETTING_NEW, STOP_WAITS},
	{"tw_engine_start", "start:failed", attempt_start, SETTING_UNLUCKY, STOP_WAITS},

	{"tw_engine_flush", "park:waking", attempt_flush, SETTING_VIRTUAL, 0},
	{"tw_engine_flush", "flush:waiting", attempt_flush, SETTING_RUNNING, 0},
	{"tw_engine_flush", "start:starting", attempt_flush, SETTING_STALLED, STOP_WAITS},
	{"tw_engine_flush", "start:failed", attempt_flush, SETTING_STALLED, STOP_WAITS},

	{"tw_engine_pending", "stats:pair", attempt_pending, SETTING_RUNNING, 0},
	{"tw_engine_pending", "stats:lanes", attempt_pending, SETTING_RUNNING, 0},
	{"tw_stats_get", "stats:pair", attempt_stats, SETTING_RUNNING, 0},
	{"tw_stats_get", "stats:lanes", attempt_stats, SETTING_RUNNING, 0},
	{"tw_engine_dump", "stats:pair", attempt_dump, SETTING_RUNNING, 0},
	{"tw_engine_dump", "stats:lanes", attempt_dump, SETTING_RUNNING, 0},
	{"tw_engine_dump", "park:waking", attempt_dump, SETTING_VIRTUAL, 0},
	{"tw_engine_dump", "snapshot:placed", attempt_dump, SETTING_RUNNING, 0},
	{"tw_engine_dump", "snapshot:waiting", attempt_dump, SETTING_RUNNING, 0},

	{"tw_engine_stop", "stop:claimed", attempt_stop, SETTING_RUNNING, STOP_WAITS},
	{"tw_engine_stop", "stop:closed", attempt_stop, SETTING_RUNNING, CLOSED},
	{"tw_engine_stop", "park:waking", attempt_stop, SETTING_VIRTUAL, CLOSED},
	{"tw_engine_stop", "collect:seen", attempt_stop, SETTING_STALLED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "transfer:taken", attempt_stop, SETTING_STALLED,
	 STOP_WAITS | CLOSED | RINGLESS},
	{"tw_engine_stop", "mpsc_push:exchanged", attempt_stop, SETTING_STALLED,
	 STOP_WAITS | CLOSED | RINGLESS},
	{"tw_engine_stop", "depot:giving", attempt_stop, SETTING_STALLED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "hand_back:seen", attempt_stop, SETTING_STALLED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "hand_back:taken", attempt_stop, SETTING_STALLED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "due:seen", attempt_stop, SETTING_DESERTED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "run:ending", attempt_stop, SETTING_DESERTED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "run:begin", attempt_stop, SETTING_DESERTED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "run:ended", attempt_stop, SETTING_DESERTED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "due:counted", attempt_stop, SETTING_DESERTED, SECTION | CLOSED},
	{"tw_engine_stop", "finish:sweeping", attempt_stop, SETTING_STALLED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "finish:stopping", attempt_stop, SETTING_STALLED, STOP_WAITS | CLOSED},
	{"tw_engine_stop", "died:seen", attempt_stop_and_end, SETTING_STALLED, SECTION | CLOSED},
	{"tw_engine_stop", "died:told", attempt_stop_and_end, SETTING_STALLED, SECTION | CLOSED},

	{"tw_thread_attach", "slab:installing", attempt_attach, SETTING_SCARCE, 0},
	{"tw_thread_attach", "pool:refill", attempt_attach, SETTING_RUNNING, 0},
	{"tw_thread_detach", "depot:giving", attempt_detach, SETTING_RUNNING, 0},

	{"tw_clock_set", "clock_set:moved", attempt_clock_set, SETTING_VIRTUAL,
	 SECTION | MOVES_CLOCK},
	{"tw_clock_set", "park:waking", attempt_clock_set, SETTING_VIRTUAL, SECTION | MOVES_CLOCK},
};

const size_t row_count = sizeof rows / sizeof rows[0];
