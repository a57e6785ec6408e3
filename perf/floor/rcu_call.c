/* SPDX-License-Identifier: MIT */
/*
 * The cost of an RCU read-side section by function call. _LGPL_SOURCE must not be defined here,
 * because it would inline the calls.
 */
#include "harness/measure.h"
#include "harness/probe.h"

#include <urcu/urcu-bp.h>

enum { OPS = PROBE_OPS };

double probe_rcu_by_call(const struct probe *probe)
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
