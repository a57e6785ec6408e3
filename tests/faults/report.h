/* SPDX-License-Identifier: MIT */
/*
 * Runs tours, each in a process of its own, and prints one line per fault: how many calls the fault
 * has hit, the results, and how many timeouts were accepted, ended and lost.
 *
 * A fault that hit nothing fails like one that lost a timeout, because it has tested nothing.
 */
#ifndef FAULTS_REPORT_H
#define FAULTS_REPORT_H

#include "tour.h"

#include <sys/types.h>

struct report {
	/* whether to run all variants, not only those that fit into the default run */
	bool exhaustive;
	int rows;
	int bad_rows;
	int left_out;
	long long lost;
};

/* A line of the table, summed over its runs. */
struct row {
	const char *name;
	struct tour_result *result; /* shared memory */
	int runs;
	int failed_runs;
};

struct row row_open(const char *name);
/* Prints and counts the row. */
void row_close(struct report *report, struct row *row);

/* The work of a child process for a row. */
typedef void row_body(void *arg, struct tour_result *result);

/*
 * Runs `body` in a child. Meanwhile calls `attend` in this process, if it is not NULL. Returns true
 * if the child passed.
 */
bool row_run_body(struct row *row, row_body *body, void *arg,
		  void (*attend)(pid_t child, struct tour_result *result));

/* Does the same for a tour. */
bool row_run(struct row *row, const struct tour_plan *plan);

/* Prints one line for one tour. */
void report_tour(struct report *report, const struct tour_plan *plan);

/* Prints one line for a fault that cannot be injected on this machine. */
void report_left_out(struct report *report, const char *name, const char *reason);

#endif
