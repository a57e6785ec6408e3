/* SPDX-License-Identifier: MIT */
/*
 * An LSD radix sort with as many digits as the deadlines differ in, or a sort by insertion if there
 * are few. The nodes lie anywhere in memory, so each look at a node is a cache miss. A step needs
 * two looks at each node, and no look waits for the one before.
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

static TWI_WORKER_ONLY void sort_by_digits(struct twi_sorted *sorted)
{
	uint64_t least = UINT64_MAX;
	uint64_t most = 0;

	for (size_t i = 0; i < sorted->count; i++) {
		uint64_t since = sorted->entry[i].since;

		least = since < least ? since : least;
		most = since > most ? since : most;
	}
	for (unsigned shift = 0; shift < 64 && (most - least) >> shift != 0; shift += DIGIT_BITS) {
		struct twi_sorted_entry *to =
			sorted->array[sorted->entry == sorted->array[0] ? 1 : 0];

		sort_by_digit(sorted->entry, to, sorted->count, least, shift);
		sorted->entry = to;
	}
}

void twi_sorted_sort(struct twi_sorted *sorted)
{
	if (sorted->count <= FEW)
		sort_by_insertion(sorted->entry, sorted->count);
	else
		sort_by_digits(sorted);
	for (size_t i = 0; i < sorted->count; i++)
		sorted->entry[i].node->place = i * TWI_BLOCK_BYTES | TWI_PLACE_SORTED;
}

void twi_sorted_remove(struct twi_sorted *sorted, uintptr_t place)
{
	sorted->entry[place / TWI_BLOCK_BYTES].node = NULL;
	twi_sorted_gone(sorted);
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
