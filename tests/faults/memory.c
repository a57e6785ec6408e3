/* SPDX-License-Identifier: MIT */
/*
 * Allocations fail: the k-th one, the k-th and nine more, or all from the k-th on, for every k that
 * a tour reaches. The failures are in the allocator hook, in mmap and in malloc. The library does
 * not call malloc, but the C library does when it creates a thread.
 *
 * Seen to fail with these defects: slab_make() counts a slab that it could not get, so reserve
 * succeeds and reserves nothing; tw_engine_create does not give the virtual clock back when there
 * is no memory for the wheel, so the next create returns -EBUSY; a wheel does not check whether it
 * got a chunk.
 */
#include "family.h"
#include "inject.h"
#include "race.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <tickwheel.h>
#include <unistd.h>

enum { K_MAX = 3000 };

/* A source of memory that can fail. */
struct source {
	const char *name;
	struct fault *fault;
	const struct tw_allocator *allocator;
};

static struct fault hook;
static long long arm_k, arm_count;

static void arm(void *fault)
{
	fault_arm(fault, arm_k, arm_count);
}

/* Returns false if the tour makes fewer than k calls. */
static bool k_run(struct row *row, const struct tour_plan *plan, long long k)
{
	long long before = row->result->injected;

	arm_k = k;
	return row_run(row, plan) && row->result->injected > before;
}

static void name_write(char *ret_name, size_t bytes, const char *source, long long count,
		       enum tour_course course)
{
	const char *relief = course == TOUR_STOPS_IN_FAULT ? ", no relief" : "";

	if (count == 1)
		snprintf(ret_name, bytes, "%s fails, k-th%s", source, relief);
	else if (count == LLONG_MAX)
		snprintf(ret_name, bytes, "%s fails, k-th on%s", source, relief);
	else
		snprintf(ret_name, bytes, "%s fails, %lld from k%s", source, count, relief);
}

static void every_k(struct report *report, const struct source *source, long long count,
		    enum tour_course course)
{
	char name[80];
	struct row row;
	struct tour_plan plan = {
		.name = name,
		.codes = CODE_ENOMEM,
		.course = course,
		.arm = arm,
		.relent = inject_disarm,
		.injected = inject_hits,
		.context = source->fault,
		.allocator = source->allocator,
	};
	long long k = 1;

	name_write(name, sizeof name, source->name, count, course);
	row = row_open(name);
	arm_count = count;
	while (k < K_MAX && k_run(&row, &plan, k))
		k++;
	row_close(report, &row);
}

static void source_run(struct report *report, const struct source *source)
{
	long long count;

	every_k(report, source, 1, TOUR_RECOVERS);
	every_k(report, source, 10, TOUR_RECOVERS);
	every_k(report, source, LLONG_MAX, TOUR_RECOVERS);
	every_k(report, source, LLONG_MAX, TOUR_STOPS_IN_FAULT);
	if (!report->exhaustive)
		return;
	for (count = 2; count < 200; count += count / 2) {
		every_k(report, source, count, TOUR_RECOVERS);
		every_k(report, source, count, TOUR_STOPS_IN_FAULT);
	}
}

void family_memory(struct report *report)
{
	const struct source by_hook = {"allocator hook", &hook, &hook.allocator};
	const struct source by_mmap = {"mmap", &inject_fault[INJECT_MMAP], NULL};
	const struct source by_malloc = {"malloc", &inject_fault[INJECT_MALLOC], NULL};

	fault_init(&hook);
	source_run(report, &by_hook);
	if (!inject_possible()) {
		report_left_out(report, "mmap and malloc fail", INJECT_IMPOSSIBLE);
		return;
	}
	source_run(report, &by_mmap);
	if (inject_malloc_possible())
		source_run(report, &by_malloc);
	else
		report_left_out(report, "malloc fails", INJECT_IMPOSSIBLE);
}
