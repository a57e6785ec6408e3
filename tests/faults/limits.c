/* SPDX-License-Identifier: MIT */
/*
 * The process's own limits: no file descriptor left, the smallest stacks, no thread left for the
 * user, no address space left.
 *
 * Seen to fail with these defects:
 * - the worker opens a file when it begins (no file descriptor: flush waits in vain);
 * - the worker needs 64 KiB on its stack (smallest stacks: segmentation fault);
 * - start leaves the engine STARTING if it cannot create the thread (no thread left);
 * - slab_make() counts a slab that it could not get (address space: reserve succeeds and reserves
 *   nothing).
 */
#include "family.h"
#include "inject.h"
#include "race.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOBODY = 65534 };

static struct rlimit before;
static long long counted;

static long long counted_injected(void *context)
{
	(void)context;
	return counted;
}

/* This is a macro because the type of a resource's number differs between C libraries. */
#define LIMIT_SET(resource, value)                                                                 \
	do {                                                                                       \
		struct rlimit limit;                                                               \
                                                                                                   \
		RACE_CHECK(getrlimit((resource), &before) == 0);                                   \
		limit = (struct rlimit){.rlim_cur = (value), .rlim_max = before.rlim_max};         \
		RACE_CHECK(setrlimit((resource), &limit) == 0);                                    \
	} while (0)

/* File descriptors: opening must fail when the tour begins, and still when it ends. */

static void files_rejected(void)
{
	RACE_CHECK(open("/", O_RDONLY) == -1 && errno == EMFILE);
	counted++;
}

static void files_arm(void *context)
{
	(void)context;
	LIMIT_SET(RLIMIT_NOFILE, 0);
	files_rejected();
}

static void files_relent(void *context)
{
	(void)context;
	files_rejected();
}

static void files_run(struct report *report)
{
	struct tour_plan plan = {
		.name = "no file descriptor left",
		.course = TOUR_STOPS_IN_FAULT,
		.arm = files_arm,
		.relent = files_relent,
		.injected = counted_injected,
		.repeats = 5,
	};

	report_tour(report, &plan);
}

/* Stacks: the process's default size also applies to the worker that the library creates. */

static void stacks_arm(void *context)
{
	pthread_attr_t attributes;

	(void)context;
	RACE_CHECK(pthread_attr_init(&attributes) == 0);
	RACE_CHECK(pthread_attr_setstacksize(&attributes, (size_t)PTHREAD_STACK_MIN) == 0);
	RACE_CHECK(pthread_setattr_default_np(&attributes) == 0);
	(void)pthread_attr_destroy(&attributes);
	inject_stacks_watched = true;
}

static long long stacks_injected(void *context)
{
	(void)context;
	return inject_small_stacks;
}

static void stacks_run(struct report *report)
{
	struct tour_plan plan = {
		.name = "stacks of PTHREAD_STACK_MIN",
		.course = TOUR_STOPS_IN_FAULT,
		.arm = stacks_arm,
		.injected = stacks_injected,
		.stack_bytes = (size_t)PTHREAD_STACK_MIN,
		.repeats = 20,
	};

	report_tour(report, &plan);
}

/*
 * Threads: the user has reached the limit of threads. The limit does not apply to root, so the tour
 * runs as another user.
 */

static void *nothing(void *arg)
{
	return arg;
}

static void threads_rejected(void)
{
	pthread_t thread;

	RACE_CHECK(pthread_create(&thread, NULL, nothing, NULL) == EAGAIN);
}

static long long threads_injected(void *context)
{
	(void)context;
	return inject_thread_errors;
}

static void threads_arm(void *context)
{
	(void)context;
	RACE_CHECK(geteuid() != 0 || setresuid(NOBODY, NOBODY, NOBODY) == 0);
	LIMIT_SET(RLIMIT_NPROC, 0);
	threads_rejected();
}

static void threads_relent(void *context)
{
	(void)context;
	RACE_CHECK(setrlimit(RLIMIT_NPROC, &before) == 0);
}

static void threads_run(struct report *report, const char *name, enum tour_course course)
{
	struct tour_plan plan = {
		.name = name,
		.codes = CODE_ENOMEM,
		.course = course,
		.arm = threads_arm,
		.relent = threads_relent,
		.injected = threads_injected,
	};

	report_tour(report, &plan);
}

/*
 * Address space: the process may grow by `room_bytes`. That number rises from zero from run to run,
 * so that each allocation fails in one of the runs.
 */

static size_t room_bytes;

static size_t space_bytes(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	unsigned long pages = 0;

	RACE_CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1);
	(void)fclose(file);
	return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Sets the limit. */
static void space_arm(void *context)
{
	(void)context;
	LIMIT_SET(RLIMIT_AS, space_bytes() + room_bytes);
}

static void space_relent(void *context)
{
	(void)context;
	RACE_CHECK(setrlimit(RLIMIT_AS, &before) == 0);
}

static long long space_injected(void *context)
{
	(void)context;
	return inject_mmap_errors + inject_thread_errors;
}

static void space_run(struct report *report)
{
	struct row row = row_open("address space of 0 to 40 MiB more");
	struct tour_plan plan = {
		.name = row.name,
		.codes = CODE_ENOMEM,
		.arm = space_arm,
		.relent = space_relent,
		.injected = space_injected,
	};
	size_t step_bytes = report->exhaustive ? 64 << 10 : 640 << 10;

	for (room_bytes = 0; room_bytes <= 40 << 20; room_bytes += step_bytes)
		(void)row_run(&row, &plan);
	row_close(report, &row);
}

void family_limits(struct report *report)
{
	/*
	 * Leaves these faults out with ThreadSanitizer. It opens files to find function names, and
	 * without names it cannot apply its suppressions.
	 */
	if (!inject_possible()) {
		report_left_out(report, "files, stacks, threads", INJECT_IMPOSSIBLE);
		return;
	}
	files_run(report);
	stacks_run(report);
	threads_run(report, "no thread left for the user", TOUR_RECOVERS);
	threads_run(report, "the same, no relief", TOUR_STOPS_IN_FAULT);
	if (inject_malloc_possible())
		space_run(report);
	else
		report_left_out(report, "address space", "a sanitizer needs all of it");
}
