/* SPDX-License-Identifier: MIT */
/*
 * The whole process is stopped for 15 ms, again and again, and runs for a few ms in between
 * (SIGSTOP, SIGCONT).
 *
 * Seen to fail with this defect: an advance of the wheel skips the ticks beyond the eighth, so
 * timeouts that became due while the process was stopped fire only after a whole revolution.
 */
#include "family.h"
#include "race.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#define STOPPED_NS INT64_C(15000000)

/* Returns how long the process runs next. The times differ, so that stops hit different steps. */
static int64_t running_ns(unsigned round)
{
	return 1000000 + round * 377777 % 6000000;
}

/* Waits until the child is stopped. Returns false if it has ended instead. */
static bool stopped(pid_t child)
{
	siginfo_t info = {0};

	(void)kill(child, SIGSTOP);
	while (waitid(P_PID, (id_t)child, &info, WSTOPPED | WEXITED | WNOWAIT) == -1)
		RACE_CHECK(errno == EINTR);
	return info.si_code == CLD_STOPPED;
}

static void attend(pid_t child, struct tour_result *result)
{
	unsigned round;

	for (round = 0; !result->complete; round++) {
		tour_sleep_ns(running_ns(round));
		if (result->complete || !stopped(child))
			return;
		tour_sleep_ns(STOPPED_NS);
		atomic_fetch_add(&result->injected, 1);
		(void)kill(child, SIGCONT);
	}
}

static void body(void *arg, struct tour_result *result)
{
	tour_run(arg, result);
}

void family_stopped(struct report *report)
{
	struct tour_plan plan = {
		.name = "SIGSTOP for 15 ms, SIGCONT, and again",
		.repeats = report->exhaustive ? 300 : 40,
	};
	struct row row = row_open(plan.name);

	(void)row_run_body(&row, body, &plan, attend);
	row_close(report, &row);
}
