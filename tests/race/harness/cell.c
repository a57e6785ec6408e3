/* SPDX-License-Identifier: MIT */
#include "cell.h"

#include "race.h"

#include <stdlib.h>

#define POISON UINT64_C(0xdeadbeefdeadbeef)

enum {
	LIVE = 0x7c17a11d,
	DEAD = 0x0dead0ff,
	/* how many cells a search for a free one tries */
	LOOKS = 64,
};

void cells_init(struct cells *cells, uint32_t count)
{
	*cells = (struct cells){.cell = calloc(count, sizeof(struct cell)), .count = count};
	RACE_CHECK(cells->cell != NULL);
	for (uint32_t i = 0; i < count; i++)
		cells->cell[i].free = true;
}

void cells_release(struct cells *cells)
{
	free(cells->cell);
}

static uint64_t word_of(const struct cell *cell, int number)
{
	return cell->sequence * UINT64_C(0x9e3779b97f4a7c15) + (uint64_t)number;
}

static void words_check(struct cell *cell)
{
	for (int i = 0; i < CELL_WORDS; i++)
		RACE_CHECK(atomic_load_explicit(&cell->word[i], memory_order_relaxed) ==
			   word_of(cell, i));
}

/*
 * Records one of two steps, the end or the finaliser's run, which may come in either order. Checks
 * that both have the same reason. The second of the two steps poisons the cell.
 */
static void cell_leave(struct cell *cell, enum tw_end how)
{
	uint32_t before = 0;

	RACE_CHECK(atomic_load_explicit(&cell->magic, memory_order_relaxed) == LIVE);
	words_check(cell);
	if (!atomic_compare_exchange_strong_explicit(&cell->how, &before, 1 + (uint32_t)how,
						     memory_order_relaxed, memory_order_relaxed))
		RACE_CHECK(before == 1 + (uint32_t)how);
	if (atomic_fetch_sub_explicit(&cell->left, 1, memory_order_acq_rel) != 1)
		return;
	for (int i = 0; i < CELL_WORDS; i++)
		atomic_store_explicit(&cell->word[i], POISON, memory_order_relaxed);
	atomic_store_explicit(&cell->magic, DEAD, memory_order_relaxed);
	atomic_store_explicit(&cell->free, true, memory_order_release);
}

void cell_end(struct cell *cell, enum tw_end how)
{
	RACE_CHECK(atomic_fetch_add_explicit(&cell->ends, 1, memory_order_relaxed) == 0);
	atomic_fetch_add_explicit(&cell->owner->ended, 1, memory_order_relaxed);
	cell_leave(cell, how);
}

/* Checks that no thread has touched the cell since it was poisoned. */
static void cell_check(struct cell *cell)
{
	RACE_CHECK(atomic_load_explicit(&cell->magic, memory_order_relaxed) == DEAD);
	RACE_CHECK(atomic_load_explicit(&cell->left, memory_order_relaxed) == 0);
	RACE_CHECK(atomic_load_explicit(&cell->ends, memory_order_relaxed) == 1);
	RACE_CHECK(atomic_load_explicit(&cell->finalised, memory_order_relaxed) ==
		   cell->has_finaliser);
	for (int i = 0; i < CELL_WORDS; i++)
		RACE_CHECK(atomic_load_explicit(&cell->word[i], memory_order_relaxed) == POISON);
}

struct cell *cell_take(struct cells *cells, bool has_finaliser)
{
	for (int look = 0; look < LOOKS; look++) {
		struct cell *cell = &cells->cell[cells->cursor++ % cells->count];

		if (!atomic_load_explicit(&cell->free, memory_order_acquire))
			continue;
		if (cell->sequence != 0)
			cell_check(cell);
		cell->free = false;
		cell->owner = cells;
		cell->sequence = ++cells->sequence;
		cell->has_finaliser = has_finaliser;
		cell->left = has_finaliser ? 2 : 1;
		cell->ends = cell->finalised = cell->how = 0;
		for (int i = 0; i < CELL_WORDS; i++)
			cell->word[i] = word_of(cell, i);
		cell->magic = LIVE;
		return cell;
	}
	return NULL;
}

void cell_give_back(struct cell *cell)
{
	cell->left = 1;
	cell->ends = 1;
	cell->finalised = cell->has_finaliser;
	cell_leave(cell, TW_END_CANCELLED);
}

void cell_finalise(struct cell *cell, enum tw_end how)
{
	RACE_CHECK(cell->has_finaliser);
	RACE_CHECK(atomic_fetch_add_explicit(&cell->finalised, 1, memory_order_relaxed) == 0);
	cell_leave(cell, how);
}

void cells_check(struct cells *cells, uint64_t ended)
{
	RACE_CHECK(cells->ended == ended);
	for (uint32_t i = 0; i < cells->count; i++) {
		RACE_CHECK(cells->cell[i].free);
		if (cells->cell[i].sequence != 0)
			cell_check(&cells->cell[i]);
	}
}
