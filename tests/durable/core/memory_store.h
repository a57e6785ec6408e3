/* SPDX-License-Identifier: MIT */
/*
 * A store in memory, which stands for a disk. A test can make its calls fail (see `fault_at`
 * below). The disk outlives the sets that are opened on it. So a test can open it again after a
 * close, or in the state after kill -9.
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
	int64_t ended_ns; /* the time at which it became a dead letter */
	unsigned char bytes[];
};

struct disk {
	struct disk_row *bucket[DISK_BUCKETS];
	/* the kinds' names, indexed by the disk's numbers */
	char kinds[DISK_KINDS_MAX][DISK_NAME_BYTES];
	uint32_t kind_count;
	uint32_t map[DISK_KINDS_MAX]; /* maps the set's number of a kind to the disk's */
	uint32_t level;
	uint64_t serial;
	int64_t highest_ns;
	bool clean, used, has_clock;
	struct tw_durable_clock clock;
	/* These fields count the calls made since the disk was created. */
	uint64_t session; /* counts openings; a store of an earlier opening may do nothing */
	uint64_t commits, puts, deletes, moves, starts, bytes, reads, upkeeps, trims, clocks;
	size_t rows;
	/*
	 * Which commits fail: commit number `fault_at` (counted from 1; 0: none) and the
	 * `fault_count - 1` commits after it return `fault`. If `fault_done` is set, they do their
	 * work first. If `fault` is -ENOSPC, it applies only to a commit with puts.
	 */
	uint64_t fault_at, fault_count;
	int fault;
	bool fault_done;
	/* The n-th find from now on fails with this code; 0: none. */
	uint64_t find_fault_in;
	int find_fault;
	int trim_fault;              /* what a trim returns; 0: it does its work */
	int clock_fault;             /* what a change of the clock returns; 0: it does its work */
	uint64_t log_bytes;          /* the length of the log that the store reports */
	int paused_fault;            /* what the look-up of the paused kinds returns */
	bool paused[DISK_KINDS_MAX]; /* whether a kind is paused, indexed by the disk's numbers */
	/* Called in each commit before its work, and in each load. Either may be NULL. */
	void (*during)(void);
	void (*loading)(void);
};

struct disk *disk_create(void);
void disk_destroy(struct disk *disk);
/* Returns a store on this disk, for the next opening. */
struct tw_durable_store disk_store(struct disk *disk);
/* Returns a store on this disk without the functions that a store need not have. */
struct tw_durable_store disk_store_least(struct disk *disk);
/* Cuts the disk off, as kill -9 does: no later call of the present set changes the disk. */
void disk_cut(struct disk *disk);
/* Returns the row of a timer, or NULL if it is not there. */
const struct tw_durable_row *disk_find(struct disk *disk, struct tw_durable_id id);
size_t disk_dead(const struct disk *disk);

#endif
