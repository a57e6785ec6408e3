/* SPDX-License-Identifier: MIT */
/*
 * Producers that end with timeouts pending: they return, call pthread_exit, or are cancelled at a
 * random moment. Other threads are cancelled while they wait in flush and cancel_wait. The timeouts
 * belong to the engine, and must end like any other timeout. A call must end before its thread
 * does.
 *
 * Seen to fail with these defects: schedule has a cancellation point after the push, so a timeout
 * expires, or is handed back, although its schedule never returned; the futex wait has a
 * cancellation point, so threads that are cancelled while they wait end inside the call.
 */
#include "family.h"

/* Runs the tour, which counts only the threads that ended as planned. */
static void body(void *arg, struct tour_result *result)
{
	tour_run(arg, result);
	atomic_store(&result->injected, result->ends);
}

static void ends_run(struct report *report, const char *name, enum producer_end end)
{
	struct tour_plan plan = {
		.name = name,
		.producer_end = end,
		.repeats = report->exhaustive ? 1000 : 60,
	};
	struct row row = row_open(name);

	(void)row_run_body(&row, body, &plan, NULL);
	row_close(report, &row);
}

void family_ends(struct report *report)
{
	ends_run(report, "producers return, timeouts pending", PRODUCER_RETURNS);
	ends_run(report, "producers call pthread_exit", PRODUCER_EXITS);
	ends_run(report, "producers are cancelled", PRODUCER_CANCELLED);
}
