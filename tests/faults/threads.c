/* SPDX-License-Identifier: MIT */
/*
 * Threads that cannot be created: pthread_create fails with EAGAIN (too many), ENOMEM or EPERM at
 * the k-th call, or from there on until the engines are gone. This hits the library's own call and
 * the one in the tour's thread hook, but not the tour's other threads.
 *
 * Seen to fail with these defects: start leaves the engine STARTING if it cannot create the thread,
 * so no worker runs the timeouts that were accepted; stop does not finish an engine itself when no
 * thread can be created, so it hangs.
 */
#include "family.h"
#include "inject.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

enum { K_MAX = 100 };

static long long arm_k, arm_count;

static void arm(void *fault)
{
	fault_arm(fault, arm_k, arm_count);
}

static void every_k(struct report *report, const char *name, uint32_t codes, long long count,
		    enum tour_course course)
{
	struct row row = row_open(name);
	struct tour_plan plan = {
		.name = name,
		.codes = codes,
		.course = course,
		.arm = arm,
		.relent = inject_disarm,
		.injected = inject_hits,
		.context = &inject_fault[INJECT_THREAD],
	};
	long long before;

	arm_count = count;
	arm_k = 0;
	do {
		arm_k++;
		before = row.result->injected;
	} while (row_run(&row, &plan) && row.result->injected > before && arm_k < K_MAX);
	row_close(report, &row);
}

void family_threads(struct report *report)
{
	if (!inject_possible()) {
		report_left_out(report, "thread creation fails", INJECT_IMPOSSIBLE);
		return;
	}
	inject_thread_error = EAGAIN;
	every_k(report, "thread creation EAGAIN, k-th", CODE_ENOMEM, 1, TOUR_RECOVERS);
	every_k(report, "thread creation EAGAIN, k-th and on", CODE_ENOMEM, LLONG_MAX,
		TOUR_RECOVERS);
	every_k(report, "thread creation EAGAIN, no relief", CODE_ENOMEM, LLONG_MAX,
		TOUR_STOPS_IN_FAULT);
	/*
	 * This delay is long enough for other threads to schedule during pthread_create. Their
	 * accepted timeouts wait for the next start, or are handed back.
	 */
	inject_delay_ns = 200000;
	every_k(report, "the same, slow to fail, k-th and on", CODE_ENOMEM, LLONG_MAX,
		TOUR_RECOVERS);
	every_k(report, "the same, slow to fail, no relief", CODE_ENOMEM, LLONG_MAX,
		TOUR_STOPS_IN_FAULT);
	inject_delay_ns = 0;
	inject_thread_error = ENOMEM;
	every_k(report, "thread creation ENOMEM, k-th and on", CODE_ENOMEM, LLONG_MAX,
		TOUR_RECOVERS);
	inject_thread_error = EPERM;
	every_k(report, "thread creation EPERM, k-th", CODE_EPERM, 1, TOUR_RECOVERS);
	every_k(report, "thread creation EPERM, no relief", CODE_EPERM, LLONG_MAX,
		TOUR_STOPS_IN_FAULT);
}
