/* SPDX-License-Identifier: MIT */
/* Runs tours in processes of their own, and prints the table of their results. */
#include "report.h"

#include "race.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
	OUTCOME_BYTES = 120,
};

struct row row_open(const char *name)
{
	void *memory = mmap(NULL, sizeof(struct tour_result), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	RACE_CHECK(memory != MAP_FAILED);
	return (struct row){.name = name, .result = memory};
}

/* Writes "normal service", or each code and how often it came. */
static void outcome_write(const struct row *row, char *ret_text)
{
	size_t length = 0;
	unsigned number;

	if (row->failed_runs != 0) {
		snprintf(ret_text, OUTCOME_BYTES, "%d of %d runs FAILED", row->failed_runs,
			 row->runs);
		return;
	}
	snprintf(ret_text, OUTCOME_BYTES, "normal service");
	for (number = 0; number < CODES && length < OUTCOME_BYTES - 24; number++) {
		long long count = row->result->code_count[number];

		if (count != 0)
			length += (size_t)snprintf(ret_text + length, OUTCOME_BYTES - length,
						   "%s%s %lld", length != 0 ? ", " : "",
						   code_name(number), count);
	}
}

void row_close(struct report *report, struct row *row)
{
	char outcome[OUTCOME_BYTES];
	struct tour_result *result = row->result;
	bool bad = row->failed_runs != 0 || result->tours == 0 || result->injected == 0 ||
		   result->lost != 0 || result->accepted != result->ended;

	if (report->rows++ == 0)
		printf("%-40s | %5s | %9s | %8s | %8s | %4s | %s\n", "fault", "tours", "injected",
		       "accepted", "ended", "lost", "codes that calls returned, how often");
	outcome_write(row, outcome);
	printf("%-40s | %5lld | %9lld | %8lld | %8lld | %4lld | %s%s\n", row->name,
	       (long long)result->tours, (long long)result->injected, (long long)result->accepted,
	       (long long)result->ended, (long long)result->lost, outcome,
	       result->injected == 0 ? "; HIT NOTHING" : "");
	report->bad_rows += bad;
	report->lost += result->lost;
	fflush(stdout);
	RACE_CHECK(munmap(result, sizeof *result) == 0);
}

static bool child_judge(const struct row *row, int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && row->result->complete)
		return true;
	fprintf(stderr, "%s, run %d: %s %d in step %s, at or after %s\n", row->name, row->runs,
		WIFEXITED(status) ? "exit code" : "signal",
		WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
		row->result->step != NULL ? row->result->step : "none",
		row->result->call != NULL ? row->result->call : "none");
	return false;
}

bool row_run_body(struct row *row, row_body *body, void *arg,
		  void (*attend)(pid_t child, struct tour_result *result))
{
	int status = 0;
	pid_t child;

	row->runs++;
	row->result->complete = false;
	fflush(NULL);
	child = fork();
	RACE_CHECK(child >= 0);
	if (child == 0) {
		race_watchdog(TOUR_HUNG_S);
		body(arg, row->result);
		_exit(0);
	}
	if (attend != NULL)
		attend(child, row->result);
	while (waitpid(child, &status, 0) == -1)
		RACE_CHECK(errno == EINTR);
	if (child_judge(row, status))
		return true;
	row->failed_runs++;
	return false;
}

static void body_tour(void *arg, struct tour_result *result)
{
	tour_run(arg, result);
}

bool row_run(struct row *row, const struct tour_plan *plan)
{
	struct tour_plan copy = *plan;

	return row_run_body(row, body_tour, &copy, NULL);
}

void report_tour(struct report *report, const struct tour_plan *plan)
{
	struct row row = row_open(plan->name);

	(void)row_run(&row, plan);
	row_close(report, &row);
}

void report_left_out(struct report *report, const char *name, const char *reason)
{
	report->left_out++;
	printf("%-40s | left out: %s\n", name, reason);
}
