/* SPDX-License-Identifier: MIT */
/*
 * usage: faults FAMILY [long]
 *
 * Makes the tour through the API under each fault of a family ("all": of every family). Exit code:
 * 0 if all passed; 1 if, under some fault, a check failed, a timeout was lost, or the fault hit
 * nothing; 77 if all were skipped.
 */
#include "family.h"

#include <stdio.h>
#include <string.h>

static const struct {
	const char *name;
	family_run *run;
} families[] = {
	{"memory", family_memory},   {"threads", family_threads}, {"membarrier", family_membarrier},
	{"futex", family_futex},     {"clock", family_clock},     {"signals", family_signals},
	{"stopped", family_stopped}, {"ends", family_ends},       {"limits", family_limits},
};

enum { FAMILIES = sizeof families / sizeof families[0] };

static int verdict(const struct report *report)
{
	printf("%d faults, %d failed, %d left out, %lld lost\n", report->rows, report->bad_rows,
	       report->left_out, report->lost);
	if (report->rows == 0)
		return report->left_out != 0 ? EXIT_SKIPPED : 1;
	return report->bad_rows != 0;
}

int main(int argc, char **argv)
{
	const char *asked = argc > 1 ? argv[1] : "all";
	struct report report = {.exhaustive = argc > 2 && strcmp(argv[2], "long") == 0};
	size_t number;

	if (strcmp(asked, MEMBARRIER_GONE) == 0)
		family_membarrier_gone(&report);
	for (number = 0; number < FAMILIES; number++)
		if (strcmp(asked, "all") == 0 || strcmp(asked, families[number].name) == 0)
			families[number].run(&report);
	return verdict(&report);
}
