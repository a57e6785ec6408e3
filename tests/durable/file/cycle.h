/* SPDX-License-Identifier: MIT */
/*
 * Opens a store on the simulated disk, commits and closes it, again and again until a call fails.
 */
#ifndef TESTS_DURABLE_CYCLE_H
#define TESTS_DURABLE_CYCLE_H

#include "disk.h"
#include "model.h"

/* The directory of this process. The model names the store in it. */
struct cycle {
	char directory[64], path[80];
	struct model model;
};

/* Creates the directory. */
void cycle_create(struct cycle *cycle);
/* Removes it with all its files. */
void cycle_destroy(struct cycle *cycle);
/* Empties the directory, resets the model, and watches the disk. */
void cycle_begin(struct cycle *cycle, uint64_t seed);

/*
 * Opens the store and commits, `sessions` times. At the first code that is not 0, stops, closes the
 * store, and returns the code. It continues after -EAGAIN and -ENOSPC of a commit.
 */
int cycle_run(struct cycle *cycle, int sessions);
/*
 * With power and disk whole again, the store must open and hold everything acknowledged, also after
 * more commits and another power loss. Returns false if not: see the model's `failure`.
 */
bool cycle_survives(struct cycle *cycle);

#endif
