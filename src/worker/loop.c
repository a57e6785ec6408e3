/* SPDX-License-Identifier: MIT */
/*
 * The worker's life: turns, sleep between them, and the finish.
 *
 * Sleep. Until the next tick boundary, which is after now by construction: no busy loop. What may
 * cut it short (E8) is looked at once more after the worker said that it parks: the end of the
 * engine, somebody who wants it settled, producers who use up memory, a clock that was moved.
 */
#include "worker/worker.h"

#include "base/atomic.h"
#include "base/tick.h"
#include "mech/futex.h"
#include "mech/log.h"

static bool life_open(const struct twi_worker *worker)
{
	/* E8, E12: the last look before sleep is one of these. */
	return twi_life_accepts(twi_load_seq_cst(&worker->life));
}

/* All tickets up to `ticket` are served. */
static void settle_serve(struct twi_worker *worker, uint32_t ticket)
{
	/* RELAXED: one writer. */
	if (twi_load_relaxed(&worker->settle_done) == ticket)
		return;
	/* E13, pairs with settle: what the turn did is visible to who waited. */
	twi_store_release(&worker->settle_done, ticket);
	twi_futex_wake(&worker->settle_done);
}

static bool stay_awake(struct twi_worker *worker, int64_t until_ns)
{
	/* E8, all of them. */
	return !life_open(worker) ||
	       twi_load_seq_cst(&worker->settle_wanted) != twi_load_relaxed(&worker->settle_done) ||
	       twi_load_seq_cst(&worker->refills_unseen) >= TWI_UNSEEN_REFILLS_MAX ||
	       twi_clock_now_ns(worker->clock) >= until_ns;
}

static void sleep_until_next_tick(struct twi_worker *worker)
{
	struct twi_wheel *wheel = worker->wheel;
	int64_t until_ns =
		twi_absolute_ns(wheel->epoch_ns, twi_boundary_ns(wheel->now + 1, wheel->tick_ns));

	twi_park_prepare(&worker->park);
	if (stay_awake(worker, until_ns)) {
		twi_park_done(&worker->park);
		return;
	}
	twi_count_add(&worker->park_count, 1);
	twi_park_wait(&worker->park, worker->clock->ops->futex_until_ns(worker->clock, until_ns));
}

static void life_change(struct twi_worker *worker, uint32_t from, uint32_t to)
{
	/* E12. */
	(void)twi_cas_seq_cst(&worker->life, &from, to);
}

void twi_worker_enter(struct twi_worker *worker)
{
	worker->self = twi_thread();
	worker->self->worker = worker;
}

void twi_worker_run(struct twi_worker *worker)
{
	twi_worker_enter(worker);
	life_change(worker, TWI_LIFE_STARTING, TWI_LIFE_RUNNING);
	life_change(worker, TWI_LIFE_STOPPING_STARTING, TWI_LIFE_STOPPING);
	while (life_open(worker)) {
		/* E8, E13: the turn below serves who has taken a ticket by now. */
		uint32_t ticket = twi_load_seq_cst(&worker->settle_wanted);

		if (twi_worker_turn(worker))
			continue;
		settle_serve(worker, ticket);
		sleep_until_next_tick(worker);
	}
	twi_worker_finish(worker);
}

void twi_worker_died(struct twi_worker *worker)
{
	life_change(worker, TWI_LIFE_STARTING, TWI_LIFE_FAILED);
	life_change(worker, TWI_LIFE_RUNNING, TWI_LIFE_FAILED);
	life_change(worker, TWI_LIFE_STOPPING, TWI_LIFE_ORPHAN);
	twi_log(TW_LOG_ERROR, "a callback ended the worker's thread; the engine takes no more");
	twi_futex_wake(&worker->life);
	settle_serve(worker, twi_load_seq_cst(&worker->settle_wanted)); /* E8 */
}
