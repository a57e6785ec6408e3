/* SPDX-License-Identifier: MIT */
/*
 * The two queues that could serve as ingress, behind one interface. Each queue's file contains the
 * loops, so that the compiler inlines push and take into them.
 */
#ifndef PERF_FLOOR_QUEUE_H
#define PERF_FLOOR_QUEUE_H

#include <stddef.h>
#include <stdint.h>

/* The size of a timeout's node; the queue's link is at its beginning. */
struct queue_item {
	_Alignas(64) void *link;
	uint64_t rest[7];
};

struct queue_kind {
	/* Resets the queue. There is only one queue of each kind. */
	void (*init)(void);
	/* Pushes items. Any thread may call it. */
	void (*push)(struct queue_item *items, size_t count);
	/*
	 * Takes the items that are visible to the calling thread, and returns how many. Only one
	 * thread may call it.
	 */
	size_t (*drain)(void);
};

extern const struct queue_kind queue_mpsc;
extern const struct queue_kind queue_wfcqueue;
extern const struct queue_kind queue_wfcqueue_spliced;

#endif
