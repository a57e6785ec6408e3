/* SPDX-License-Identifier: MIT */
/*
 * A store in memory that fails when the test's script says so. The store outlives the sets that are
 * opened on it. So a test can open it again after a close, or in the state after kill -9.
 */
#ifndef TESTS_MEMORY_STORE_H
#define TESTS_MEMORY_STORE_H

#include <stdbool.h>
#include <tickwheel/durable.h>

enum {
	DISK_BUCKETS = 1024,
	DISK_KINDS_MAX = 16,
	DISK_NAME_BYTES = 64,
};

struct disk_row {
	struct disk_row *next;
	struct tw_durable_row row;
	int64_t ended_ns; /* when it became a dead letter */
	unsigned char bytes[];
};

struct disk {
	struct disk_row *bucket[DISK_BUCKETS];
	char kinds[DISK_KINDS_MAX][DISK_NAME_BYTES]; /* indexed by the disk's numbers */
	uint32_t kind_count;
	uint32_t map[DISK_KINDS_MAX]; /* from the set's number to the disk's */
	uint32_t level;
	uint64_t serial;
	int64_t highest_ns;
	bool clean, used, has_clock;
	struct tw_durable_clock clock;
	/* Counts the calls made so far. */
	uint64_t session; /* counts openings; a store of an earlier opening may do nothing */
	uint64_t commits, puts, deletes, moves, starts, bytes, reads, upkeeps, trims, clocks;
	size_t rows;
	/*
	 * The script: commit number `fault_at` (from 1; 0: none) and the `fault_count - 1` commits
	 * after it return `fault`. If `fault_done` is set, they do their work first. -ENOSPC
	 * applies only to a commit with puts.
	 */
	uint64_t fault_at, fault_count;
	int fault;
	bool fault_done;
	/* The n-th find from now on fails with this code; 0: none. */
	uint64_t find_fault_in;
	int find_fault;
	int trim_fault;              /* a trim returns this; 0: it does its work */
	int clock_fault;             /* the same for a change of the clock */
	uint64_t log_bytes;          /* the length of the log that the store reports */
	int paused_fault;            /* what the look-up of the paused kinds returns */
	bool paused[DISK_KINDS_MAX]; /* indexed by the disk's numbers */
	/* Called in each commit, before its work, and in each load; or NULL. */
	void (*during)(void);
	void (*loading)(void);
};

struct disk *disk_create(void);
void disk_destroy(struct disk *disk);
/* Returns the store for the next opening. */
struct tw_durable_store disk_store(struct disk *disk);
/* The same without the functions that a store need not have. */
struct tw_durable_store disk_store_least(struct disk *disk);
/* The state after kill -9: no later call of the set changes the store. */
void disk_cut(struct disk *disk);
/* Returns NULL if the row is not there. */
const struct tw_durable_row *disk_find(struct disk *disk, struct tw_durable_id id);
size_t disk_dead(const struct disk *disk);

#endif
