/* SPDX-License-Identifier: MIT */
/*
 * An executor that rejects timeouts. Rejected timeouts become pending again or are dropped, while
 * another thread calls cancel, cancel_wait, reschedule or stop (E4). Each timeout must end once, as
 * the return code says. In the last harness, several workers hand batches over to one thread (E66).
 *
 * Seen to fail with these defects:
 * - word_again(), which makes a rejected timeout pending again, changes the state word without
 *   checking the state, or overlooks that a chain was cancelled;
 * - twi_due_again() does not wake a thread that waits in cancel_wait;
 * - a thread that waits in cancel_wait treats a timeout that is pending again as ended;
 * - twi_due_again() inserts the timeout into the wheel before it calls word_again();
 * - twi_handover_push() pushes without release, or twi_handover_take() takes without acquire.
 */
#include "queue/handover.h"
#include "world.h"

#include <errno.h>

#define CLOCK_NS (WORLD_NOW_NS + 3 * WORLD_TICK_NS)

static struct probe one;
static struct tw_due due;
static size_t accept;
static unsigned offered, dropped;

/*
 * A canceller writes `told` before it cancels. The finaliser, on any thread, must then read that
 * value.
 */
static unsigned told, found;

static void on_run(struct tw_handle self, void *arg)
{
	struct probe *probe = arg;

	(void)self;
	probe->ran++;
}

static void on_end(void *arg, enum tw_end end)
{
	struct probe *probe = arg;

	if (end == TW_END_CANCELLED)
		found = told;
	probe->ended[end]++;
}

static const struct tw_kind kind = TW_KIND(on_run, on_end);

static size_t on_dispatch(void *context, const struct tw_due *batch, size_t count)
{
	(void)context;
	MODEL_CHECK(count == 1);
	due = batch[0];
	offered++;
	return accept;
}

static void on_drop(void *context, struct tw_handle self, const struct tw_kind *its_kind, void *arg)
{
	(void)context;
	(void)self;
	MODEL_CHECK(its_kind == &kind && arg == &one);
	dropped++;
}

static void open_world(uint32_t rejection)
{
	struct tw_options options = world_options();

	options.dispatch = on_dispatch;
	options.rejection = rejection;
	options.on_drop = rejection == TW_REJECTION_DROP ? on_drop : NULL;
	options.check = TW_CHECK_FULL;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
	world_thread_bare(0);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
}

/* Puts the timeout into the wheel and makes it due. */
static void schedule(void)
{
	world_schedule(&one, &kind, WORLD_NOW_NS + WORLD_TICK_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

static void repeat(void)
{
	struct tw_period period = TW_PERIOD_RATE(10000000LL * WORLD_TICK_NS);

	period.first_ns = WORLD_TICK_NS;
	MODEL_CHECK(tw_schedule_periodic(world.engine, &period, &kind, &one, &one.handle) == 0);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

static void open_requeue(void)
{
	open_world(TW_REJECTION_REQUEUE);
	schedule();
}

static void open_requeue_chain(void)
{
	open_world(TW_REJECTION_REQUEUE);
	repeat();
}

static void open_drop(void)
{
	open_world(TW_REJECTION_DROP);
	schedule();
}

static void open_requeue_worker(void)
{
	open_requeue();
	world_life(TW_ENGINE_STARTING);
}

static void turn(void)
{
	world_turn();
}

static void cancel(void)
{
	told = 1;
	one.outcome = tw_cancel(one.handle);
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE || one.outcome == TW_CANCEL_RUNNING);
}

/*
 * Cancels and waits. The executor rejects the timeout, so its callback never runs, and the wait
 * must end with a cancel.
 */
static void cancel_wait(void)
{
	told = 1;
	one.outcome = tw_cancel_wait(one.handle, TW_NEVER);
	MODEL_CHECK(one.outcome == TW_CANCEL_DONE);
	MODEL_CHECK(one.ended[TW_END_CANCELLED] == 1);
}

static void move(void)
{
	one.outcome = tw_reschedule_at(one.handle, CLOCK_NS + 10 * WORLD_TICK_NS);
	MODEL_CHECK(one.outcome == TW_RESCHEDULE_DONE || one.outcome == TW_RESCHEDULE_RUNNING);
}

static void stop(void)
{
	world_close();
}

/* Checks that the counters agree with the events. */
static void books(uint64_t expired, uint64_t cancelled)
{
	struct tw_stats stats = {.size = sizeof stats};

	MODEL_CHECK(tw_stats_get(world.engine, &stats) == 0);
	MODEL_CHECK(stats.expired == expired && stats.cancelled == cancelled);
	MODEL_CHECK(stats.check_failures == 0);
}

static void cancelled_or_pending(void)
{
	bool done = one.outcome == TW_CANCEL_DONE;

	MODEL_CHECK(found == (done ? told : 0));
	books(0, done);
	world_close();
	MODEL_CHECK(probe_end(&one) == (done ? TW_END_CANCELLED : TW_END_UNEXPIRED));
}

static void cancelled(void)
{
	world_turn();
	MODEL_CHECK(found == told);
	books(0, 1);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_CANCELLED);
}

/*
 * Checks that, after a successful reschedule, the executor gets the timeout only at its new
 * deadline. If the reschedule fails, the worker offers the timeout again at the next tick.
 */
static void moved(void)
{
	unsigned before = offered;

	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS + 2 * WORLD_TICK_NS) == 0);
	world_turn();
	MODEL_CHECK(offered == before + (one.outcome == TW_RESCHEDULE_RUNNING));
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS + 20 * WORLD_TICK_NS) == 0);
	accept = 1;
	world_turn();
	MODEL_CHECK(tw_due_run(&due) == 0);
	books(1, 0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void unexpired(void)
{
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
}

static void dropped_or_cancelled(void)
{
	MODEL_CHECK(dropped ==
		    (one.outcome == TW_CANCEL_RUNNING || one.outcome == TW_CANCEL_EXPIRED ||
		     one.outcome == TW_CANCEL_STALE));
	world_turn();
	world_close();
	MODEL_CHECK(one.ran == 0 && one.unexpired == 0);
	MODEL_CHECK(one.ended[dropped == 1 ? TW_END_DROPPED : TW_END_CANCELLED] == 1);
	MODEL_CHECK(one.ended[0] + one.ended[1] + one.ended[2] + one.ended[3] == 1);
}

static void cancel_any(void)
{
	one.outcome = tw_cancel(one.handle);
}

MODEL_HARNESS(requeue_cancel,
	      .proves = "cancel and a rejection: the timeout is cancelled, or pending again",
	      .setup = open_requeue, .thread = {cancel, turn}, .finish = cancelled_or_pending,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(requeue_wait, .proves = "cancel_wait and a rejection: the wait ends with a cancel",
	      .setup = open_requeue, .thread = {cancel_wait, turn}, .finish = cancelled,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(requeue_chain,
	      .proves = "cancel and a rejected run of a chain: no further run, one end",
	      .setup = open_requeue_chain, .thread = {cancel_wait, turn}, .finish = cancelled,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(requeue_reschedule,
	      .proves = "reschedule and a rejection: the time holds, or it was too late",
	      .setup = open_requeue, .thread = {move, turn}, .finish = moved, .preemptions = 2,
	      .weak = 1, .random_runs = 500);
MODEL_HARNESS(requeue_stop, .proves = "stop and a rejection: the timeout is handed back once",
	      .setup = open_requeue_worker, .thread = {stop}, .worker = world_work,
	      .finish = unexpired, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(drop_cancel,
	      .proves = "cancel and a drop: one of them ends the timeout, as the code says",
	      .setup = open_drop, .thread = {cancel_any, turn}, .finish = dropped_or_cancelled,
	      .preemptions = 2, .weak = 1, .random_runs = 500);

/* In the next harness, two workers hand batches over to one thread. */

static struct twi_handover handover;
static struct batch {
	struct twi_handover_link link; /* must be the first field */
	unsigned number;               /* counts the batches of its worker */
} batches[4];
static unsigned taken[2];

static void push_two(unsigned worker)
{
	for (unsigned i = 0; i < 2; i++) {
		struct batch *batch = &batches[2 * worker + i];

		batch->number = i + 1;
		twi_handover_push(&handover, &batch->link);
	}
}

static void push_first(void)
{
	push_two(0);
}

static void push_second(void)
{
	push_two(1);
}

/* Takes what was handed over. Each batch must come once, and the batches of one worker in order. */
static void take(void)
{
	struct twi_handover_link *link = twi_handover_take(&handover);

	while (link != NULL) {
		struct batch *batch = (struct batch *)(void *)link;
		unsigned worker = (unsigned)(batch - batches) / 2;

		MODEL_CHECK(batch->number == taken[worker] + 1);
		taken[worker]++;
		link = link->next;
	}
}

static void take_twice(void)
{
	take();
	take();
}

static void all_taken(void)
{
	take();
	MODEL_CHECK(taken[0] == 2 && taken[1] == 2 && twi_handover_empty(&handover));
}

MODEL_HARNESS(handover,
	      .proves = "batches that two workers hand over to one thread come once and in order",
	      .thread = {push_first, push_second, take_twice}, .finish = all_taken,
	      .preemptions = 2, .weak = 1, .random_runs = 2000);
