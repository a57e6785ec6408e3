/* SPDX-License-Identifier: MIT */
/*
 * The seats of an engine, one for each scaled kind, and the drives of their timers (protocol:
 * scaled.h).
 */
#include "base/atomic.h"
#include "base/test_point.h"
#include "memory/memory.h"
#include "scaled/scaled.h"

#include <tickwheel/timeout.h>

/* Claims a seat. Returns false if another kind has it. */
static bool seat_claim(struct twi_seat *seat, struct tw_scaled *scaled)
{
	struct tw_scaled *nobody = NULL;

	/* E151: acquires everything that the last owner did with the seat. */
	return twi_cas_acq_rel(&seat->owner, &nobody, scaled);
}

static struct twi_seat *free_seat(struct tw_scaled *scaled)
{
	/* E151: acquires the links of the list of seats. */
	struct twi_seat *seat = twi_load_acquire(&scaled->engine->seats);

	while (seat != NULL && !seat_claim(seat, scaled))
		seat = seat->next;
	return seat;
}

/* Makes a seat that the kind owns, without timers yet. */
static struct twi_seat *seat_make(struct tw_scaled *scaled)
{
	struct tw_engine *engine = scaled->engine;
	struct twi_seat *seat =
		twi_allocate_zeroed(engine->worker.allocator, sizeof *seat, TWI_CACHE_LINE);
	struct twi_seat *first;

	if (seat == NULL)
		return NULL;
	/*
	 * RELAXED, the store and the load: no other thread has the seat yet, and the swap below
	 * publishes it.
	 */
	twi_store_relaxed(&seat->owner, scaled);
	first = twi_load_relaxed(&engine->seats); /* RELAXED: as above */
	do {
		seat->next = first;
		TWI_TEST_POINT("scaled:seating");
		/* E151: publishes the link. */
	} while (!twi_cas_release(&engine->seats, &first, seat));
	return seat;
}

struct twi_seat *twi_seat_take(struct tw_scaled *scaled)
{
	struct twi_seat *seat = free_seat(scaled);

	if (seat == NULL)
		seat = seat_make(scaled);
	if (seat != NULL)
		seat->fork_epoch = scaled->fork_epoch;
	return seat;
}

void twi_seat_give(struct twi_seat *seat)
{
	/* E151: the next owner sees everything that this owner did with the seat. */
	twi_store_release(&seat->owner, NULL);
}

static void half_fill(_Atomic uint64_t *half, struct tw_handle handle)
{
	/* E150: a drive that reads the node finds its timeout pending. */
	twi_store_release(&half[0], (uint64_t)(uintptr_t)handle.node);
	/*
	 * RELAXED: if a thread reads this generation with an older node, the two name no pending
	 * timeout.
	 */
	twi_store_relaxed(&half[1], handle.generation);
}

void twi_seat_fill(struct twi_seat *seat, struct tw_handle driver, struct tw_handle relay)
{
	half_fill(seat->driver, driver);
	half_fill(seat->relay, relay);
}

struct tw_handle twi_seat_handle(const _Atomic uint64_t *half)
{
	/* E150: see half_fill. */
	struct twi_pair seen = twi_load_pair_acquire(half);

	return (struct tw_handle){(void *)(uintptr_t)seen.half[0], seen.half[1]};
}

bool twi_seat_due(const _Atomic uint64_t *half)
{
	return tw_reschedule(twi_seat_handle(half), 0) == TW_RESCHEDULE_DONE;
}

void twi_seat_park_drive(struct twi_park *park)
{
	struct tw_engine *queue = TWI_CONTAINER_OF(park, struct tw_engine, worker.park);

	twi_seat_drive(queue->seat);
}

void twi_seat_drive(struct twi_seat *seat)
{
	/*
	 * E150: publishes the reason for the drive to the next turn that swaps `asked`. Acquires
	 * what the last turn did, so that this thread does not see the timers as they were before
	 * it.
	 */
	(void)twi_exchange_acq_rel(&seat->asked, 1);
	TWI_TEST_POINT("scaled:driving");
	if (!twi_seat_due(seat->driver))
		(void)twi_seat_due(seat->relay);
}
