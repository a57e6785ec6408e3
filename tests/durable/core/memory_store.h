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
	int64_t ended_ns; /* of a dead letter */
	unsigned char bytes[];
};

struct disk {
	struct disk_row *bucket[DISK_BUCKETS];
	char kinds[DISK_KINDS_MAX][DISK_NAME_BYTES]; /* by their numbers on the disk */
	uint32_t kind_count;
	uint32_t map[DISK_KINDS_MAX]; /* the set's number -> the disk's */
	uint32_t level;
	uint64_t serial;
	int64_t highest_ns;
	bool clean, used, has_clock;
	struct tw_durable_clock clock;
	/* The calls made so far. */
	uint64_t session; /* counts opens; a store of an earlier one may do nothing */
	uint64_t commits, puts, deletes, moves, starts, bytes, reads, upkeeps, trims, clocks;
	size_t rows;
	/*
	 * The script: commit number `fault_at` (from 1; 0: none) and the `fault_count - 1` after it
	 * return `fault`, after they were done if `fault_done`. Without puts -ENOSPC does not
	 * count.
	 */
	uint64_t fault_at, fault_count;
	int fault;
	bool fault_done;
	/* The n-th find from now on fails, by this code; 0: none. */
	uint64_t find_fault_in;
	int find_fault;
	int trim_fault;              /* a trim says so; 0: it does its work */
	int clock_fault;             /* the same for a change of the clock */
	uint64_t log_bytes;          /* that it says it has to keep */
	int paused_fault;            /* what a look at the paused kinds returns */
	bool paused[DISK_KINDS_MAX]; /* by their numbers on the disk */
	/* Called in each commit, before it is done, and in each load. NULL: none. */
	void (*during)(void);
	void (*loading)(void);
};

struct disk *disk_create(void);
void disk_destroy(struct disk *disk);
/* The store for the next open. */
struct tw_durable_store disk_store(struct disk *disk);
/* One without the functions that a store need not have. */
struct tw_durable_store disk_store_least(struct disk *disk);
/* As after kill -9: no later call of the set changes the store. */
void disk_cut(struct disk *disk);
/* NULL: it is not there. */
const struct tw_durable_row *disk_find(struct disk *disk, struct tw_durable_id id);
size_t disk_dead(const struct disk *disk);

#endif
