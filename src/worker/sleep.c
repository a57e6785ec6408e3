/* SPDX-License-Identifier: MIT */
/*
 * The worker's sleep: until the earliest due tick that the wheel knows of, and no longer than it
 * takes that nothing is missed.
 *
 * Protocol (E8). The sleeper says that it parks, and before which deadline a timeout needs it
 * (wake_before_ns); then it looks whether ingress is empty; then at all other reasons to stay awake,
 * and waits. A producer pushes, then loads wake_before_ns: the one word that a schedule pays for. All
 * of that is sequentially consistent, so either the sleeper sees the push, or the producer sees what
 * the sleeper has said, and wakes it if the timeout is due earlier.
 *
 * Busy lanes. A push that is sequentially consistent costs a locked instruction, on the hot path. A lane
 * that brings many at once is marked (lanes_busy; never taken back), and from then on its producer raises
 * the tail of its ring by a release store and looks: the look may come before others see the store. For
 * that, once a lane is marked, the sleeper makes a barrier in all threads between what it says and its
 * looks at the rings (mech/barrier.h). In each producer the barrier falls somewhere. If after the store,
 * the sleeper sees the store. If before it, then before the look as well, which sees what was said before
 * the barrier. Who does not know yet that its lane is marked pushes by the exchange, and a mark is set by
 * who sleeps, so that no push without a fence is older than the sleeper's knowledge of the mark. One that
 * is set in the last turn before the sleep has no barrier before it: who sees it sees what was said before
 * (it is a release store, and acquired).
 *
 * It holds too for who pushes nothing and relies on another's push: a reschedule to an earlier deadline,
 * in a ring or queued already. It has acquired that push (by the handle it was given, or by the deadline's
 * order, api/reschedule.c) before it looks. If the barrier fell after the push in the pusher, the sleeper
 * sees the push, and the deadline by what follows; if before, then what was said comes before the push,
 * and so before the look.
 *
 * The barrier may fail (a filter of system calls that came later). Then a push may hide: the sleep ends
 * soon for a second look, each time, until a barrier succeeds. Units (TWI_UNSEEN_MAX), tickets, stop and
 * clocks are sequentially consistent in any case.
 *
 * What the sleeper sees it takes, in one more turn. It does not look again: whoever pushes since has
 * something to compare with. After that turn the first due tick may be earlier than was said (then it
 * sleeps until that, and is woken too often), or later (then it wakes up as early as was said).
 *
 * A push that is not linked yet can be neither taken nor compared: its producer may have looked
 * before we spoke. Then the sleep ends soon for a second look; the worker never spins on it.
 *
 * An engine that spins does without the system for the last of it: the word of the park says PARKED
 * as before, and is watched in place of the futex. Who wakes does the same for a spinner as for a
 * sleeper, so all of the above holds for both.
 *
 * Timeouts that nobody needs before the sleep ends stay in ingress, cancelled ones in the cancel
 * queue, both in the ring, up to the memory bound (TWI_UNSEEN_MAX), which wakes the worker however
 * far its next tick.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "mech/barrier.h"
#include "mech/futex.h"

/* How soon to look again at a push that is not linked, or may be hidden. */
#define SECOND_LOOK_NS INT64_C(1000000)

/* Tickets wait where a queue is cut: a look at once would see no more. */
static bool ticket_waits(const struct twi_worker *worker, unsigned left)
{
	/* E8. RELAXED: the worker's own. */
	return (left & TWI_LEFT_CUT) == 0 &&
	       twi_load_seq_cst(&worker->settle_wanted) != twi_load_relaxed(&worker->settle_done);
}

bool twi_sleep_refused(const struct twi_worker *worker, unsigned left)
{
	/* E8, all of them. */
	return (left & TWI_LEFT_MORE) != 0 || !twi_worker_open(worker) ||
	       ticket_waits(worker, left) || twi_load_seq_cst(&worker->unseen) >= TWI_UNSEEN_MAX;
}

static bool stay_awake(const struct twi_worker *worker, unsigned left, int64_t until_ns)
{
	return twi_sleep_refused(worker, left) || twi_clock_now_ns(worker->clock) >= until_ns;
}

int64_t twi_worker_boundary_ns(const struct twi_worker *worker, uint64_t tick)
{
	const struct twi_wheel *wheel = worker->wheel;

	if (tick == TWI_TICK_NEVER)
		return INT64_MAX;
	return twi_absolute_ns(wheel->epoch_ns, twi_boundary_ns(tick, wheel->tick_ns));
}

static int64_t sooner_ns(int64_t one_ns, int64_t other_ns)
{
	return one_ns < other_ns ? one_ns : other_ns;
}

/* On behalf of the lanes that push without a fence. */
static TWI_WORKER_ONLY void barrier_make(struct twi_worker *worker)
{
	/* RELAXED: the worker's own. */
	if (twi_load_relaxed(&worker->lanes_busy) != 0)
		/* E8: in all threads, after what was said, and before the looks. */
		worker->barrier_failed = !twi_barrier_all();
}

/*
 * What is due at the same tick as the first, or later, needs no wake: that tick began a boundary
 * before. Returns when the first is due.
 */
int64_t twi_sleep_say(struct twi_worker *worker)
{
	uint64_t next = twi_wheel_next_due(worker->wheel);
	uint64_t before = next == TWI_TICK_NEVER ? next : next - 1;

	if (worker->given_up_ns <= twi_clock_now_ns(worker->clock))
		worker->given_up_ns = INT64_MAX;
	twi_park_prepare(&worker->park);
	/* E8: said before the look at ingress; pairs with the look in schedule. */
	twi_store_seq_cst(&worker->wake_before_ns,
			  sooner_ns(twi_worker_boundary_ns(worker, before), worker->given_up_ns));
	barrier_make(worker);
	return sooner_ns(twi_worker_boundary_ns(worker, next), worker->given_up_ns);
}

static void park_take_back(struct twi_worker *worker)
{
	/* RELAXED: who still sees the old value wakes once too often. */
	twi_store_relaxed(&worker->wake_before_ns, TWI_WAKE_NOBODY);
	twi_park_done(&worker->park);
}

/* As the clock has it for the kernel; sooner where a push is not linked. */
int64_t twi_sleep_kernel_ns(const struct twi_worker *worker, unsigned left, int64_t until_ns)
{
	const struct twi_clock_ops *ops = worker->clock->ops;
	bool own = ops->futex_until_ns == NULL;
	int64_t kernel_ns = own ? until_ns : ops->futex_until_ns(worker->clock, until_ns);
	int64_t again_ns;

	if (TWI_LIKELY((left & (TWI_LEFT_CUT | TWI_LEFT_HIDDEN)) == 0))
		return kernel_ns;
	again_ns = own ? twi_clock_now_ns(worker->clock) + SECOND_LOOK_NS
		       : twi_until_ns(SECOND_LOOK_NS);
	return sooner_ns(again_ns, kernel_ns);
}

/* From when on the worker spins; it may never come. */
static int64_t spin_begin_ns(const struct twi_worker *worker, int64_t until_ns)
{
	if (worker->clock->ops->moved || until_ns == INT64_MAX)
		return until_ns;
	return until_ns - worker->spin_ns;
}

static void park_spin(struct twi_worker *worker, int64_t until_ns)
{
	int64_t begin_ns = spin_begin_ns(worker, until_ns);
	int64_t now_ns;

	while (twi_park_undisturbed(&worker->park) &&
	       (now_ns = twi_clock_now_ns(worker->clock)) >= begin_ns && now_ns < until_ns)
		TWI_PAUSE();
}

/* As the clock has it; sooner where a push is not linked. */
static void park_wait(struct twi_worker *worker, unsigned left, int64_t until_ns)
{
	const struct twi_clock_ops *ops = worker->clock->ops;
	bool again = (left & (TWI_LEFT_CUT | TWI_LEFT_HIDDEN)) != 0;

	twi_count_add(&worker->park_count, 1);
	if (ops->wait != NULL)
		ops->wait(worker->clock, &worker->park, until_ns,
			  again ? SECOND_LOOK_NS : INT64_MAX);
	else
		twi_park_wait(&worker->park, twi_sleep_kernel_ns(worker, left, until_ns));
}

/* Why the sleep until then has ended, that began then. */
static enum twi_wake wake_cause(struct twi_worker *worker, int64_t from_ns, int64_t until_ns)
{
	int64_t now_ns = twi_clock_now_ns(worker->clock);

	if (now_ns >= until_ns)
		return TWI_WAKE_DEADLINE;
	if (!twi_worker_open(worker) || ticket_waits(worker, TWI_LEFT_NOTHING))
		return TWI_WAKE_CALL;
	if (twi_park_undisturbed(&worker->park))
		return TWI_WAKE_OTHER;
	return worker->clock->ops->moved && now_ns != from_ns ? TWI_WAKE_CALL : TWI_WAKE_PRODUCER;
}

static void park(struct twi_worker *worker, unsigned left, int64_t until_ns)
{
	int64_t begin_ns = spin_begin_ns(worker, until_ns);
	int64_t from_ns = twi_clock_now_ns(worker->clock);
	bool slept = worker->spin_ns == 0 || from_ns < begin_ns;
	enum twi_wake cause;

	TWI_PROBE2(park, worker, until_ns);
	if (slept)
		park_wait(worker, left, begin_ns);
	if (worker->spin_ns != 0)
		park_spin(worker, until_ns);
	cause = wake_cause(worker, from_ns, until_ns);
	TWI_PROBE2(wake, worker, cause);
	if (slept)
		twi_count_add(&worker->wake_count[cause], 1);
}

unsigned twi_sleep_hidden(const struct twi_worker *worker)
{
	return worker->barrier_failed ? TWI_LEFT_HIDDEN : TWI_LEFT_NOTHING;
}

/* One more turn for what came before we spoke. */
static TWI_WORKER_ONLY unsigned last_turn(struct twi_worker *worker, unsigned left)
{
	left = twi_lanes_idle(worker) ? left : twi_worker_turn(worker);
	return left | twi_sleep_hidden(worker);
}

void twi_worker_sleep(struct twi_worker *worker, unsigned left)
{
	int64_t said_ns = twi_sleep_say(worker);
	int64_t until_ns;

	left = last_turn(worker, left);
	until_ns = sooner_ns(twi_worker_boundary_ns(worker, twi_wheel_next_due(worker->wheel)),
			     said_ns);
	if (!stay_awake(worker, left, until_ns))
		park(worker, left, until_ns);
	park_take_back(worker);
}
