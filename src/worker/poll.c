/* SPDX-License-Identifier: MIT */
/*
 * Loop mode: the caller's event loop is the worker. It polls, which is one turn, and sleeps in its
 * own way, on a descriptor of ours among others.
 *
 * The descriptor is one timer of the kernel (mech/timer_fd.h). The owner sets it to when the next
 * poll is needed; a waker sets it to "now", in place of the futex that it would wake. Nobody reads
 * it, so it stays readable until the owner, which then has polled, sets it anew.
 *
 * Protocol (E8), as in sleep.c: after its turn the owner says that it sleeps and before which
 * deadline it has to be woken, looks at ingress (one more turn for what it sees), then at all other
 * reasons, and sets the timer: to "now", where there is a reason. So either it sees a push, or the
 * pusher sees what was said, and wakes.
 *
 * Two set the timer, and the last one counts. No wake is lost to the owner's setting: a waker takes
 * the word from PARKED to AWAKE first and sets then, the owner sets first and looks at the word then;
 * where that is AWAKE it sets "now" again. The kernel has both settings in one order: if the waker's
 * came first, the owner sees its AWAKE. Nor does a late setting go unseen by the owner, which sets
 * nothing while it takes the timer for right: a poll that finds the word AWAKE expects one setting
 * more, and until all those expected are counted the timer is not known to be right, and is set by
 * each poll.
 *
 * For both it is enough that the kernel makes its settings under a lock, one after the other, and that
 * a system call is where the program has it: word and count are relaxed. What a waker does before its
 * setting is seen by what the owner does after a later one of its own. And a count that the owner sees
 * before its setting is of a setting that came before: had the waker's come later, the owner's look
 * would come before the waker's count, by the lock, and could not have seen it.
 *
 * What the owner schedules between polls, straight into the wheel, and earlier than was said, moves
 * the timer at once: that is one look at the owner's own word per schedule, and a system call where
 * the first timeout of all changes. Timers are only moved nearer that way; the next poll moves them
 * back.
 *
 * Without a descriptor nothing is said and nobody wakes.
 */
#include "worker/direct.h"
#include "worker/visit.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "mech/fork.h"

#include <errno.h>
#include <pthread.h>

/* What the timer is set to is not known. */
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
	/* RELAXED: settings that are counted come before ours, by the kernel's order, see above. */
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

/* The kernel cannot wait for a clock that is moved by hand: who moves it wakes us. */
static bool hand_moved(int64_t until_ns, int64_t kernel_ns)
{
	return kernel_ns == INT64_MAX && until_ns != INT64_MAX;
}

/* After it was said that we sleep until `said_ns`. */
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

/* The end of a poll: the loop may sleep. */
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

/* The begin of a poll: no wake is needed until it ends. */
static TWI_WORKER_ONLY void awake(struct twi_worker *worker)
{
	bool woken;

	if (!worker->said)
		return;
	worker->said = false;
	/* RELAXED: who still sees the old value wakes once too often. */
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

/* Ends the engine when it is over. 0, or how. */
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
	/* RELAXED, both: the worker's own. */
	return twi_load_relaxed(&worker->expired_count) +
	       twi_load_relaxed(&worker->periodic_run_count);
}

int64_t twi_worker_poll(struct twi_worker *worker, int64_t now_ns, uint64_t budget)
{
	/* RELAXED: the worker's own. */
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
	/* Over, the engine may be somebody else's. In a callback of another engine: its worker again. */
	self->worker = outer == worker ? NULL : outer;
	return error != 0 ? error : (int64_t)(runs_begun(worker) - before);
}

/* As rest, without a turn: what is in ingress makes it readable. */
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
	/* What no futex counts, the timer of a park on descriptors does: of the same clock. */
	fd = twi_timer_fd_open(worker->clock->ops->futex_until_ns != NULL ? CLOCK_MONOTONIC
									  : CLOCK_BOOTTIME);
	if (fd < 0)
		return fd;
	worker->park.timer_fd = fd;
	worker->timer_ns = TIMER_UNKNOWN;
	/* Inside a poll its end does the rest. */
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
	/* What the timer was set to may be earlier than what was said: it had more reasons. */
	if (kernel_ns < worker->armed_ns)
		timer_set(worker, kernel_ns);
	/*
	 * RELAXED: who sees the new value needs no wake, since the timer is set; who sees the old one
	 * wakes once too often.
	 */
	twi_store_relaxed(&worker->wake_before_ns, twi_worker_boundary_ns(worker, tick - 1));
	twi_fresh_judge(worker);
}
