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
 * queue, up to the memory bound (TWI_UNSEEN_MAX), which wakes the worker however far its next tick.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "base/tick.h"
#include "mech/futex.h"

/* How soon to look again at a push that is not linked. */
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

static void park(struct twi_worker *worker, unsigned left, int64_t until_ns)
{
	int64_t begin_ns = spin_begin_ns(worker, until_ns);

	if (worker->spin_ns == 0 || twi_clock_now_ns(worker->clock) < begin_ns)
		park_wait(worker, left, begin_ns);
	if (worker->spin_ns != 0)
		park_spin(worker, until_ns);
}

/* One more turn for what came before we spoke. */
static TWI_WORKER_ONLY unsigned last_turn(struct twi_worker *worker, unsigned left)
{
	return twi_lanes_idle(worker) ? left : twi_worker_turn(worker);
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
