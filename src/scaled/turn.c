/* SPDX-License-Identifier: MIT */
/*
 * The turn of a scaled kind (protocol: scaled.h): the run of its driver.
 *
 * A turn advances the queue's time from one due time of its wheel to the next, up to the queue's
 * present time. So after a jump of the time the wheel is emptied in slices, as it would be if the
 * time had passed without a jump. When the turn's time is up, the driver is due again at once. So
 * the engine's other timeouts can run in between.
 *
 * A poll publishes the time before which threads must drive the driver. During a turn only the last
 * poll does so, because while the driver runs no thread has to drive it. `armed_ns` is then the
 * time by which the queue needs the next turn: the end of the tick in which the earliest timeout
 * lies. The driver runs at the beginning of that tick, so that the timeout is not late by two
 * ticks, the queue's and the engine's. If the driver runs too early, it runs again one tick of the
 * engine later.
 */
#include "base/atomic.h"
#include "base/test_point.h"
#include "base/tick.h"
#include "expiry/run.h"
#include "scaled/scaled.h"
#include "turn/poll.h"
#include "turn/timer.h"
#include "worker/left.h"

#include <tickwheel.h>

/* If a producer has not linked its push yet, the queue is polled again after this time. */
#define LOOK_AGAIN_NS INT64_C(1000000)

/*
 * AT_ONCE_NS means "in the engine's next turn" where a function returns the time of the driver's
 * next run.
 */
#define AT_ONCE_NS INT64_C(-1)

struct turn {
	struct tw_scaled *scaled;
	int64_t now_ns;    /* the engine's time when the turn began */
	int64_t ahead_ns;  /* how far the queue's time is ahead of the engine's */
	int64_t target_ns; /* the queue's time for `now_ns` */
	int64_t at_ns;     /* the queue's time of the last poll */
	uint64_t runs;     /* how many more callbacks may run */
	unsigned polls;    /* how many more polls may follow */
};

/*
 * Polls the queue once. Returns false if the queue is closed. Then the poll has left the queue, and
 * the caller must not call twi_engine_leave.
 */
static TWI_WORKER_UNCHECKED bool turn_poll(struct turn *turn, uint64_t budget)
{
	int64_t ran = twi_worker_poll(&turn->scaled->queue->worker, turn->at_ns, budget,
				      twi_deadline_after(turn->now_ns, TWI_SCALED_TURN_NS));

	if (ran < 0)
		return false;
	turn->runs -= (uint64_t)ran < turn->runs ? (uint64_t)ran : turn->runs;
	return true;
}

static int64_t sooner_ns(int64_t one_ns, int64_t other_ns)
{
	return one_ns < other_ns ? one_ns : other_ns;
}

static bool time_left(struct turn *turn)
{
	return turn->runs > 0 && turn->polls-- > 0 &&
	       tw_engine_now(turn->scaled->engine) - turn->now_ns < TWI_SCALED_TURN_NS;
}

/*
 * Returns whether the turn has more work. A push that is not linked yet does not count, because the
 * turn does not wait for it.
 */
static TWI_WORKER_UNCHECKED bool work_left(const struct turn *turn, int64_t due_ns)
{
	const struct twi_worker *worker = &turn->scaled->queue->worker;

	return due_ns <= turn->target_ns || turn->at_ns < turn->target_ns ||
	       (worker->poll_left & TWI_LEFT_MORE) != 0;
}

/* Polls until nothing is due or the turn's time is up. Returns false if the queue is closed. */
static TWI_WORKER_UNCHECKED bool turn_polls(struct turn *turn)
{
	struct twi_worker *worker = &turn->scaled->queue->worker;
	int64_t due_ns = twi_timer_due_ns(worker);

	do {
		turn->at_ns = sooner_ns(due_ns, turn->target_ns);
		if (!turn_poll(turn, turn->runs))
			return false;
		due_ns = twi_timer_due_ns(worker);
	} while (work_left(turn, due_ns) && time_left(turn));
	return true;
}

/* Returns when the driver must run next, in the engine's time. */
static TWI_WORKER_UNCHECKED int64_t turn_next_ns(const struct turn *turn)
{
	const struct twi_worker *worker = &turn->scaled->queue->worker;
	int64_t armed_ns = worker->armed_ns;
	int64_t next_ns = TW_NEVER;

	if (armed_ns <= turn->target_ns || turn->at_ns < turn->target_ns)
		return AT_ONCE_NS;
	if (armed_ns != TW_NEVER)
		next_ns = armed_ns - turn->ahead_ns - (int64_t)worker->tick_ns;
	if (TWI_UNLIKELY((worker->poll_left & (TWI_LEFT_CUT | TWI_LEFT_HIDDEN)) != 0))
		next_ns = sooner_ns(next_ns, turn->now_ns + LOOK_AGAIN_NS);
	return next_ns > turn->now_ns ? next_ns : turn->now_ns + 1;
}

/* Takes a turn. Returns when the driver must run next, in the engine's time. */
static TWI_WORKER_UNCHECKED int64_t scaled_turn(struct tw_scaled *scaled)
{
	struct twi_worker *worker = &scaled->queue->worker;
	struct turn turn = {.scaled = scaled,
			    .now_ns = tw_engine_now(scaled->engine),
			    .ahead_ns = twi_scaled_ahead_ns(scaled),
			    .runs = TWI_SCALED_RUNS,
			    .polls = TWI_SCALED_POLLS};
	bool open;

	/*
	 * Unlike tw_loop_enter, this call does not at once transfer everything that this thread has
	 * pushed. The polls transfer it, in bounded batches.
	 */
	if (twi_engine_own(scaled->queue) != 0)
		return TW_NEVER;
	/*
	 * The time must be before TW_NEVER. Otherwise timeouts that never expire would need one
	 * turn after the other.
	 */
	turn.target_ns = sooner_ns(twi_deadline_after(turn.now_ns, turn.ahead_ns), TW_NEVER - 1);
	worker->polls_follow = true;
	open = turn_polls(&turn);
	TWI_TEST_POINT("scaled:polled");
	if (!open)
		return TW_NEVER;
	worker->polls_follow = false;
	/*
	 * Clears given_up_ns if it has passed in the queue's time. turn/sleep.c would not clear it,
	 * because there given_up_ns is compared with the engine's time, which is behind the
	 * queue's.
	 */
	if (worker->given_up_ns <= turn.target_ns)
		worker->given_up_ns = INT64_MAX;
	if (!turn_poll(&turn, 1))
		return TW_NEVER;
	twi_engine_leave(scaled->queue);
	return turn_next_ns(&turn);
}

/* Sets the next run of the timer that runs now. */
static void next_set(struct tw_handle self, int64_t at_ns)
{
	struct tw_run run = {.size = sizeof run};

	(void)tw_run_get(&run);
	/*
	 * tw_period_next counts from the deadline of this run. AT_ONCE_NS becomes that deadline. It
	 * has passed, so the next run is due in the engine's next turn.
	 */
	if (at_ns == AT_ONCE_NS)
		at_ns = run.deadline_ns;
	(void)tw_period_next(self, at_ns == TW_NEVER ? TW_NEVER : at_ns - run.deadline_ns);
}

static void on_driver(struct tw_handle self, void *arg)
{
	struct twi_seat *seat = arg;
	int64_t next_ns = TW_NEVER;

	if (seat->fork_epoch == twi_fork_epoch) {
		/* E150: acquires the reasons of all earlier drives; see twi_seat_drive. */
		(void)twi_exchange_acq_rel(&seat->asked, 0);
		/*
		 * RELAXED: the owner is stored before the driver is scheduled, and changes only
		 * after the driver is cancelled.
		 */
		next_ns = scaled_turn(twi_load_relaxed(&seat->owner));
	}
	next_set(self, next_ns);
}

static void on_relay(struct tw_handle self, void *arg)
{
	struct twi_seat *seat = arg;

	next_set(self, TW_NEVER);
	if (seat->fork_epoch == twi_fork_epoch)
		(void)twi_seat_due(seat->driver);
}

/*
 * Stops the queue when the engine is stopped, so that the queue's timeouts are handed back to the
 * same hook.
 */
static void on_relay_end(void *arg, enum tw_end end)
{
	struct twi_seat *seat = arg;
	struct tw_scaled *scaled;

	if (end != TW_END_UNEXPIRED || seat->fork_epoch != twi_fork_epoch)
		return;
	/* RELAXED: as in on_driver. */
	scaled = twi_load_relaxed(&seat->owner);
	(void)tw_engine_stop(scaled->queue, scaled->engine->worker.on_unexpired,
			     scaled->engine->worker.hand_back_context, TW_NEVER);
}

#define OWN_KIND(its_callback, its_finaliser)                                                      \
	{                                                                                          \
		.size = sizeof(struct tw_kind), .flags = TW_KIND_FLAG_INLINE | TWI_KIND_FLAG_OWN,  \
		.callback = (its_callback), .finaliser = (its_finaliser),                          \
		.context = (void *)(uintptr_t)&twi_kind_own,                                       \
	}

const struct tw_kind twi_scaled_driver_kind = OWN_KIND(on_driver, NULL);

const struct tw_kind twi_scaled_relay_kind = OWN_KIND(on_relay, on_relay_end);
