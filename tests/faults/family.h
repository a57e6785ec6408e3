/* SPDX-License-Identifier: MIT */
/* The families of faults. Each adds lines to the report. */
#ifndef FAULTS_FAMILY_H
#define FAULTS_FAMILY_H

#include "report.h"

typedef void family_run(struct report *report);

family_run family_memory;
family_run family_threads;
family_run family_membarrier;
family_run family_membarrier_gone;
family_run family_futex;
family_run family_clock;
family_run family_signals;
family_run family_stopped;
family_run family_ends;
family_run family_limits;

/* The membarrier family starts its program again, and runs the family with this name there. */
#define MEMBARRIER_GONE "membarrier-gone"

/* With this exit code meson reports a test as skipped. */
enum { EXIT_SKIPPED = 77 };

#endif
