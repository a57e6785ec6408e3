/* SPDX-License-Identifier: MIT */
/*
 * The parts of liburcu that are measured inlined: the RCU read-side section and wfcqueue.
 *
 * Only this file defines _LGPL_SOURCE. The inlined functions are small. The harness comes with its
 * source, so it meets the LGPL's terms for these functions.
 */
#define _LGPL_SOURCE

#include "floor/queue.h"
#include "harness/measure.h"
#include "harness/probe.h"

#include <urcu/urcu-bp.h>
#include <urcu/wfcqueue.h>

enum { OPS = PROBE_OPS };

static struct cds_wfcq_tail queue_tail;
static struct __cds_wfcq_head queue_head;

double probe_rcu_inlined(const struct probe *probe)
{
	int64_t started_ns;

	(void)probe;
	urcu_bp_register_thread();
	started_ns = measure_now_ns();
	for (int i = 0; i < OPS; i++) {
		urcu_bp_read_lock();
		urcu_bp_read_unlock();
	}
	return (double)(measure_now_ns() - started_ns) / OPS;
}

static void wfcqueue_init(void)
{
	__cds_wfcq_init(&queue_head, &queue_tail);
}

static void wfcqueue_push(struct queue_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct cds_wfcq_node *node = (struct cds_wfcq_node *)(void *)&items[i];

		cds_wfcq_node_init(node);
		cds_wfcq_enqueue(&queue_head, &queue_tail, node);
	}
}

static size_t wfcqueue_drain(void)
{
	size_t count = 0;

	for (;;) {
		struct cds_wfcq_node *node =
			__cds_wfcq_dequeue_nonblocking(&queue_head, &queue_tail);

		if (!node || node == CDS_WFCQ_WOULDBLOCK)
			return count;
		count++;
	}
}

static size_t wfcqueue_splice(void)
{
	static struct cds_wfcq_tail batch_tail;
	static struct __cds_wfcq_head batch_head;
	struct cds_wfcq_node *node;
	struct cds_wfcq_node *next;
	size_t count = 0;

	__cds_wfcq_init(&batch_head, &batch_tail);
	__cds_wfcq_splice_nonblocking(&batch_head, &batch_tail, &queue_head, &queue_tail);
	__cds_wfcq_for_each_blocking_safe(&batch_head, &batch_tail, node, next) count++;
	return count;
}

const struct queue_kind queue_wfcqueue = {
	.init = wfcqueue_init,
	.push = wfcqueue_push,
	.drain = wfcqueue_drain,
};

const struct queue_kind queue_wfcqueue_spliced = {
	.init = wfcqueue_init,
	.push = wfcqueue_push,
	.drain = wfcqueue_splice,
};
