/* SPDX-License-Identifier: MIT */
/*
 * Opens a store on the simulated disk, commits and closes it, again and again until a call fails.
 */
#ifndef TESTS_DURABLE_CYCLE_H
#define TESTS_DURABLE_CYCLE_H

#include "disk.h"
#include "model.h"

/* The directory of this process, and the model of the store in it. */
struct cycle {
	char directory[64], path[80];
	struct model model;
};

/* Creates the directory. */
void cycle_create(struct cycle *cycle);
/* Removes the directory with all its files. */
void cycle_destroy(struct cycle *cycle);
/* Empties the directory, resets the model, and watches the disk. */
void cycle_begin(struct cycle *cycle, uint64_t seed);

/*
 * Opens the store and commits, `sessions` times. At the first code other than 0, closes the store
 * and returns the code. But if a commit returns -EAGAIN or -ENOSPC, continues.
 */
int cycle_run(struct cycle *cycle, int sessions);
/*
 * Checks the store after the power is back and the faults have ended. The store must open and hold
 * everything that was acknowledged, also after more commits and another power failure. Returns
 * false if the store does not; the model's `failure` then says what is wrong.
 */
bool cycle_survives(struct cycle *cycle);

#endif
