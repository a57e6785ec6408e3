/* SPDX-License-Identifier: MIT */
/*
 * Deadlines are copied to an array, a block at a time, which is sorted by its digits (an LSD radix sort,
 * of as many digits as the deadlines of the block differ in); a few, by insertion. Nodes lie anywhere in
 * memory, so each look at one is a miss: a block asks for two looks at each, of which none waits for
 * the one before.
 *
 * What is due is taken out of the slots in steps, of so many ticks that a block holds it: their
 * deadlines do not overlap. Where one tick has more than a block, the blocks' lists are merged, at a miss
 * for each look: pile k holds nothing, or 2^k blocks, and one that comes is merged with full piles like a
 * carry. Without the steps an engine that is behind merged more, and fell further behind.
 *
 * Deadlines may move meanwhile, as others reschedule: a node then stands where an older one put it.
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
	/* How far before a node is given out it is asked for. */
	AHEAD = 8,
};

struct entry {
	int64_t deadline_ns;
	struct twi_node *node;
};

struct twi_order {
	/* In `block`, not sorted yet. */
	size_t count;
	/* Of a step, in ticks: at most; of the one under way, and whether it is not longer for that. */
	uint64_t step_ticks;
	uint64_t under_way_ticks;
	bool step_cut;
	/* Of the block that was taken last: which entry is asked for next. */
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
	/* The arrays are left as they are: pages that are never touched. */
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

/* By one digit; those that have the same keep their order. */
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

/* Where it is by then: the one array or the other. */
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

/* The block as a list; NULL when it is empty. */
static TWI_WORKER_ONLY struct twi_node *block_take(struct twi_order *order)
{
	size_t count = order->count;
	const struct entry *entry = count <= FEW
					    ? sort_by_insertion(order->block, count)
					    : sort_by_digits(order->block, order->spare, count);

	for (size_t i = 0; i < count; i++) {
		struct twi_node *previous = i > 0 ? entry[i - 1].node : NULL;

		twi_list_link(entry[i].node, i + 1 < count ? entry[i + 1].node : NULL);
		entry[i].node->place = (uintptr_t)previous | TWI_PLACE_LIMBO;
	}
	order->count = 0;
	order->taken = entry;
	order->taken_count = count;
	order->ahead = AHEAD;
	return count > 0 ? entry[0].node : NULL;
}

/* Of equal ones, those of `older` first. Leaves the places as they were. */
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
	/* It was the last block's, of many. */
	order->taken_count = 0;
	for (struct twi_node *node = sorted; node != NULL; node = twi_list_next(node)) {
		node->place = (uintptr_t)previous | TWI_PLACE_LIMBO;
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
 * As much in each step as fits well; what nobody has asked for is not grown to. A step that was too much
 * tells by its own ticks, which may be few: time without work has grown what is allowed.
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
