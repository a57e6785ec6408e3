/* SPDX-License-Identifier: MIT */
/*
 * The ring of a lane (queue/ring.h). Entries come in the order of their pushes, with everything
 * that their producer wrote (E19). The producer writes a place again only after the consumer has
 * read it (E20). No more entries go in than fit. In these harnesses rings have four places, or grow
 * from two to four (E131).
 *
 * Seen to fail with these defects:
 * - twi_ring_look() loads the head relaxed;
 * - twi_ring_take(), which gives places back, stores the head relaxed;
 * - twi_ring_raise() stores the tail relaxed;
 * - twi_ring_push() does not check whether there is room, or finds no room after the ring was full
 *   once;
 * - the tail, or the head, is not stored;
 * - twi_ring_put() does not write the entry.
 */
#include "queue/ring.h"
#include "model.h"

enum {
	/* this start makes the numbers of the places wrap around during the run */
	FIRST = 2 * TWI_RING_ENTRIES - 1,
	PUSHES = TWI_RING_ENTRIES + 2,
};

/* Ordinary memory. Each place has one item, which is written again with the place. */
struct item {
	uint64_t number;
};

/*
 * Memory for arrays of 2, 4 and 2 places. The producer overwrites an array as soon as it is free.
 */
enum { ARRAYS = 3, BROKEN = 77 };
static TWI_CACHE_ALIGNED char memory[ARRAYS][sizeof(struct twi_ring_array) + TWI_CACHE_LINE];
static unsigned arrays_made, arrays_freed;

static struct twi_ring_in in;
static struct twi_ring_arrays arrays;
static struct twi_ring_out out;
static struct item items[TWI_RING_ENTRIES];
/* how many entries the producer has pushed, and how many the consumer has taken */
static uint64_t pushed, taken;

static void extend(uint64_t mask)
{
	MODEL_CHECK(arrays_made < ARRAYS);
	twi_ring_extend(&in, &arrays, (struct twi_ring_array *)(void *)memory[arrays_made++], mask);
	(void)twi_ring_look(&in, &out);
}

static void begin_at(uint64_t mask)
{
	twi_store_relaxed(&in.tail, FIRST);
	twi_store_relaxed(&out.head, FIRST);
	pushed = taken = FIRST;
	extend(mask);
}

static void begin(void)
{
	begin_at(TWI_RING_ENTRIES - 1);
}

static bool has_room(void)
{
	struct twi_ring_array *left;
	uint64_t head;

	if (twi_ring_knows_room(&in))
		return true;
	head = twi_ring_look(&in, &out);
	while ((left = twi_ring_left(&arrays, head)) != NULL) {
		left->from = left->mask = BROKEN;
		twi_store_relaxed(&left->next, NULL);
		arrays_freed++;
	}
	if (!twi_ring_knows_room(&in) && in.mask < TWI_RING_ENTRIES - 1)
		extend(2 * (uint64_t)in.mask + 1);
	return twi_ring_knows_room(&in);
}

static bool push(bool unfenced)
{
	struct item *item = &items[pushed % TWI_RING_ENTRIES];

	if (!has_room())
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

/* Takes all entries that the consumer can see. */
static void take(void)
{
	uint64_t end = twi_ring_pushed(&in);

	MODEL_CHECK(twi_ring_taken(&out) == taken && end - taken <= TWI_RING_ENTRIES);
	while (taken < end) {
		struct twi_ring_part part = twi_ring_part(&arrays, &out.array, taken, end);

		MODEL_CHECK(part.at < part.end && twi_ring_part_count(part) <= end - taken);
		for (; part.at != part.end; part.at++, taken++) {
			struct item *item = (struct item *)twi_ring_entry(part.at);

			MODEL_CHECK(item == &items[taken % TWI_RING_ENTRIES]);
			MODEL_CHECK(item->number == taken);
		}
	}
	twi_ring_take(&out, end);
}

static void take_thrice(void)
{
	take();
	take();
	take();
}

/* Checks that all entries have come, and that all places are free again. */
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

/*
 * Pushes twice to a full ring. The first push fails and adds nothing. The second push may find
 * room.
 */
static void push_twice(void)
{
	(void)push(false);
	(void)push(true);
}

MODEL_HARNESS(ring_fenced,
	      .proves = "entries pushed by an exchange come once and in order, also after a wrap",
	      .setup = begin, .thread = {push_fenced, take_thrice}, .finish = none_lost,
	      .preemptions = 2, .weak = 2, .random_runs = 2000);
MODEL_HARNESS(ring_unfenced,
	      .proves = "entries pushed by a store come once and in order, also after a wrap",
	      .setup = begin, .thread = {push_unfenced, take_thrice}, .finish = none_lost,
	      .preemptions = 2, .weak = 2, .random_runs = 2000);
MODEL_HARNESS(ring_full, .proves = "a push to a full ring overwrites no entry", .setup = begin_full,
	      .thread = {push_twice, take_thrice}, .finish = none_lost, .preemptions = 2, .weak = 2,
	      .random_runs = 2000);

/* Begins with a ring of two places. */
static void begin_small(void)
{
	begin_at(1);
}

static void grown(void)
{
	none_lost();
	MODEL_CHECK(arrays_made == 2);
	/*
	 * When the ring is full, the producer looks again and finds that the consumer has left the
	 * first array.
	 */
	while (twi_ring_knows_room(&in))
		MODEL_CHECK(push(true));
	(void)has_room();
	MODEL_CHECK(arrays_freed + 1 == arrays_made);
}

MODEL_HARNESS(ring_grow, .proves = "after a full array, the entries continue in a larger one",
	      .setup = begin_small, .thread = {push_fenced, take_thrice}, .finish = grown,
	      .preemptions = 3, .weak = 2, .random_runs = 2000);

/*
 * Replaces the array by a smaller one if the ring is empty. The consumer may still use the old
 * array.
 */
static void shrink_and_push(void)
{
	(void)push(true);
	/* RELAXED: only this thread writes it. */
	if (twi_ring_look(&in, &out) == twi_load_relaxed(&in.tail))
		extend(1);
	for (int i = 0; i < 3; i++)
		(void)push(true);
}

static void shrunk(void)
{
	take();
	MODEL_CHECK(taken == pushed);
}

MODEL_HARNESS(ring_shrink, .proves = "an empty ring may become smaller and loses nothing",
	      .setup = begin, .thread = {shrink_and_push, take_thrice}, .finish = shrunk,
	      .preemptions = 3, .weak = 2, .random_runs = 2000);
