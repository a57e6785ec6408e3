/* SPDX-License-Identifier: MIT */
/*
 * Races a loop that sleeps on the engine's descriptor against all threads that may wake it. The
 * loop must poll again if there is a reason (E8), and must come to rest if there is none. Other
 * harnesses use brackets: pairs of tw_loop_enter and tw_loop_exit, which make one thread after
 * another the owner (E12).
 *
 * Seen to fail with these defects:
 * - the owner does not look at its park word after it has set the timer;
 * - the owner looks at ingress before it has published its sleep;
 * - a waker does not set the timer;
 * - the owner does not expect a waker to set the timer late, and then polls for ever;
 * - a waker counts its setting of the timer (`kicks`) by a load and a store;
 * - turn_take() takes the flush ticket relaxed;
 * - a queue counts as empty as soon as the worker's end is at the stub, although a push is not
 *   linked yet (loop_cut).
 */
#include "world.h"

#include <errno.h>

static struct probe one, two;
static struct tw_handle handles[2];
static bool two_accepted;

static void open_loop(void)
{
	struct tw_options options = world_options();

	options.flags = TW_ENGINE_LOOP;
	world_open(&options);
	world_threads(4, WORLD_STOCK_FILLED);
	world.has_worker = true;
}

static void open_soon(void)
{
	open_loop();
	world_schedule(&one, &probe_kind, WORLD_NOW_NS + WORLD_TICK_NS);
}

static void own(void)
{
	MODEL_CHECK(tw_loop_enter(world.engine) == 0);
}

/* Makes thread 1, which is the harness's worker, the owner. */
static void open_owned(void)
{
	open_loop();
	model_as(1, own);
}

/* Runs the owner's loop, which ends when the engine stops. */
static void loop_run(void)
{
	if (!twi_engine_owned(world.engine))
		own();
	MODEL_CHECK(tw_engine_fd(world.engine) >= 0);
	for (;;) {
		int64_t result;

		model_timer_wait();
		result = tw_engine_poll(world.engine, 0);
		if (result < 0) {
			MODEL_CHECK(result == -ESHUTDOWN);
			return;
		}
		/*
		 * Between polls no deadline counts as due in the present turn (direct.h), not even
		 * one in the past.
		 */
		MODEL_CHECK(world.worker->direct_from_ns == INT64_MIN);
	}
}

/* Polls before it creates the descriptor, so that no other thread knows the descriptor yet. */
static void loop_run_late(void)
{
	own();
	MODEL_CHECK(tw_engine_poll(world.engine, 0) >= 0);
	loop_run();
}

static void share_lane(void)
{
	twi_thread()->lane = TWI_LANE_SHARED;
	twi_thread()->presence = NULL;
}

static void schedule(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &one, NULL) == 0);
}

static void schedule_other(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL) == 0);
}

/* Schedules a timeout with the deadline TW_NEVER. Its push wakes no thread. */
static void schedule_never(void)
{
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &probe_kind, &two, NULL) == 0);
}

/*
 * Makes a lane that has already pushed through its link queue. The next push to that queue can then
 * be interrupted between its two steps.
 */
static void open_linked(void)
{
	open_loop();
	model_as(0, share_lane);
	model_as(0, schedule);
}

static void set_clock(void)
{
	world_time_goes_on();
}

static void flush(void)
{
	MODEL_CHECK(tw_engine_flush(world.engine, TW_NEVER) == 0);
}

static void schedule_and_flush(void)
{
	schedule();
	flush();
	MODEL_CHECK(one.ran == 1);
}

static void stop(void)
{
	MODEL_CHECK(tw_engine_stop(world.engine, probe_hand_back, NULL, TW_NEVER) == 0);
}

/* This time is longer than a loop waits before it looks again at a push that was not linked. */
enum { A_WHILE_NS = 10000000 };

/* Checks that the loop has done its work without another wake-up, and does not poll any more. */
static void at_rest_with(int64_t pending)
{
	static _Atomic uint32_t nobody;
	int64_t until_ns;

	model_wait_idle();
	until_ns = model_now_ns() + A_WHILE_NS;
	while (model_now_ns() < until_ns)
		(void)twi_futex_wait(&nobody, 0, until_ns);
	model_wait_idle();
	MODEL_CHECK(tw_engine_pending(world.engine) == pending);
	/*
	 * The owner must have counted all settings of the timer. Otherwise each later poll would
	 * set the timer for nothing.
	 */
	MODEL_CHECK(twi_load_relaxed(&world.worker->park.kicks) == world.worker->kicks_expected);
	world_close();
}

static void at_rest(void)
{
	at_rest_with(0);
}

static void at_rest_with_one(void)
{
	at_rest_with(1);
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED);
}

static void close_it(void)
{
	world_close();
}

/* Destroys the engine at once. The poll that saw the stop may not have returned yet. */
static void stop_and_free(void)
{
	stop();
	MODEL_CHECK(tw_engine_destroy(world.engine) == 0);
}

/*
 * Enters a bracket, unless another thread is in one. If two brackets overlap, their ordinary
 * accesses race.
 */
static void bracket_or_busy(void)
{
	int result = tw_loop_enter(world.engine);

	if (result == -EBUSY)
		return;
	MODEL_CHECK(result == 0);
	if (handles[0].node != NULL)
		MODEL_CHECK(tw_cancel(handles[0]) == TW_CANCEL_DONE);
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &bare_kind, &one, &handles[0]) == 0);
	MODEL_CHECK(tw_loop_exit(world.engine) == 0);
}

/*
 * Polls without a bracket around the poll, so the poll is a bracket of its own. The stop may have
 * to wait for this poll.
 */
static void poll_beside_stop(void)
{
	int64_t result = tw_engine_poll(world.engine, 0);

	MODEL_CHECK(result >= 0 || result == -ESHUTDOWN || result == -EBUSY);
}

static void schedule_or_stopped(void)
{
	int result = tw_schedule_at(world.engine, WORLD_DUE_NS, &probe_kind, &two, NULL);

	two_accepted = result == 0;
	MODEL_CHECK(result == 0 || result == -ESHUTDOWN);
}

static void close_all(void)
{
	MODEL_CHECK(probe_end(&one) == TW_END_EXPIRED || probe_end(&one) == TW_END_UNEXPIRED);
	if (two_accepted)
		MODEL_CHECK(probe_end(&two) == TW_END_EXPIRED ||
			    probe_end(&two) == TW_END_UNEXPIRED);
	world_close();
}

/* Leaves its bracket and becomes a producer, while another thread may be in the next bracket. */
static void bracket_then_producer(void)
{
	bracket_or_busy();
	MODEL_CHECK(tw_schedule_at(world.engine, TW_NEVER, &probe_kind, &two, &handles[1]) == 0);
	MODEL_CHECK(tw_cancel(handles[1]) == TW_CANCEL_DONE);
}

MODEL_HARNESS(loop_push, .proves = "each of two schedules wakes a sleeping loop",
	      .setup = open_loop, .thread = {schedule, schedule_other}, .worker = loop_run,
	      .finish = at_rest, .preemptions = 1, .weak = 1, .random_runs = 2000);
MODEL_HARNESS(loop_cut,
	      .proves = "a queue with an unlinked push is not empty when the descriptor is created",
	      .setup = open_linked, .thread = {schedule_never}, .worker = loop_run_late,
	      .finish = at_rest_with_one, .preemptions = 2, .weak = 0, .random_runs = 1000);
MODEL_HARNESS(loop_clock, .proves = "a moved clock wakes a sleeping loop", .setup = open_soon,
	      .thread = {set_clock}, .worker = loop_run, .finish = at_rest, .preemptions = 2,
	      .weak = 1, .random_runs = 1000);
MODEL_HARNESS(loop_flush, .proves = "flush wakes a loop, which then comes to rest again",
	      .setup = open_loop, .thread = {flush, schedule}, .worker = loop_run,
	      .finish = at_rest, .preemptions = 1, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(loop_stop, .proves = "stop wakes a loop, which then ends the engine",
	      .setup = open_owned, .thread = {stop_and_free}, .worker = loop_run, .preemptions = 2,
	      .weak = 1, .random_runs = 1000);
MODEL_HARNESS(loop_sees,
	      .proves = "after a flush, a poll has run due timeouts, and their writes are visible",
	      .setup = open_loop, .thread = {schedule_and_flush}, .worker = loop_run,
	      .finish = at_rest, .preemptions = 1, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(loop_owners, .proves = "a bracket sees everything that the previous bracket did",
	      .setup = open_loop, .thread = {bracket_or_busy, bracket_or_busy}, .finish = close_it,
	      .preemptions = 2, .weak = 2, .random_runs = 1000);
MODEL_HARNESS(loop_producer,
	      .proves = "an owner that left may schedule during the next owner's bracket",
	      .setup = open_loop, .thread = {bracket_then_producer, bracket_or_busy},
	      .finish = close_it, .preemptions = 2, .weak = 1, .random_runs = 1000);
MODEL_HARNESS(loop_brackets, .proves = "brackets lose no timeout beside a producer and a stop",
	      .setup = open_soon, .thread = {poll_beside_stop, stop, schedule_or_stopped},
	      .finish = close_all, .preemptions = 1, .weak = 1, .random_runs = 2000);
MODEL_HARNESS(loop_left, .proves = "a stop does the work itself if the owner has left",
	      .setup = open_soon, .thread = {poll_beside_stop, stop}, .finish = close_it,
	      .preemptions = 2, .weak = 1, .random_runs = 1000);
