/* SPDX-License-Identifier: MIT */
/*
 * The worker's sleep. It lasts until the earliest due tick in the wheel. It is shorter if the
 * worker could otherwise miss something.
 *
 * Protocol (E8). The sleeper publishes that it parks, and the time wake_before_ns: a timeout with
 * an earlier deadline must wake it. Then it checks whether ingress is empty, then every other
 * reason to stay awake, and waits. A producer pushes, then loads wake_before_ns. This load is all
 * that a schedule pays for the protocol. All these accesses are sequentially consistent. So either
 * the sleeper sees the push, or the producer sees the published deadline, and wakes the sleeper if
 * the timeout is due earlier.
 *
 * Busy lanes. A sequentially consistent push costs a locked instruction on the hot path. Therefore
 * a lane that brings many entries at once is marked (unfenced; a mark is never taken back). From
 * then on its producer raises the tail of its ring by a release store before it loads
 * wake_before_ns. The load may come before other threads see the store. So, if a lane is marked,
 * the sleeper makes a barrier in all threads after it publishes and before it looks at the rings
 * (thread/barrier.h). In each producer the barrier takes effect at some point between two
 * instructions. If it falls after the store, the sleeper sees the store. If it falls before the
 * store, it also falls before the load, which then sees the values published before the barrier.
 *
 * A producer that does not see its lane's mark yet pushes by a sequentially consistent exchange.
 * Only the sleeper itself sets marks. So it knows of a mark before any push is made without a
 * fence. A mark that is set in the last turn before the sleep comes after the barrier. That is safe
 * because the mark is a release store, which the producer acquires. So the producer sees the values
 * published before the mark.
 *
 * The protocol also holds for a thread that pushes nothing and relies on another thread's push.
 * That is a thread that reschedules a timeout to an earlier deadline while the timeout is in a
 * ring, or queued already. Such a thread has acquired that push before it loads wake_before_ns:
 * through the handle that it was given, or through the order of changes of the deadline
 * (api/reschedule.c). If the barrier fell after the push in the pushing thread, the sleeper sees
 * the push, takes the node in one more turn, and finds the deadline. If the barrier fell before the
 * push, the values were published before the push, and so before the load.
 *
 * The barrier may fail, because a filter of system calls may be installed later. Then the sleeper
 * may not see a push: it is hidden. So until a barrier succeeds, each sleep is short, and a second
 * look follows. The other reasons to wake up (units, tickets, stop and clocks) do not depend on the
 * barrier, because they are sequentially consistent.
 *
 * If the sleeper sees pushes, it takes them in one more turn. Then it need not look again, because
 * a thread that pushes later compares its deadline with the published one. After that turn the
 * first due tick may be earlier than the published one. Then the worker sleeps until that tick, and
 * until then some wake-ups are superfluous. If the first due tick is later, the worker wakes up at
 * the published time.
 *
 * A push that is not linked yet can be neither taken nor compared, because its producer may have
 * loaded wake_before_ns before we published. So the sleep is short, and a second look follows. The
 * worker never spins on such a push.
 *
 * An engine that spins makes no system call for the last part of its sleep. The state word of the
 * park is PARKED as before, and the worker watches it instead of the futex. A waker treats a
 * spinning worker like a sleeping one, so all of the above holds for both.
 *
 * If a pushed node is not needed before the sleep ends, it stays where the push put it: in the
 * ring, or in the ingress or the cancel queue. At the memory bound (TWI_UNITS_MAX) the worker is
 * woken, however far away its next due tick is.
 */
#include "turn/sleep.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "expiry/wall.h"
#include "ingress/push.h"
#include "ingress/rest.h"
#include "thread/barrier.h"
#include "thread/futex.h"
#include "worker/left.h"
#include "worker/role.h"

/*
 * The length of a sleep after which the worker looks again, because a push is not linked yet or may
 * be hidden.
 */
#define SECOND_LOOK_NS INT64_C(1000000)

/*
 * Returns whether a flush waits for a turn. While a push that is not linked yet cuts a queue
 * (TWI_LEFT_CUT), tickets must wait: another look at once would find nothing new.
 */
static bool ticket_waits(const struct twi_worker *worker, unsigned left)
{
	/*
	 * E8: a flusher takes its ticket before it checks whether the worker sleeps. RELAXED: only
	 * the worker writes flush_done.
	 */
	return (left & TWI_LEFT_CUT) == 0 &&
	       twi_load_seq_cst(&worker->flush_wanted) != twi_load_relaxed(&worker->flush_done);
}

bool twi_sleep_rejected(const struct twi_worker *worker, unsigned left)
{
	/* E8: each of these loads is part of the last look before the sleep. */
	return (left & TWI_LEFT_MORE) != 0 || !twi_worker_open(worker) ||
	       ticket_waits(worker, left) || twi_wall_stepped(worker) ||
	       twi_load_seq_cst(&worker->units_pending) >= TWI_UNITS_MAX;
}

static bool stay_awake(const struct twi_worker *worker, unsigned left, int64_t until_ns)
{
	return twi_sleep_rejected(worker, left) || twi_clock_now_ns(worker->clock) >= until_ns;
}

static int64_t sooner_ns(int64_t one_ns, int64_t other_ns)
{
	return one_ns < other_ns ? one_ns : other_ns;
}

/*
 * Makes the barrier for the lanes that push without a fence, and for those that rest from now on
 * (ingress/rest.h).
 */
static TWI_WORKER_ONLY void barrier_make(struct twi_worker *worker)
{
	struct twi_resting resting;
	bool failed = false;

	twi_lanes_rest(worker, &resting);
	if (twi_barrier_able() && (worker->unfenced || resting.count != 0))
		/*
		 * E8: a barrier in all threads, which must come after we publish and before we look
		 * at the rings.
		 */
		failed = !twi_barrier_all();
	worker->barrier_failed = failed && worker->unfenced;
	twi_lanes_rested(worker, &resting, failed);
}

/*
 * Publishes that the worker sleeps, and wake_before_ns. A timeout that is due at the same tick as
 * the first one in the wheel, or later, must not wake the worker. So wake_before_ns is the
 * beginning of that tick. Returns the time at which the first timeout is due. Each of the two times
 * is replaced by given_up_ns (ingress/reclaim.h), if that is earlier.
 */
int64_t twi_sleep_publish(struct twi_worker *worker)
{
	uint64_t next = twi_wheel_next_due(worker->wheel);
	uint64_t before = next == TWI_TICK_NEVER ? next : next - 1;

	if (worker->given_up_ns <= twi_clock_now_ns(worker->clock))
		worker->given_up_ns = INT64_MAX;
	twi_park_prepare(&worker->park);
	/*
	 * E8: this value must be stored before the look at ingress. Pairs with the load in
	 * schedule. Otherwise the sleeper could miss a push whose producer misses the published
	 * time, and the wake-up would be lost.
	 */
	twi_store_seq_cst(
		&worker->wake_before_ns,
		sooner_ns(twi_wheel_boundary_ns(worker->wheel, before), worker->given_up_ns));
	barrier_make(worker);
	return sooner_ns(twi_wheel_boundary_ns(worker->wheel, next), worker->given_up_ns);
}

static void park_take_back(struct twi_worker *worker)
{
	/* RELAXED: a producer that still sees the old value causes one superfluous wake-up. */
	twi_store_relaxed(&worker->wake_before_ns, TWI_WAKE_NOBODY);
	twi_park_done(&worker->park);
}

/*
 * Translates `until_ns` into the kernel's time. Returns an earlier time if a push is not linked
 * yet, or may be hidden.
 */
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

/* Returns the time from which the worker spins. If the worker must not spin, returns `until_ns`. */
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

/*
 * Waits by the clock's own wait function, if there is one. Returns sooner if a push is not linked
 * yet, or may be hidden.
 */
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

/* Returns why the sleep from `from_ns` until `until_ns` has ended. */
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

void twi_sleep_until(struct twi_worker *worker, unsigned left, int64_t published_ns)
{
	int64_t until_ns =
		sooner_ns(twi_wheel_boundary_ns(worker->wheel, twi_wheel_next_due(worker->wheel)),
			  published_ns);

	if (!stay_awake(worker, left, until_ns))
		park(worker, left, until_ns);
	park_take_back(worker);
}
