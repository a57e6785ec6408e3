/* SPDX-License-Identifier: MIT */
/*
 * A clock that misbehaves as far as a monotonic clock can. It leaps an hour ahead; or it stands
 * still and then catches up; or it shows the same time for many readings; or it has run for a
 * hundred years.
 *
 * Seen to fail with these defects: the tick count has only 20 bits, so that a leap moves the wheel
 * back and no timeout fires; an advance of the wheel skips the ticks beyond the eighth; timeouts
 * expire one tick early, so callbacks run before their deadline.
 */
#include "family.h"
#include "inject.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS INT64_C(1000000)
#define HOUR_NS (3600 * 1000 * MS)

enum {
	READINGS_A_LEAP = 400,
	LEAPS_MAX = 1000,
	STAND_MS = 20,
	COARSE_MS = 4,
};

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x00000080
#endif

static atomic_llong readings, wrong_readings;

static int64_t leaping_ns(int64_t true_ns)
{
	long long leaps = atomic_fetch_add(&readings, 1) / READINGS_A_LEAP;

	if (leaps > LEAPS_MAX)
		leaps = LEAPS_MAX;
	if (leaps > 0)
		atomic_fetch_add(&wrong_readings, 1);
	return true_ns + leaps * HOUR_NS;
}

/* Stands still for STAND_MS out of each 2 * STAND_MS, then jumps to the right time. */
static int64_t standing_ns(int64_t true_ns)
{
	int64_t phase_ns = true_ns % (2 * STAND_MS * MS);

	if (phase_ns >= STAND_MS * MS)
		return true_ns;
	atomic_fetch_add(&wrong_readings, 1);
	return true_ns - phase_ns;
}

/* Stands still for COARSE_MS, like a clock with a coarse resolution. */
static int64_t coarse_ns(int64_t true_ns)
{
	atomic_fetch_add(&wrong_readings, 1);
	return true_ns - true_ns % (COARSE_MS * MS);
}

static int64_t (*current)(int64_t true_ns);

static void arm(void *context)
{
	(void)context;
	inject_clock = current;
}

static long long injected(void *context)
{
	(void)context;
	return wrong_readings;
}

static void clock_run(struct report *report, const char *name, int64_t (*clock)(int64_t true_ns))
{
	struct tour_plan plan = {
		.name = name,
		.arm = arm,
		.injected = injected,
		/* Must be more than all leaps together. */
		.patience_ns = 2 * LEAPS_MAX * HOUR_NS,
		.repeats = report->exhaustive ? 300 : 40,
	};

	current = clock;
	report_tour(report, &plan);
}

/* In the next fault, the process has a CLOCK_MONOTONIC that began a hundred years ago. */

static long long centuries;

static void century_arm(void *context)
{
	(void)context;
	centuries++;
}

static long long century_injected(void *context)
{
	(void)context;
	return centuries;
}

static bool century_enter(void)
{
	static const char offset[] = "monotonic 3155760000 0\n";
	int file;
	bool written;

	if (unshare(CLONE_NEWTIME) != 0)
		return false;
	file = open("/proc/self/timens_offsets", O_WRONLY);
	written = file >= 0 && write(file, offset, sizeof offset - 1) == sizeof offset - 1;
	(void)close(file);
	return written;
}

/*
 * Runs the tour in a new time namespace. The new time is valid only for children that are created
 * after the unshare.
 */
static void century_body(void *arg, struct tour_result *result)
{
	int status = 1;
	pid_t child;

	if (!century_enter())
		_exit(1);
	child = fork();
	if (child == 0) {
		struct timespec now;

		if (clock_gettime(CLOCK_MONOTONIC, &now) == 0 && now.tv_sec >= 3155760000)
			tour_run(arg, result);
		_exit(result->complete ? 0 : 1);
	}
	(void)waitpid(child, &status, 0);
	_exit(status == 0 ? 0 : 1);
}

static bool century_possible(void)
{
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		_exit(century_enter() ? 0 : 1);
	(void)waitpid(child, &status, 0);
	return status == 0;
}

static void century_run(struct report *report)
{
	struct tour_plan plan = {
		.name = "clock a hundred years on",
		.arm = century_arm,
		.injected = century_injected,
		.repeats = 3,
	};
	struct row row;

	if (!century_possible()) {
		report_left_out(report, plan.name, "no time namespace here");
		return;
	}
	row = row_open(plan.name);
	(void)row_run_body(&row, century_body, &plan, NULL);
	row_close(report, &row);
}

void family_clock(struct report *report)
{
	century_run(report);
	if (!inject_possible()) {
		report_left_out(report, "clock leaps, stands, repeats", INJECT_IMPOSSIBLE);
		return;
	}
	clock_run(report, "clock leaps an hour, every 400 readings", leaping_ns);
	clock_run(report, "clock stands 20 ms of each 40", standing_ns);
	clock_run(report, "clock repeats itself for 4 ms", coarse_ns);
}
