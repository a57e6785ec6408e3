/* SPDX-License-Identifier: MIT */
/*
 * The ring of a lane (queue/ring.h): entries come in the order of their pushes, with all that their
 * producer wrote (E19). A place is written again only after it was read (E20). No more entries go
 * in than fit. Rings have four places here.
 *
 * Seen to fail: the look for room and the giving back of places relaxed, the tail stored relaxed,
 * room taken for granted, and never seen again; the tail or the head not stored, the entry not
 * written.
 */
#include "queue/ring.h"
#include "model.h"

enum {
	/* So that the numbers of the places wrap around during the run. */
	FIRST = 2 * TWI_RING_ENTRIES - 1,
	PUSHES = TWI_RING_ENTRIES + 2,
};

/* Ordinary memory, which serves again with its place. */
struct item {
	uint64_t number;
};

static struct twi_ring_in in;
static struct twi_ring_out out;
static _Atomic uintptr_t places[TWI_RING_ENTRIES];
static struct item items[TWI_RING_ENTRIES];
static uint64_t pushed, taken; /* numbers: the producer's, and the consumer's */

static void begin(void)
{
	twi_store_relaxed(&in.entry, places);
	twi_store_relaxed(&in.tail, FIRST);
	twi_store_relaxed(&out.head, FIRST);
	in.room = FIRST + TWI_RING_ENTRIES;
	pushed = taken = FIRST;
}

static bool push(bool unfenced)
{
	struct item *item = &items[pushed % TWI_RING_ENTRIES];

	if (!twi_ring_has_room(&in, &out))
		return false;
	item->number = pushed++;
	twi_ring_push(&in, (uintptr_t)item, unfenced);
	return true;
}

static void push_some(bool unfenced)
{
	for (int i = 0; i < PUSHES; i++)
		(void)push(unfenced);
}

static void push_fenced(void)
{
	push_some(false);
}

static void push_unfenced(void)
{
	push_some(true);
}

/* All that is in sight. */
static void take(void)
{
	uint64_t end = twi_ring_pushed(&in);
	_Atomic uintptr_t *entry = twi_ring_entries(&in);

	MODEL_CHECK(twi_ring_taken(&out) == taken && end - taken <= TWI_RING_ENTRIES);
	for (; taken < end; taken++) {
		struct item *item = (struct item *)twi_ring_entry(entry, taken);

		MODEL_CHECK(item == &items[taken % TWI_RING_ENTRIES]);
		MODEL_CHECK(item->number == taken);
	}
	twi_ring_take(&out, end);
}

static void take_thrice(void)
{
	take();
	take();
	take();
}

/* Nothing is left, and all places are free again. */
static void none_lost(void)
{
	take();
	MODEL_CHECK(taken == pushed);
	for (int i = 0; i < TWI_RING_ENTRIES; i++)
		MODEL_CHECK(push(true));
	MODEL_CHECK(!push(true));
	take();
	MODEL_CHECK(taken == pushed);
}

static void begin_full(void)
{
	begin();
	push_fenced();
	MODEL_CHECK(pushed == FIRST + TWI_RING_ENTRIES);
}

/* An entry without room is not in the ring; a producer that saw the room late tries again. */
static void push_twice(void)
{
	(void)push(false);
	(void)push(true);
}

MODEL_HARNESS(ring_fenced, .proves = "pushed by exchange: none lost, in order, and round",
	      .setup = begin, .thread = {push_fenced, take_thrice}, .finish = none_lost,
	      .preemptions = 2, .weak = 2, .random_runs = 2000);
MODEL_HARNESS(ring_unfenced, .proves = "the same, pushed by a store", .setup = begin,
	      .thread = {push_unfenced, take_thrice}, .finish = none_lost, .preemptions = 2,
	      .weak = 2, .random_runs = 2000);
MODEL_HARNESS(ring_full, .proves = "pushes to a full ring beside its consumer: none overwrites",
	      .setup = begin_full, .thread = {push_twice, take_thrice}, .finish = none_lost,
	      .preemptions = 2, .weak = 2, .random_runs = 2000);
