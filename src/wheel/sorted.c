/* SPDX-License-Identifier: MIT */
/*
 * Sorts the run: by an LSD radix sort with as many digits as the range of the deadlines needs, or
 * by insertion if there are few nodes. The nodes are scattered in memory, so each access to a node
 * is a cache miss. Therefore each node is accessed only twice, when it is added and when its place
 * is set, and more often only if deadlines are equal. These accesses are independent, so the misses
 * overlap. Afterwards equal deadlines are adjacent. If their sequence numbers are not in order,
 * these nodes are sorted by sequence number in the same way.
 */
#include "wheel/sorted.h"

enum {
	FEW = 32,
	DIGIT_BITS = 8,
	DIGITS = 1 << DIGIT_BITS,
};

TWI_WORKER_UNCHECKED void twi_sorted_init(struct twi_sorted *sorted)
{
	sorted->at = 0;
	sorted->count = sorted->left = 0;
	sorted->entry = sorted->array[0];
}

static TWI_WORKER_ONLY void sort_by_insertion(struct twi_sorted_entry *entry, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		struct twi_sorted_entry moving = entry[i];
		size_t at = i;

		for (; at > 0 && entry[at - 1].since > moving.since; at--)
			entry[at] = entry[at - 1];
		entry[at] = moving;
	}
}

static size_t digit_of(const struct twi_sorted_entry *entry, uint64_t least, unsigned shift)
{
	return ((entry->since - least) >> shift) % DIGITS;
}

/* Sorts by one digit. Entries with the same digit keep their order. */
static void sort_by_digit(const struct twi_sorted_entry *from, struct twi_sorted_entry *to,
			  size_t count, uint64_t least, unsigned shift)
{
	size_t place[DIGITS] = {0};
	size_t sum = 0;

	for (size_t i = 0; i < count; i++)
		place[digit_of(&from[i], least, shift)]++;
	for (size_t digit = 0; digit < DIGITS; digit++) {
		size_t with_digit = place[digit];

		place[digit] = sum;
		sum += with_digit;
	}
	for (size_t i = 0; i < count; i++)
		to[place[digit_of(&from[i], least, shift)]++] = from[i];
}

/* Returns the array that has the sorted entries: `from` or `other`. */
static struct twi_sorted_entry *sort_by_digits(struct twi_sorted_entry *from,
					       struct twi_sorted_entry *other, size_t count)
{
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;

	for (size_t i = 0; i < count; i++) {
		least = from[i].since < least ? from[i].since : least;
		most = from[i].since > most ? from[i].since : most;
	}
	for (unsigned shift = 0; shift < 64 && (most - least) >> shift != 0; shift += DIGIT_BITS) {
		struct twi_sorted_entry *sorted = other;

		sort_by_digit(from, sorted, count, least, shift);
		other = from;
		from = sorted;
	}
	return from;
}

static TWI_WORKER_ONLY struct twi_sorted_entry *sort(struct twi_sorted_entry *entry,
						     struct twi_sorted_entry *other, size_t count)
{
	if (count > FEW)
		return sort_by_digits(entry, other, count);
	sort_by_insertion(entry, count);
	return entry;
}

/* Sorts entries that have the same deadline by sequence number. */
static TWI_WORKER_ONLY void equal_sort(struct twi_sorted_entry *entry,
				       struct twi_sorted_entry *other, size_t count)
{
	uint64_t since = entry->since;
	struct twi_sorted_entry *sorted;

	for (size_t i = 0; i < count; i++)
		entry[i].since = twi_node_sequence(entry[i].node);
	sorted = sort(entry, other, count);
	for (size_t i = 0; i < count; i++)
		entry[i] = (struct twi_sorted_entry){since, sorted[i].node};
}

/*
 * Returns how many entries have the same deadline as the first one. Sets `*ret_in_order` to whether
 * their sequence numbers rise.
 */
static size_t equal_count(const struct twi_sorted_entry *entry, size_t most, bool *ret_in_order)
{
	size_t count = 1;

	*ret_in_order = true;
	for (; count < most && entry[count].since == entry->since; count++)
		if (twi_node_sequence(entry[count].node) < twi_node_sequence(entry[count - 1].node))
			*ret_in_order = false;
	return count;
}

static TWI_WORKER_ONLY void equals_sort(struct twi_sorted *sorted)
{
	struct twi_sorted_entry *other = sorted->array[sorted->entry == sorted->array[0] ? 1 : 0];
	size_t count;
	bool in_order;

	for (size_t at = 0; at < sorted->count; at += count) {
		count = equal_count(&sorted->entry[at], sorted->count - at, &in_order);
		if (TWI_UNLIKELY(!in_order))
			equal_sort(&sorted->entry[at], other, count);
	}
}

void twi_sorted_sort(struct twi_sorted *sorted)
{
	struct twi_sorted_entry *other = sorted->array[sorted->entry == sorted->array[0] ? 1 : 0];

	sorted->entry = sort(sorted->entry, other, sorted->count);
	equals_sort(sorted);
	for (size_t i = 0; i < sorted->count; i++)
		sorted->entry[i].node->place = i * TWI_BLOCK_BYTES | TWI_PLACE_SORTED;
}

void twi_sorted_remove(struct twi_sorted *sorted, uintptr_t place)
{
	sorted->entry[place / TWI_BLOCK_BYTES].node = NULL;
	twi_sorted_gone(sorted);
}

/* The result of one pass over all nodes of a list. */
struct survey {
	uint64_t least;
	uint64_t most;
	bool in_order;
};

static TWI_WORKER_ONLY struct survey list_survey(struct twi_node *node)
{
	struct survey survey = {.least = UINT64_MAX, .in_order = true};

	for (; node != NULL; node = (struct twi_node *)node->place) {
		uint64_t sequence = twi_node_sequence(node);

		if (sequence < survey.most)
			survey.in_order = false;
		else
			survey.most = sequence;
		if (sequence < survey.least)
			survey.least = sequence;
	}
	return survey;
}

/* Sorts a list by one digit. Nodes with the same digit keep their order. */
static TWI_WORKER_ONLY struct twi_node *list_by_digit(struct twi_node *node, uint64_t least,
						      unsigned shift)
{
	uintptr_t first[DIGITS];
	uintptr_t *end[DIGITS] = {NULL};
	uintptr_t sorted = 0;
	uintptr_t *sorted_end = &sorted;

	while (node != NULL) {
		struct twi_node *next = (struct twi_node *)node->place;
		size_t digit = ((twi_node_sequence(node) - least) >> shift) % DIGITS;
		uintptr_t *link = end[digit] != NULL ? end[digit] : &first[digit];

		*link = (uintptr_t)node;
		end[digit] = &node->place;
		node = next;
	}
	for (size_t digit = 0; digit < DIGITS; digit++) {
		if (end[digit] == NULL)
			continue;
		*sorted_end = first[digit];
		sorted_end = end[digit];
	}
	*sorted_end = 0;
	return (struct twi_node *)sorted;
}

struct twi_node *twi_sorted_list(struct twi_node *first)
{
	struct survey survey = list_survey(first);
	uint64_t span = survey.most - survey.least;

	if (survey.in_order)
		return first;
	for (unsigned shift = 0; shift < 64 && span >> shift != 0; shift += DIGIT_BITS)
		first = list_by_digit(first, survey.least, shift);
	return first;
}

const char *twi_sorted_check(const struct twi_sorted *sorted, uint64_t *count)
{
	uint64_t last = 0;

	for (size_t i = sorted->at; i < sorted->count; i++) {
		const struct twi_sorted_entry *entry = &sorted->entry[i];

		if (entry->since < last)
			return "the sorted run is not sorted";
		last = entry->since;
		if (entry->node == NULL)
			continue;
		if (entry->node->place != (i * TWI_BLOCK_BYTES | TWI_PLACE_SORTED))
			return "a node of the sorted run does not know its place";
		++*count;
	}
	return NULL;
}
