/* SPDX-License-Identifier: MIT */
/*
 * Loop mode: the caller's event loop is the worker. It polls, and a poll is one turn. It sleeps by
 * its own means, on our descriptor among others.
 *
 * The descriptor is one timer of the kernel (mech/timer_fd.h). The owner sets it to the time at
 * which it must poll next. A waker sets it to "now", instead of waking a futex. No thread reads it,
 * so it stays readable until the owner has polled and sets it anew.
 *
 * Protocol (E8), as in sleep.c. After its turn the owner publishes that it sleeps, and before which
 * deadline it must be woken. Then it looks at ingress, and takes one more turn if it sees a push.
 * Then it looks at all other reasons and sets the timer: to "now" if there is a reason. So either
 * it sees a push, or the pushing thread sees the published deadline and wakes it.
 *
 * Two threads may set the timer, and the last setting counts. The owner's setting loses no wake. A
 * waker first takes the park's state word from PARKED to AWAKE, and then sets the timer. The owner
 * first sets the timer, and then looks at the state word. If that is AWAKE, the owner sets "now"
 * again. The kernel has both settings in one order: if the waker's came first, the owner sees its
 * AWAKE.
 *
 * A waker's late setting must be seen as well, because the owner sets nothing while it takes the
 * timer for right. A poll that finds the state word AWAKE expects one more setting by a waker.
 * Until all expected settings are counted, the timer is not known to be right, so each poll sets
 * it.
 *
 * Both arguments need only two facts: the kernel makes its settings under a lock, one after the
 * other, and a system call happens where the program has it. So state word and count are relaxed.
 * After a later setting of its own, the owner sees all that a waker wrote before the waker's
 * setting. If the owner sees a count before its own setting, the counted setting came before it.
 * Otherwise, by the lock, the owner's look would come before the waker's count, and could not see
 * it.
 *
 * If the owner schedules a timeout between polls, straight into the wheel, and earlier than it has
 * published, it moves the timer at once. That costs a schedule one load of a word that only the
 * owner writes. It costs a system call only if the first of all timeouts changes. The timer is only
 * moved nearer in this case; the next poll moves it back.
 *
 * Without a descriptor nothing is published, and no thread wakes the owner.
 */
#include "worker/direct.h"
#include "worker/visit.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "mech/fork.h"

#include <errno.h>
#include <pthread.h>

/* The timer's setting is not known. */
#define TIMER_UNKNOWN INT64_MIN

static bool fd_made(const struct twi_worker *worker)
{
	return worker->park.timer_fd != TWI_TIMER_FD_NONE;
}

void twi_fresh_flush(struct twi_worker *worker)
{
	for (uint32_t i = 0; i < worker->fresh_count; i++)
		twi_wheel_insert(worker->wheel, worker->fresh[i]);
	worker->fresh_count = 0;
}

int64_t twi_poll_due_ns(struct twi_worker *worker)
{
	twi_fresh_flush(worker);
	if (twi_wheel_owes(worker->wheel))
		return 0;
	return twi_worker_boundary_ns(worker, twi_wheel_next_due(worker->wheel));
}

static TWI_WORKER_ONLY void timer_set(struct twi_worker *worker, int64_t kernel_ns)
{
	/* RELAXED: by the kernel's order the counted settings come before ours, see above. */
	uint32_t kicks = twi_load_relaxed(&worker->park.kicks);

	if (kernel_ns == worker->timer_ns)
		return;
	twi_timer_fd_set(worker->park.timer_fd, kernel_ns);
	TWI_TEST_POINT("poll:set");
	/* RELAXED: the kernel's order of the settings is enough, see above. */
	if (twi_load_relaxed(&worker->park.word) == TWI_AWAKE) {
		twi_timer_fd_set(worker->park.timer_fd, TWI_TIMER_FD_NOW);
		kernel_ns = TWI_TIMER_FD_NOW;
	}
	worker->armed_ns = kernel_ns;
	worker->timer_ns = kicks == worker->kicks_expected ? kernel_ns : TIMER_UNKNOWN;
}

/*
 * Whether the clock is moved by hand. The kernel cannot wait for such a clock, so the thread that
 * moves it wakes us.
 */
static bool hand_moved(int64_t until_ns, int64_t kernel_ns)
{
	return kernel_ns == INT64_MAX && until_ns != INT64_MAX;
}

/* Sets the timer. Must come after the owner has published that it sleeps until `said_ns`. */
static TWI_WORKER_ONLY void timer_arm(struct twi_worker *worker, int64_t said_ns, unsigned left)
{
	int64_t due_ns = twi_poll_due_ns(worker);
	int64_t until_ns = due_ns < said_ns ? due_ns : said_ns;
	int64_t kernel_ns = twi_sleep_kernel_ns(worker, left, until_ns);

	if (twi_sleep_refused(worker, left) ||
	    (hand_moved(until_ns, kernel_ns) && twi_clock_now_ns(worker->clock) >= until_ns))
		kernel_ns = TWI_TIMER_FD_NOW;
	TWI_PROBE2(park, worker, kernel_ns == TWI_TIMER_FD_NOW ? 0 : until_ns);
	timer_set(worker, kernel_ns);
}

/* The end of a poll, after which the loop may sleep. */
static TWI_WORKER_ONLY unsigned rest(struct twi_worker *worker, int64_t now_ns, unsigned left)
{
	int64_t said_ns;

	if (!fd_made(worker))
		return left;
	said_ns = twi_sleep_say(worker);
	worker->said = true;
	if (!twi_lanes_idle(worker) && (left & TWI_LEFT_MORE) == 0)
		left = twi_worker_turn_at(worker, now_ns);
	left |= twi_sleep_hidden(worker);
	timer_arm(worker, said_ns, left);
	return left;
}

/* The begin of a poll. No wake is needed until the poll ends. */
static TWI_WORKER_ONLY void awake(struct twi_worker *worker)
{
	bool woken;

	if (!worker->said)
		return;
	worker->said = false;
	/* RELAXED: a producer that still sees the old value wakes us once too often. */
	twi_store_relaxed(&worker->wake_before_ns, TWI_WAKE_NOBODY);
	woken = twi_park_take_back(&worker->park);
	TWI_PROBE2(wake, worker, woken ? TWI_WAKE_PRODUCER : TWI_WAKE_DEADLINE);
	if (!woken)
		return;
	worker->kicks_expected++;
	worker->timer_ns = TIMER_UNKNOWN;
}

static TWI_WORKER_ONLY void turn_take(struct twi_worker *worker, int64_t now_ns)
{
	/* E8: as in loop.c. */
	uint32_t ticket = twi_load_acquire(&worker->settle_wanted);
	unsigned left;

	twi_visit_look(worker);
	left = twi_worker_turn_at(worker, now_ns);
	if ((left & (TWI_LEFT_MORE | TWI_LEFT_CUT | TWI_LEFT_BUDGET)) == 0)
		twi_settle_serve(worker, ticket);
	worker->poll_left = rest(worker, now_ns, left);
	worker->direct_from_ns = INT64_MIN;
	twi_fresh_judge(worker);
}

static void poll_abandoned(void *argument)
{
	twi_worker_died(argument);
}

/* Finishes the engine if it was stopped. Returns 0, -ECHILD in a forked child, or -ESHUTDOWN. */
static int end_look(struct twi_worker *worker)
{
	if (worker->fork_epoch != twi_fork_epoch)
		return -ECHILD;
	if (twi_worker_open(worker))
		return 0;
	(void)twi_worker_finish(worker, INT64_MAX);
	return -ESHUTDOWN;
}

static TWI_WORKER_ONLY int open_poll(struct twi_worker *worker, int64_t now_ns)
{
	int error = end_look(worker);

	if (error != 0)
		return error;
	awake(worker);
	twi_fresh_flush(worker);
	turn_take(worker, now_ns);
	return end_look(worker);
}

static uint64_t runs_begun(const struct twi_worker *worker)
{
	/* RELAXED, both: only the worker writes them. */
	return twi_load_relaxed(&worker->expired_count) +
	       twi_load_relaxed(&worker->periodic_run_count);
}

int64_t twi_worker_poll(struct twi_worker *worker, int64_t now_ns, uint64_t budget)
{
	/* RELAXED: only the worker writes it. */
	uint64_t expired = twi_load_relaxed(&worker->expired_count);
	uint64_t before = runs_begun(worker);
	struct twi_thread *self = twi_thread();
	void *outer = self->worker;
	int error;

	twi_worker_enter(worker);
	worker->expire_stop =
		budget == 0 || budget > UINT64_MAX - expired ? UINT64_MAX : expired + budget;
	pthread_cleanup_push(poll_abandoned, worker);
	error = open_poll(worker, now_ns);
	pthread_cleanup_pop(0);
	/*
	 * If the engine is over, it may be another thread's by now. If this poll is in a callback
	 * of another engine, the thread is that engine's worker again.
	 */
	self->worker = outer == worker ? NULL : outer;
	return error != 0 ? error : (int64_t)(runs_begun(worker) - before);
}

/* Like rest, without a turn. If there is a push in ingress, the descriptor becomes readable. */
static TWI_WORKER_ONLY void first_rest(struct twi_worker *worker)
{
	int64_t said_ns = twi_sleep_say(worker);
	unsigned left = twi_sleep_hidden(worker);

	worker->said = true;
	twi_fresh_judge(worker);
	timer_arm(worker, said_ns, twi_lanes_idle(worker) ? left : TWI_LEFT_MORE);
}

int twi_poll_fd_make(struct twi_worker *worker)
{
	int fd;

	if (fd_made(worker))
		return 0;
	/*
	 * If no futex counts the clock's time, the timer counts CLOCK_BOOTTIME, as it does for a
	 * park on descriptors.
	 */
	fd = twi_timer_fd_open(worker->clock->ops->futex_until_ns != NULL ? CLOCK_MONOTONIC
									  : CLOCK_BOOTTIME);
	if (fd < 0)
		return fd;
	worker->park.timer_fd = fd;
	worker->timer_ns = TIMER_UNKNOWN;
	/* Inside a poll, the end of the poll does this. */
	if (twi_thread()->worker != worker)
		first_rest(worker);
	return 0;
}

void twi_poll_nearer(struct twi_worker *worker, int64_t deadline_ns)
{
	const struct twi_wheel *wheel = worker->wheel;
	uint64_t tick = twi_due_tick(twi_since(deadline_ns, wheel->epoch_ns), wheel->tick_ns);
	int64_t due_ns = tick <= wheel->horizon ? 0 : twi_worker_boundary_ns(worker, tick);
	int64_t kernel_ns = twi_sleep_kernel_ns(worker, TWI_LEFT_NOTHING, due_ns);

	if (hand_moved(due_ns, kernel_ns) && twi_clock_now_ns(worker->clock) >= due_ns)
		kernel_ns = TWI_TIMER_FD_NOW;
	/* The timer may be set earlier than was published, because it had more reasons. */
	if (kernel_ns < worker->armed_ns)
		timer_set(worker, kernel_ns);
	/*
	 * RELAXED: a producer that sees the new value need not wake us, because the timer is set.
	 * One that sees the old value wakes us once too often.
	 */
	twi_store_relaxed(&worker->wake_before_ns, twi_worker_boundary_ns(worker, tick - 1));
	twi_fresh_judge(worker);
}
