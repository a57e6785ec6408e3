/* SPDX-License-Identifier: MIT */
/*
 * Loop mode: the caller's event loop is the worker. The loop polls, and a poll is one turn. The
 * loop sleeps by its own means, for example in epoll_wait, with the engine's descriptor among
 * others.
 *
 * The descriptor is one timer of the kernel (thread/timer_fd.h). The owner sets it to the time at
 * which it must poll next. A waker sets the timer to "now", instead of waking a futex. No thread
 * reads the descriptor, so it stays readable until the owner has polled and set the timer again.
 *
 * Protocol (E8), as in sleep.c. After its turn the owner publishes that it sleeps, and a time: a
 * timeout with an earlier deadline must wake it. Then it looks at ingress, and takes one more turn
 * if it sees a push. Then it checks all other reasons to stay awake. If there is one, it sets the
 * timer to "now", otherwise to the time of the next poll. So either the owner sees a push, or the
 * pushing thread sees the published deadline and wakes the owner.
 *
 * If no descriptor was made, nothing is published, and no thread wakes the owner. The same holds
 * while the turn of a scaled kind makes several polls one after the other (scaled/turn.c).
 */
#include "turn/poll.h"

#include "base/atomic.h"
#include "base/probe.h"
#include "base/tick.h"
#include "ingress/lanes.h"
#include "thread/fork.h"
#include "turn/finish.h"
#include "turn/fresh.h"
#include "turn/sleep.h"
#include "turn/snapshot.h"
#include "turn/timer.h"
#include "turn/turn.h"
#include "worker/role.h"
#include "worker/ticket.h"

#include <errno.h>
#include <pthread.h>

/*
 * Ends a poll: publishes when the next poll is needed, and sets the timer. Afterwards the loop may
 * sleep.
 */
static TWI_WORKER_ONLY unsigned rest(struct twi_worker *worker, int64_t now_ns, unsigned left)
{
	int64_t published_ns;

	if (!twi_timer_made(worker) || worker->polls_follow)
		return left;
	published_ns = twi_sleep_publish(worker);
	worker->sleep_published = true;
	if (!twi_lanes_idle(worker) && (left & TWI_LEFT_MORE) == 0)
		left = twi_worker_turn_at(worker, now_ns);
	left |= twi_sleep_hidden(worker);
	twi_timer_arm(worker, published_ns, left);
	return left;
}

/* Begins a poll. No producer needs to wake the owner until the poll ends. */
static TWI_WORKER_ONLY void awake(struct twi_worker *worker)
{
	bool woken;

	if (!worker->sleep_published)
		return;
	worker->sleep_published = false;
	/* RELAXED: a producer that still sees the old value causes one superfluous wake-up. */
	twi_store_relaxed(&worker->wake_before_ns, TWI_WAKE_NOBODY);
	woken = twi_park_take_back(&worker->park);
	TWI_PROBE2(wake, worker, woken ? TWI_WAKE_PRODUCER : TWI_WAKE_DEADLINE);
	if (!woken)
		return;
	worker->kicks_expected++;
	worker->timer_ns = TWI_TIMER_UNKNOWN;
}

static TWI_WORKER_ONLY void turn_take(struct twi_worker *worker, int64_t now_ns)
{
	/* E8: as in turn/thread.c. */
	uint32_t ticket = twi_load_acquire(&worker->flush_wanted);
	unsigned left;

	twi_snapshot_look(worker);
	left = twi_worker_turn_at(worker, now_ns);
	if ((left & (TWI_LEFT_MORE | TWI_LEFT_CUT | TWI_LEFT_BUDGET)) == 0)
		twi_flush_serve(worker, ticket);
	worker->poll_left = rest(worker, now_ns, left);
	worker->direct_from_ns = INT64_MIN;
	twi_fresh_update(worker);
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
	/* RELAXED, both loads: only the worker writes these counters. */
	return twi_load_relaxed(&worker->expired_count) +
	       twi_load_relaxed(&worker->periodic_run_count);
}

/*
 * Sets how far the poll may go. If the poll is bounded in time, its budget is one callback at a
 * time. After each callback budget_renew (expiry/expire.c) reads the clock, and allows one more if
 * time is left.
 */
static TWI_WORKER_ONLY void budget_set(struct twi_worker *worker, uint64_t budget, int64_t until_ns)
{
	/* RELAXED: only the worker writes expired_count. */
	uint64_t expired = twi_load_relaxed(&worker->expired_count);

	worker->expire_stop =
		budget == 0 || budget > UINT64_MAX - expired ? UINT64_MAX : expired + budget;
	worker->expire_until_ns = until_ns;
	worker->expire_end = worker->expire_stop;
	if (until_ns != INT64_MAX)
		worker->expire_stop = expired + 1;
}

int64_t twi_worker_poll(struct twi_worker *worker, int64_t now_ns, uint64_t budget,
			int64_t until_ns)
{
	uint64_t before = runs_begun(worker);
	struct twi_thread *self = twi_thread();
	void *outer = self->worker;
	int error;

	twi_worker_enter(worker);
	budget_set(worker, budget, until_ns);
	pthread_cleanup_push(poll_abandoned, worker);
	error = open_poll(worker, now_ns);
	pthread_cleanup_pop(0);
	/*
	 * If the engine is finished, another thread may already have freed it, so it must not be
	 * touched. If this poll was made in a callback of another engine, the thread is that
	 * engine's worker again from here on.
	 */
	self->worker = outer == worker ? NULL : outer;
	return error != 0 ? error : (int64_t)(runs_begun(worker) - before);
}

/*
 * Publishes that the owner sleeps, and sets the timer, as `rest` does at the end of a poll. Takes
 * no turn: if ingress holds a push, the descriptor becomes readable, so that the owner polls.
 */
static TWI_WORKER_ONLY void first_rest(struct twi_worker *worker)
{
	int64_t published_ns = twi_sleep_publish(worker);
	unsigned left = twi_sleep_hidden(worker);

	worker->sleep_published = true;
	twi_fresh_update(worker);
	twi_timer_arm(worker, published_ns, twi_lanes_idle(worker) ? left : TWI_LEFT_MORE);
}

int twi_poll_fd_make(struct twi_worker *worker)
{
	int fd;

	if (twi_timer_made(worker))
		return 0;
	/*
	 * If a futex cannot wait by this clock, the timer counts CLOCK_BOOTTIME, like the timer of
	 * a park on descriptors (thread/park_fd.h).
	 */
	fd = twi_timer_fd_open(worker->clock->ops->futex_until_ns != NULL ? CLOCK_MONOTONIC
									  : CLOCK_BOOTTIME);
	if (fd < 0)
		return fd;
	worker->park.timer_fd = fd;
	worker->timer_ns = TWI_TIMER_UNKNOWN;
	/* Inside a poll the timer need not be set here, because the end of the poll sets it. */
	if (twi_thread()->worker != worker)
		first_rest(worker);
	return 0;
}
