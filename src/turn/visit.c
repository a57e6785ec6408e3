/* SPDX-License-Identifier: MIT */
#include "turn/visit.h"

#include "thread/futex.h"
#include "worker/life.h"
#include "worker/ticket.h"

#include <errno.h>

static TWI_WORKER_ONLY void lane_inbox(const struct twi_lane *lane, struct twi_inbox *inbox)
{
	uint64_t pushed = twi_ring_pushed(&lane->ring);
	_Atomic uintptr_t *entry = twi_ring_entries(&lane->ring);

	for (uint64_t at = twi_ring_taken(&lane->ring_out); at != pushed; at++) {
		inbox->ring++;
		inbox->ring_cancelled += twi_ring_entry(entry, at) & TWI_ENTRY_CANCELLED;
	}
	inbox->linked += twi_mpsc_count_sc(&lane->ingress_out);
	inbox->linked_cancelled += twi_mpsc_count_sc(&lane->cancelled_out);
}

static TWI_WORKER_ONLY void inbox_look(const struct twi_worker *worker, struct twi_inbox *inbox)
{
	/* RELAXED: if a lane is seen too late, the next visit sees it. */
	uint64_t used = twi_load_relaxed(&worker->lanes_used);

	for (; used != 0; used &= used - 1, inbox->lanes++)
		lane_inbox(&worker->lane[__builtin_ctzll(used)], inbox);
}

static void node_sight(struct twi_node *node, struct twi_sight *ret)
{
	ret->node = node;
	/* RELAXED: the node rests in the wheel, cancelled, so its state word does not change. */
	ret->birth = twi_word_birth(twi_load_relaxed(&node->word));
	ret->kind = twi_node_kind(node);
	ret->arg = twi_node_arg(node);
	ret->deadline_ns = twi_node_deadline_ns(node);
}

/* Surveys the timeouts outside the wheel. There are some in a callback, and between two polls. */
static TWI_WORKER_ONLY void outside_look(const struct twi_worker *worker, struct twi_visit *ret)
{
	for (size_t at = worker->due_at; at < worker->due_count; at++, ret->due++)
		twi_survey_node(&ret->wheel, worker->due[at]);
	for (; ret->fresh < worker->fresh_count; ret->fresh++)
		twi_survey_node(&ret->wheel, worker->fresh[ret->fresh]);
}

void twi_visit_here(struct twi_worker *worker, struct twi_visit *ret)
{
	const struct twi_wheel *wheel = worker->wheel;

	twi_wheel_survey(wheel, twi_clock_now_ns(worker->clock), &ret->wheel);
	outside_look(worker, ret);
	ret->count = wheel->count;
	ret->tick = wheel->now;
	ret->next_due = twi_wheel_next_due(wheel);
	if (ret->wheel.first_cancelled != NULL)
		node_sight(ret->wheel.first_cancelled, &ret->cancelled);
	inbox_look(worker, &ret->inbox);
}

TWI_COLD void twi_visit_serve(struct twi_worker *worker)
{
	/*
	 * E71: acquires the place for the answer. Otherwise the worker could count into a place
	 * that is not zeroed yet.
	 */
	struct twi_visit *visit = twi_exchange_acquire(&worker->visit, NULL);

	if (visit == NULL)
		return;
	TWI_TEST_POINT("visit:taken");
	twi_visit_here(worker, visit);
	/* E71: releases the answer to the waiting thread. The last touch of it. */
	twi_store_release(&visit->done, true);
	twi_settle_notify(worker);
}

/* Waits until something changes. Returns 0, or -ESHUTDOWN if no worker will come, or -ETIMEDOUT. */
static int worker_await(struct twi_worker *worker, uint32_t epoch, int64_t until_ns)
{
	/*
	 * RELAXED: the thread that ends the wait changes first the life and then the epoch, as for
	 * settle.
	 */
	if (!twi_life_accepts(twi_load_relaxed(&worker->life)))
		return -ESHUTDOWN;
	TWI_TEST_POINT("visit:waiting");
	return twi_futex_wait(&worker->settle_epoch, epoch, until_ns) == -ETIMEDOUT ? -ETIMEDOUT
										    : 0;
}

/* Waits for the place, because one thread asks at a time. */
static int visit_place(struct twi_worker *worker, struct twi_visit *visit, int64_t until_ns)
{
	struct twi_visit *other;
	int error = 0;

	while (error == 0) {
		uint32_t epoch = twi_load_acquire(&worker->settle_epoch); /* E13: read first */

		other = NULL;
		/* E71: releases the place for the worker's answer. */
		if (twi_cas_release(&worker->visit, &other, visit))
			return 0;
		error = worker_await(worker, epoch, until_ns);
	}
	return error;
}

/* Withdraws the place. False if the worker has taken it before. */
static bool visit_withdraw(struct twi_worker *worker, struct twi_visit *visit)
{
	struct twi_visit *own = visit;

	/* RELAXED: the worker has not touched the place. */
	if (!twi_cas_relaxed(&worker->visit, &own, NULL))
		return false;
	twi_settle_notify(worker);
	return true;
}

static int visit_await(struct twi_worker *worker, struct twi_visit *visit, int64_t until_ns)
{
	bool under_way = false;
	int error = 0;

	for (;;) {
		uint32_t epoch = twi_load_acquire(&worker->settle_epoch); /* E13: read first */

		if (twi_load_acquire(&visit->done)) /* E71: acquires the answer */
			return 0;
		if (under_way)
			(void)twi_futex_wait(&worker->settle_epoch, epoch, INT64_MAX);
		else
			error = worker_await(worker, epoch, until_ns);
		if (error != 0 && visit_withdraw(worker, visit))
			return error;
		under_way = error != 0;
	}
}

int twi_visit_ask(struct twi_worker *worker, struct twi_visit *visit, int64_t until_ns)
{
	int error = visit_place(worker, visit, until_ns);

	if (error != 0)
		return error;
	TWI_TEST_POINT("visit:placed");
	/* E8: the reason must come before the wake. */
	(void)twi_fetch_add_seq_cst(&worker->settle_wanted, 1);
	twi_park_wake(&worker->park);
	return visit_await(worker, visit, until_ns);
}
