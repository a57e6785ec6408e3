/* SPDX-License-Identifier: MIT */
/*
 * Races reschedule against expiry, cancel, transfer, stop, the worker's sleep, and itself. If a
 * reschedule reports success, its deadline holds. Each node is freed once (E1, E4, E8, E10, E16).
 *
 * Seen to fail with these defects:
 * - pair_swap() makes two stores, or is without release or acquire;
 * - node_expire() expires a rescheduled timeout by a swap of the state word alone, or relaxed;
 * - cancel pushes a node whose queued bit is set;
 * - node_refile() pushes a timeout that is still in ingress, or wakes the worker although no
 *   wake-up is needed;
 * - twi_node_reclaim() does not clear the queued bit, or clears it without acquire;
 * - twi_lane_push_queued() reads the deadline in two steps, not at all, or without release;
 * - node_transfer() makes its step relaxed;
 * - reschedule loads the state word relaxed;
 * - own_change() makes two stores, or moves no node.
 */
#include "world.h"

#include "worker/lane.h"

#include <errno.h>

#define SOON_NS (WORLD_NOW_NS + WORLD_TICK_NS)
#define LATER_NS (WORLD_NOW_NS + 10 * WORLD_TICK_NS)
#define CLOCK_NS (WORLD_NOW_NS + 3 * WORLD_TICK_NS)

static struct probe one, two;
static int told[MODEL_FIBERS];

static void open_running(int64_t deadline_ns)
{
	world_open(NULL);
	world_threads(4, WORLD_STOCK_FILLED);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, deadline_ns);
}

/* Opens with the timeout in the wheel and due. */
static void open_due(void)
{
	open_running(SOON_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

/* Does the same with a timeout whose deadline was changed once. */
static void open_due_again(void)
{
	open_running(SOON_NS - 1);
	world_turn();
	MODEL_CHECK(tw_reschedule_at(one.handle, SOON_NS) == TW_RESCHEDULE_DONE);
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

/* Opens with the timeout in the wheel and not due. */
static void open_far(void)
{
	open_running(TW_NEVER);
	world_turn();
}

static void open_in_ingress(void)
{
	open_running(LATER_NS);
}

/* Records an outcome. If it is EXPIRED, the caller must see what the callback wrote. */
static void told_be(int outcome)
{
	told[model_self()] = outcome;
	if (outcome == TW_RESCHEDULE_EXPIRED)
		MODEL_CHECK(one.ran == 1);
}

static void to(int64_t deadline_ns)
{
	told_be(tw_reschedule_at(one.handle, deadline_ns));
}

static void later(void)
{
	to(LATER_NS);
}

static void by_delay(void)
{
	told_be(tw_reschedule(one.handle, 7 * WORLD_TICK_NS));
}

static void at_once(void)
{
	to(WORLD_DUE_NS);
}

static void sooner(void)
{
	to(WORLD_DUE_NS + 1);
}

static void cancel(void)
{
	one.outcome = tw_cancel(one.handle);
}

static void turn(void)
{
	world_turn();
}

static bool done(unsigned thread)
{
	return told[thread + 1] == TW_RESCHEDULE_DONE;
}

/* Checks that the timeout has expired, unless the reschedule to a later time succeeded. */
static void later_or_expired(void)
{
	MODEL_CHECK(one.ran == !done(0));
	MODEL_CHECK(done(0) || told[1] == TW_RESCHEDULE_RUNNING ||
		    told[1] == TW_RESCHEDULE_EXPIRED);
	world_close();
	MODEL_CHECK(probe_end(&one) == (done(0) ? TW_END_UNEXPIRED : TW_END_EXPIRED));
}

/*
 * Does the same for a harness with a cancel. If the cancel succeeded, the timeout must have ended
 * as cancelled.
 */
static void later_expired_or_cancelled(void)
{
	if (one.outcome == TW_CANCEL_DONE)
		MODEL_CHECK(one.ran == 0);
	else
		MODEL_CHECK(one.ran == 1 && !done(0));
	world_turn();
	world_close();
	MODEL_CHECK((probe_end(&one) == TW_END_CANCELLED) == (one.outcome == TW_CANCEL_DONE));
}

/* Checks that every due timeout has run, unless it was cancelled. */
static void due_or_cancelled(void)
{
	world_turn();
	world_turn();
	MODEL_CHECK(one.ran == (one.outcome != TW_CANCEL_DONE));
	world_close();
	(void)probe_end(&one);
}

static void reset_outcome(void)
{
	one.outcome = TW_CANCEL_RUNNING;
}

static void open_due_uncancelled(void)
{
	open_due();
	reset_outcome();
}

static void open_far_uncancelled(void)
{
	open_far();
	reset_outcome();
}

static void open_in_ingress_uncancelled(void)
{
	open_in_ingress();
	reset_outcome();
}

MODEL_HARNESS(reschedule_expire, .proves = "a timeout does not run at its replaced deadline",
	      .setup = open_due, .thread = {later, turn}, .finish = later_or_expired,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_expire_again, .proves = "a second change of the deadline also holds",
	      .setup = open_due_again, .thread = {later, turn}, .finish = later_or_expired,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_delay, .proves = "a reschedule by a delay reads the engine's clock safely",
	      .setup = open_due_again, .thread = {by_delay, turn}, .finish = later_or_expired,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_expire_earlier, .proves = "an earlier time and the expiry: it runs once",
	      .setup = open_due_uncancelled, .thread = {at_once, turn}, .finish = due_or_cancelled,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_expire_cancel, .proves = "later, expiry and cancel: one end, as told",
	      .setup = open_due_again, .thread = {later, cancel, turn},
	      .finish = later_expired_or_cancelled, .preemptions = 2, .weak = 0,
	      .random_runs = 1000);
MODEL_HARNESS(reschedule_transfer, .proves = "the transfer files by the new, earlier deadline",
	      .setup = open_in_ingress_uncancelled, .thread = {at_once, turn},
	      .finish = due_or_cancelled, .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_earlier, .proves = "beside a turn, the node is filed anew and freed once",
	      .setup = open_far_uncancelled, .thread = {at_once, turn}, .finish = due_or_cancelled,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_earlier_cancel, .proves = "earlier and cancel: one push, freed once",
	      .setup = open_far_uncancelled, .thread = {at_once, cancel, turn},
	      .finish = due_or_cancelled, .preemptions = 2, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(reschedule_earlier_twice, .proves = "two calls during a turn: one of them pushes",
	      .setup = open_far_uncancelled, .thread = {at_once, sooner, turn},
	      .finish = due_or_cancelled, .preemptions = 2, .weak = 0, .random_runs = 1000);

/* Below, the worker itself reschedules, while other threads reschedule and cancel. */

static void open_far_checked(void)
{
	struct tw_options options = world_options();

	options.check = TW_CHECK_FULL;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
	world_thread_bare(1);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, TW_NEVER);
	world_turn();
	reset_outcome();
}

/*
 * Reschedules like a callback of the worker, between two turns. The second turn sees the state that
 * the first one has left.
 */
static void own_later(void)
{
	world_turn();
	later();
	world_turn();
}

static void never(void)
{
	to(TW_NEVER);
}

/*
 * Checks that a timeout which is still scheduled has the deadline TW_NEVER, set by thread 1 (thread
 * 0 is the worker). A timeout that is no longer scheduled has run, unless a cancel reported
 * success.
 */
static void where_told(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	MODEL_CHECK(tw_clock_set(world.clock, LATER_NS + 3 * WORLD_TICK_NS) == 0);
	world_turn();
	world_turn();
	if (tw_timeout_get(one.handle, &seen) == 0 && seen.state == TW_STATE_INIT)
		MODEL_CHECK(seen.deadline_ns == TW_NEVER && done(1));
	else
		MODEL_CHECK(one.ran == (one.outcome != TW_CANCEL_DONE));
	/* RELAXED: no other thread is left. */
	MODEL_CHECK(twi_load_relaxed(&world.worker->check_failure_count) == 0);
	world_close();
	(void)probe_end(&one);
}

MODEL_HARNESS(reschedule_own_cancel, .proves = "the worker's reschedule and a cancel: one end",
	      .setup = open_far_checked, .thread = {own_later, cancel}, .finish = where_told,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_own_earlier, .proves = "the worker's and another reschedule both count",
	      .setup = open_far_checked, .thread = {own_later, at_once}, .finish = where_told,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_own_later, .proves = "the worker's call and a later deadline both count",
	      .setup = open_far_checked, .thread = {own_later, never}, .finish = where_told,
	      .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_own_both, .proves = "the worker's and two other calls all count",
	      .setup = open_far_checked, .thread = {own_later, never, at_once},
	      .finish = where_told, .preemptions = 1, .weak = 1, .random_runs = 1000);

/*
 * Below, thread 1 reads the deadline. If thread 0 has moved it to LATER_NS, thread 1 moves it to an
 * earlier time, which must hold.
 */

static void not_yet(void)
{
	to(LATER_NS);
}

static void at_once_after(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	MODEL_CHECK(tw_timeout_get(one.handle, &seen) == 0);
	if (seen.deadline_ns == LATER_NS)
		at_once();
	else
		told[model_self()] = TW_RESCHEDULE_RUNNING;
}

static void last_counts(void)
{
	world_turn();
	world_turn();
	MODEL_CHECK(one.ran == done(1));
	world_close();
}

MODEL_HARNESS(reschedule_last, .proves = "of two earlier times in the wheel, the last one holds",
	      .setup = open_far, .thread = {not_yet, at_once_after}, .finish = last_counts,
	      .preemptions = 2, .weak = 0, .random_runs = 500);

/* The second reschedule need not push: the worker's step sees its change in the state word. */
MODEL_HARNESS(reschedule_last_turn, .proves = "a turn files by the last of two deadlines",
	      .setup = open_far, .thread = {not_yet, at_once_after, turn}, .finish = last_counts,
	      .preemptions = 1, .weak = 1, .random_runs = 500);

/*
 * Below, a reschedule of a timeout in ingress pushes no second entry, so only the transfer frees
 * the node.
 */

static void two_blocks(void)
{
	at_once();
	MODEL_CHECK(tw_cancel(one.handle) == TW_CANCEL_DONE);
	world_turn();
	world_schedule(&one, &bare_kind, TW_NEVER);
	world_schedule(&two, &bare_kind, TW_NEVER);
	MODEL_CHECK(one.handle.node != two.handle.node);
	world_close();
}

MODEL_HARNESS(reschedule_ingress_cancel, .proves = "moved and cancelled in ingress: freed once",
	      .setup = open_in_ingress, .finish = two_blocks, .preemptions = 0, .weak = 0,
	      .random_runs = 0);

/* In the next harnesses, the callback must see all writes that came before the reschedule. */

static unsigned mark, mark_seen;

static void look_at_mark(struct tw_handle self, void *arg)
{
	(void)self;
	(void)arg;
	mark_seen = __atomic_load_n(&mark, __ATOMIC_RELAXED);
}

static const struct tw_kind look_kind = TW_KIND(look_at_mark, NULL);

static void open_to_look(int64_t deadline_ns)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_FILLED);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &look_kind, deadline_ns);
}

static void open_to_look_due(void)
{
	open_to_look(SOON_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

static void open_to_look_far(void)
{
	open_to_look(TW_NEVER);
	world_turn();
}

static void open_to_look_ingress(void)
{
	open_to_look(TW_NEVER);
}

static void mark_and(void (*reschedule)(void))
{
	__atomic_store_n(&mark, 1, __ATOMIC_RELAXED);
	reschedule();
}

static void a_little_later(void)
{
	told[model_self()] = tw_reschedule_at(one.handle, SOON_NS + 1);
}

static void mark_and_later(void)
{
	mark_and(a_little_later);
}

static void earlier(void)
{
	told[model_self()] = tw_reschedule_at(one.handle, WORLD_DUE_NS);
}

static void mark_and_earlier(void)
{
	mark_and(earlier);
}

static void mark_was_seen(void)
{
	world_turn();
	MODEL_CHECK(mark_seen == 1 || !done(0));
	world_close();
}

MODEL_HARNESS(reschedule_seen_later, .proves = "the callback sees the writes before a reschedule",
	      .setup = open_to_look_due, .thread = {mark_and_later, turn}, .finish = mark_was_seen,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_seen_earlier, .proves = "a callback sees writes before an earlier time",
	      .setup = open_to_look_far, .thread = {mark_and_earlier, turn},
	      .finish = mark_was_seen, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_seen_ingress, .proves = "a callback sees writes before a move in ingress",
	      .setup = open_to_look_ingress, .thread = {mark_and_earlier, turn},
	      .finish = mark_was_seen, .preemptions = 2, .weak = 1, .random_runs = 500);

/* In the next harnesses, the node serves another timeout with the same deadline. */

static void expire_and_reuse(void)
{
	world_turn();
	if (one.ran == 0)
		return;
	MODEL_CHECK(tw_schedule_at(world.engine, SOON_NS, &bare_kind, &two, &two.handle) == 0);
}

static void open_reuse(void)
{
	world_open(NULL);
	world_threads(2, WORLD_STOCK_EMPTY);
	world_life(TW_ENGINE_RUNNING);
	world_schedule(&one, &probe_kind, SOON_NS);
	world_turn();
	MODEL_CHECK(tw_clock_set(world.clock, CLOCK_NS) == 0);
}

static void other_untouched(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	if (two.handle.node != NULL)
		MODEL_CHECK(tw_timeout_get(two.handle, &seen) == 0 && seen.deadline_ns == SOON_NS);
	/*
	 * If the reschedule has pushed the node, the node is in the queue. Otherwise `two` gets the
	 * node.
	 */
	if (two.handle.node != NULL && !done(0))
		MODEL_CHECK(two.handle.node == one.handle.node);
	world_close();
	(void)probe_end(&one);
}

MODEL_HARNESS(reschedule_stale, .proves = "a stale handle moves no timeout with the same deadline",
	      .setup = open_reuse, .thread = {later, expire_and_reuse}, .finish = other_untouched,
	      .preemptions = 2, .weak = 2, .random_runs = 500);
MODEL_HARNESS(reschedule_stale_earlier, .proves = "a stale handle moves nothing to an earlier time",
	      .setup = open_reuse, .thread = {sooner, expire_and_reuse}, .finish = other_untouched,
	      .preemptions = 2, .weak = 2, .random_runs = 500);

/* Below, tw_timeout_get must return state and deadline as of one moment. */

static void get_later(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	if (tw_timeout_get(one.handle, &seen) == 0 && seen.state == TW_STATE_EXPIRED)
		MODEL_CHECK(seen.deadline_ns == WORLD_DUE_NS);
}

static void earlier_and_turn(void)
{
	MODEL_CHECK(tw_reschedule_at(one.handle, WORLD_DUE_NS) == TW_RESCHEDULE_DONE);
	world_turn();
	MODEL_CHECK(one.ran == 1);
}

static void close_it(void)
{
	world_close();
}

MODEL_HARNESS(reschedule_get, .proves = "tw_timeout_get returns state and deadline of one moment",
	      .setup = open_far, .thread = {get_later, earlier_and_turn}, .finish = close_it,
	      .preemptions = 2, .weak = 2, .random_runs = 500);

/* Below, stop must hand back the timeout with its new deadline, and the push must be complete. */

static int64_t unexpired_at_ns;

static void note_hand_back(void *context, struct tw_handle handle, const struct tw_kind *kind,
			   void *arg, int64_t remaining_ns)
{
	unexpired_at_ns = WORLD_NOW_NS + remaining_ns;
	probe_hand_back(context, handle, kind, arg, remaining_ns);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, note_hand_back, NULL, TW_NEVER) == 0);
}

static void open_far_starting(void)
{
	open_far();
	world_life(TW_ENGINE_STARTING);
}

static void to_soon(void)
{
	to(SOON_NS);
}

static void unexpired_as_told(void)
{
	/* Each entry must have been read: no thread may push after the sweep has begun. */
	for (unsigned i = 0; i < TWI_LANES; i++) {
		struct twi_lane *lane = &world.worker->near.lane[i];

		MODEL_CHECK(twi_mpsc_last_sc(&lane->cancelled) == &lane->cancelled_out.stub);
	}
	MODEL_CHECK(probe_end(&one) == TW_END_UNEXPIRED);
	MODEL_CHECK(done(0) ? unexpired_at_ns == SOON_NS
			    : told[1] == TW_RESCHEDULE_CANCELLED || told[1] == -ESTALE);
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

MODEL_HARNESS(reschedule_stop, .proves = "stop hands back a moved timeout with its new deadline",
	      .setup = open_far_starting, .thread = {to_soon, stop}, .worker = world_work,
	      .finish = unexpired_as_told, .preemptions = 1, .weak = 1, .random_runs = 1000);

/* Below, calls race against the worker's sleep. A thread that is not woken sleeps for ever. */

/* Waits for the looks by which the worker finds a push that was not linked in time. */
static void second_look_wait(void)
{
	static _Atomic uint32_t nobody;
	int64_t until_ns = model_now_ns() + 20000000;

	while (model_now_ns() < until_ns)
		(void)twi_futex_wait(&nobody, 0, until_ns);
}

static void ran_by_itself(void)
{
	second_look_wait();
	model_wait_idle();
	MODEL_CHECK(tw_engine_pending(world.engine) == 0);
	world_close();
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

/*
 * Checks that the timeout ran, or has the deadline LATER_NS because the reschedule to LATER_NS came
 * last.
 */
static void ran_or_is_later(void)
{
	struct tw_timeout seen = {.size = sizeof seen};

	second_look_wait();
	model_wait_idle();
	if (tw_timeout_get(one.handle, &seen) == 0 && seen.state == TW_STATE_INIT)
		MODEL_CHECK(seen.deadline_ns == LATER_NS);
	world_close();
	(void)probe_end(&one);
}

static void open_ingress_starting(void)
{
	open_in_ingress();
	world_life(TW_ENGINE_STARTING);
}

/*
 * Opens with a timeout that needs the worker in ten ticks. A slightly earlier deadline does not
 * wake the worker.
 */
static void open_ten_ticks(void)
{
	open_running(LATER_NS + 1);
	world_turn();
	world_life(TW_ENGINE_STARTING);
}

/*
 * Opens with a worker that sleeps until `two` is due. A later deadline of `one` need not wake the
 * worker.
 */
static void open_asleep(void)
{
	open_far();
	world_schedule(&two, &probe_kind, SOON_NS);
	world_life(TW_ENGINE_STARTING);
}

static void not_woken(void)
{
	model_wait_idle();
	MODEL_CHECK(twi_load_relaxed(&world.worker->park.word) == TWI_PARKED);
	MODEL_CHECK(tw_reschedule_at(one.handle, LATER_NS) == TW_RESCHEDULE_DONE);
	MODEL_CHECK(twi_load_relaxed(&world.worker->park.word) == TWI_PARKED);
	world_close();
}

MODEL_HARNESS(reschedule_no_wake, .proves = "a deadline after the next one wakes no thread",
	      .setup = open_asleep, .worker = world_work, .finish = not_woken, .preemptions = 0,
	      .weak = 0, .random_runs = 0);
MODEL_HARNESS(reschedule_sleep, .proves = "an earlier deadline in the wheel wakes the worker",
	      .setup = open_far_starting, .thread = {at_once}, .worker = world_work,
	      .finish = ran_by_itself, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_sleep_ingress, .proves = "an earlier one in ingress wakes the worker",
	      .setup = open_ingress_starting, .thread = {at_once}, .worker = world_work,
	      .finish = ran_by_itself, .preemptions = 2, .weak = 1, .random_runs = 500);
MODEL_HARNESS(reschedule_sleep_twice, .proves = "of two calls, the one that must wake does so",
	      .setup = open_ten_ticks, .thread = {not_yet, at_once}, .worker = world_work,
	      .finish = ran_or_is_later, .preemptions = 2, .weak = 0, .random_runs = 2000);
MODEL_HARNESS(reschedule_sleep_order, .proves = "in either order of two calls, one wakes",
	      .setup = open_ten_ticks, .thread = {not_yet, at_once}, .worker = world_work,
	      .finish = ran_or_is_later, .any_order = true, .preemptions = 1, .weak = 1,
	      .random_runs = 1000);
