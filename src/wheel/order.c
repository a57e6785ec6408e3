/* SPDX-License-Identifier: MIT */
/*
 * Copies deadlines to an array, a block at a time, and sorts it: by an LSD radix sort with as many
 * digits as the deadlines of the block differ in, or by insertion if there are few. Nodes lie
 * anywhere in memory, so each look at a node is a cache miss. A block needs two looks at each node,
 * and no look waits for the one before.
 *
 * Due timeouts are taken out of the slots in steps of one or more ticks, so that a block holds the
 * timeouts of a step. The deadlines of two steps do not overlap, so their lists need no merge. If
 * one tick has more than a block, the lists of its blocks are merged, which costs a miss for each
 * look. Pile k holds nothing or 2^k blocks, and a new block is merged with the full piles like a
 * carry. Without steps, an engine that was behind merged more and fell further behind.
 *
 * Other threads may reschedule meanwhile. Such a node keeps the position of its older deadline.
 */
#include "wheel/order.h"

#include "base/compiler.h"

#include <stddef.h>
#include <string.h>

enum {
	BLOCK = 32768,
	FEW = 32,
	DIGIT_BITS = 8,
	DIGITS = 1 << DIGIT_BITS,
	PILES = 40,
	/* How many nodes ahead a node is prefetched before it is given out. */
	AHEAD = 8,
};

struct entry {
	int64_t deadline_ns;
	struct twi_node *node;
};

struct twi_order {
	/* Entries in `block` that are not sorted yet. */
	size_t count;
	/*
	 * The most ticks that a step may have, the ticks of the step under way, and whether that
	 * step would be longer otherwise.
	 */
	uint64_t step_ticks;
	uint64_t under_way_ticks;
	bool step_cut;
	/* The entries of the block that was taken last, and the next one to prefetch. */
	const struct entry *taken;
	size_t ahead;
	size_t taken_count;
	unsigned piles;
	struct twi_node *pile[PILES];
	struct entry block[BLOCK];
	struct entry spare[BLOCK];
};

struct twi_order *twi_order_create(const struct tw_allocator *allocator)
{
	struct twi_order *order = twi_allocate(allocator, sizeof *order, TWI_CACHE_LINE);

	if (order == NULL)
		return NULL;
	/* The arrays are not cleared, so that their pages stay untouched until they are used. */
	memset(order, 0, offsetof(struct twi_order, block));
	order->step_ticks = 1;
	return order;
}

void twi_order_destroy(struct twi_order *order, const struct tw_allocator *allocator)
{
	if (order != NULL)
		allocator->release(allocator->context, order, sizeof *order, TWI_CACHE_LINE);
}

uint64_t twi_order_bytes(void)
{
	return sizeof(struct twi_order);
}

static struct entry *sort_by_insertion(struct entry *entry, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct entry moving = entry[i];
		size_t at = i;

		for (; at > 0 && entry[at - 1].deadline_ns > moving.deadline_ns; at--)
			entry[at] = entry[at - 1];
		entry[at] = moving;
	}
	return entry;
}

static size_t digit_of(const struct entry *entry, int64_t least_ns, unsigned shift)
{
	return (((uint64_t)entry->deadline_ns - (uint64_t)least_ns) >> shift) % DIGITS;
}

/* Sorts by one digit. Entries with the same digit keep their order. */
static void sort_by_digit(const struct entry *from, struct entry *to, size_t count,
			  int64_t least_ns, unsigned shift)
{
	size_t place[DIGITS] = {0};
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		place[digit_of(&from[i], least_ns, shift)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		size_t with_digit = place[digit];

		place[digit] = sum;
		sum += with_digit;
	}
	for (size_t i = 0; i < count; i++)
		to[place[digit_of(&from[i], least_ns, shift)]++] = from[i];
}

/* Returns the array that has the result: `from` or `to`. */
static struct entry *sort_by_digits(struct entry *from, struct entry *to, size_t count)
{
	int64_t least_ns = INT64_MAX;
	int64_t most_ns = INT64_MIN;
	uint64_t span_ns;

	for (size_t i = 0; i < count; i++) {
		least_ns = from[i].deadline_ns < least_ns ? from[i].deadline_ns : least_ns;
		most_ns = from[i].deadline_ns > most_ns ? from[i].deadline_ns : most_ns;
	}
	span_ns = (uint64_t)most_ns - (uint64_t)least_ns;
	for (unsigned shift = 0; shift < 64 && span_ns >> shift != 0; shift += DIGIT_BITS) {
		struct entry *sorted = to;

		sort_by_digit(from, to, count, least_ns, shift);
		to = from;
		from = sorted;
	}
	return from;
}

/* Returns the sorted block as a list; NULL if it is empty. */
static TWI_WORKER_ONLY struct twi_node *block_take(struct twi_order *order)
{
	size_t count = order->count;
	const struct entry *entry = count <= FEW
					    ? sort_by_insertion(order->block, count)
					    : sort_by_digits(order->block, order->spare, count);

	for (size_t i = 0; i < count; i++) {
		struct twi_node *previous = i > 0 ? entry[i - 1].node : NULL;

		twi_list_link(entry[i].node, i + 1 < count ? entry[i + 1].node : NULL);
		entry[i].node->place = (uintptr_t)previous | TWI_PLACE_LISTED;
	}
	order->count = 0;
	order->taken = entry;
	order->taken_count = count;
	order->ahead = AHEAD;
	return count > 0 ? entry[0].node : NULL;
}

/*
 * Merges two lists. Of equal deadlines, those of `older` come first. Leaves the places unchanged.
 */
static struct twi_node *merge(struct twi_node *older, struct twi_node *newer)
{
	struct twi_node *first = NULL;
	struct twi_node *last = NULL;

	while (older != NULL && newer != NULL) {
		struct twi_node **least =
			twi_node_deadline_ns(newer) < twi_node_deadline_ns(older) ? &newer : &older;
		struct twi_node *node = *least;

		*least = twi_list_next(node);
		if (last != NULL)
			twi_list_link(last, node);
		else
			first = node;
		last = node;
	}
	if (last == NULL)
		return older != NULL ? older : newer;
	twi_list_link(last, older != NULL ? older : newer);
	return first;
}

static TWI_COLD TWI_WORKER_ONLY void block_pile(struct twi_order *order)
{
	struct twi_node *carry = block_take(order);
	unsigned k = 0;

	for (; order->pile[k] != NULL; order->pile[k++] = NULL)
		carry = merge(order->pile[k], carry);
	order->pile[k] = carry;
	order->piles = k >= order->piles ? k + 1 : order->piles;
}

static TWI_COLD TWI_WORKER_ONLY struct twi_node *piles_take(struct twi_order *order)
{
	struct twi_node *sorted = NULL;
	struct twi_node *previous = NULL;

	for (unsigned k = 0; k < order->piles; k++) {
		sorted = merge(order->pile[k], sorted);
		order->pile[k] = NULL;
	}
	order->piles = 0;
	/* Nothing is prefetched, because `taken` has only the last of many blocks. */
	order->taken_count = 0;
	for (struct twi_node *node = sorted; node != NULL; node = twi_list_next(node)) {
		node->place = (uintptr_t)previous | TWI_PLACE_LISTED;
		previous = node;
	}
	return sorted;
}

void twi_order_add(struct twi_order *order, struct twi_due_batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct twi_node *node = batch->node[i];

		if (TWI_UNLIKELY(order->count == BLOCK))
			block_pile(order);
		order->block[order->count++] = (struct entry){twi_node_deadline_ns(node), node};
	}
	batch->count = 0;
}

uint64_t twi_order_step(struct twi_order *order, uint64_t now, uint64_t limit)
{
	order->step_cut = order->step_ticks < limit - now;
	order->under_way_ticks = order->step_cut ? order->step_ticks : limit - now;
	return now + order->under_way_ticks;
}

/*
 * Adapts the most ticks of a step, so that a step fits into a block. The most grows only if it has
 * cut the step. If a step was too large, the new value is computed from the ticks that the step
 * had. These may be fewer than the most, because the most grows while there is little work.
 */
static void step_adapt(struct twi_order *order)
{
	/* Piles and block hold no more than 2^piles blocks. */
	uint64_t fitting_ticks = order->under_way_ticks >> (order->piles + 1);

	if (order->piles > 0 || order->count > BLOCK / 2)
		order->step_ticks = fitting_ticks > 0 ? fitting_ticks : 1;
	else if (order->step_cut && order->count < BLOCK / 8)
		order->step_ticks *= 2;
}

struct twi_node *twi_order_take(struct twi_order *order)
{
	step_adapt(order);
	if (TWI_LIKELY(order->piles == 0))
		return block_take(order);
	block_pile(order);
	return piles_take(order);
}

void twi_order_ahead(struct twi_order *order)
{
	if (order->ahead < order->taken_count)
		TWI_PREFETCH_WRITE(order->taken[order->ahead++].node);
}
