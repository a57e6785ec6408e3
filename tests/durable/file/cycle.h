/* SPDX-License-Identifier: MIT */
/*
 * Opens a store on the simulated disk, commits and closes it, again and again until a call fails.
 */
#ifndef TESTS_DURABLE_CYCLE_H
#define TESTS_DURABLE_CYCLE_H

#include "disk.h"
#include "model.h"

/* A directory of this process, for a store that is named by the model. */
struct cycle {
	char directory[64], path[80];
	struct model model;
};

/* Makes the directory. */
void cycle_create(struct cycle *cycle);
/* Removes it with all its files. */
void cycle_destroy(struct cycle *cycle);
/* An empty directory, a new model, and a disk that is watched. */
void cycle_begin(struct cycle *cycle, uint64_t seed);

/*
 * Opens the store and commits, `sessions` times. Stops at the first code that is not 0, and closes
 * the store. -EAGAIN and -ENOSPC of a commit are no such codes. Returns the code.
 */
int cycle_run(struct cycle *cycle, int sessions);
/*
 * Power and disk are whole again: the store must open and hold what was acknowledged, also after
 * more commits and another power loss. False: see the model's `failure`.
 */
bool cycle_survives(struct cycle *cycle);

#endif
