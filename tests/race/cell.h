/* SPDX-License-Identifier: MIT */
/*
 * The argument of a timeout in the race programs: a magic word, its producer's sequence number,
 * words made of that, and who has ended it how. A cell that is done with is poisoned, and serves
 * again later; a touch after the end shows in the poison, or ends a life that was not its own.
 *
 * Who owns what. A free cell: its producer. A live one: who ends it, and its finaliser; the last of
 * them poisons it and sets it free.
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
	_Atomic uint32_t left;      /* who is not done with it yet: the end, the finaliser */
	_Atomic uint32_t ends;      /* times that it ended */
	_Atomic uint32_t finalised; /* times */
	_Atomic uint32_t how;       /* 1 + enum tw_end, as the first of them saw it */
	bool has_finaliser;
	struct cells *owner;
	uint64_t sequence;
	_Atomic uint64_t word[CELL_WORDS];
	_Atomic bool free; /* poisoned, its owner may take it again */
};

/* A producer's. */
struct cells {
	struct cell *cell;
	uint32_t count;
	uint32_t cursor;
	uint64_t sequence;      /* of the cell that was taken last */
	_Atomic uint64_t ended; /* lives, by whomever */
};

void cells_init(struct cells *cells, uint32_t count);
void cells_release(struct cells *cells);

/* All are done with, and as many lives have ended. */
void cells_check(struct cells *cells, uint64_t ended);

/* A new life, or NULL when none is free in sight. */
struct cell *cell_take(struct cells *cells, bool has_finaliser);

/* Schedule refused it: poisoned by who took it. */
void cell_give_back(struct cell *cell);

/* It has ended: once. */
void cell_end(struct cell *cell, enum tw_end how);

/* Its finaliser runs: once, with the same reason. */
void cell_finalise(struct cell *cell, enum tw_end how);

#endif
