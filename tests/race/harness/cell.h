/* SPDX-License-Identifier: MIT */
/*
 * The argument of a timeout in the race programs: a magic word, its producer's sequence number,
 * words computed from that number, and how the timeout ended. After its end a cell is poisoned, and
 * is used again later. An access after the end damages the poison, or ends a later use of the cell.
 *
 * Ownership: a free cell belongs to its producer. A cell in use belongs to the thread that ends it
 * and to its finaliser. The later of these two poisons and frees the cell.
 */
#ifndef RACE_CELL_H
#define RACE_CELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <tickwheel.h>

enum { CELL_WORDS = 3 };

struct cell {
	_Atomic uint32_t magic;
	/* how many of the two steps are still to come: the end, the finaliser */
	_Atomic uint32_t left;
	_Atomic uint32_t ends;      /* how often the timeout ended */
	_Atomic uint32_t finalised; /* how often its finaliser ran */
	_Atomic uint32_t how;       /* 1 + enum tw_end, as the first of the two steps reported it */
	bool has_finaliser;
	struct cells *owner;
	uint64_t sequence;
	_Atomic uint64_t word[CELL_WORDS];
	_Atomic bool free; /* whether it is poisoned, so that its owner may take it again */
};

/* The cells of one producer. */
struct cells {
	struct cell *cell;
	uint32_t count;
	uint32_t cursor;
	uint64_t sequence;      /* the number of the cell that was taken last */
	_Atomic uint64_t ended; /* how many uses have ended, on any thread */
};

void cells_init(struct cells *cells, uint32_t count);
void cells_release(struct cells *cells);

/* Checks that no cell is in use, and that `ended` uses have ended. */
void cells_check(struct cells *cells, uint64_t ended);

/* Begins a new use of a cell. Returns NULL if it finds no free cell. */
struct cell *cell_take(struct cells *cells, bool has_finaliser);

/* Poisons a cell after its schedule was rejected. Called by the thread that took it. */
void cell_give_back(struct cell *cell);

/* Records the end, which must come once. */
void cell_end(struct cell *cell, enum tw_end how);

/* Records the finaliser's run, which must come once and with the same reason. */
void cell_finalise(struct cell *cell, enum tw_end how);

#endif
