/* SPDX-License-Identifier: MIT */
/* The machine and the build from which the figures are. */
#ifndef PERF_REPORT_MACHINE_H
#define PERF_REPORT_MACHINE_H

#include <stdint.h>

enum { MACHINE_TEXT_BYTES = 128 };

struct machine {
	/* When the harness began, UTC: 2026-01-31T12:00:00Z. */
	char date[MACHINE_TEXT_BYTES];
	/* The CPU model as the system names it, or the architecture if it does not. */
	char cpu[MACHINE_TEXT_BYTES];
	char kernel[MACHINE_TEXT_BYTES];
	/* How many CPUs this process may run on. */
	unsigned cpus;
	uint64_t memory_bytes;
	/* Compiler and flags of the harness and the library, which are built together. */
	const char *compiler;
	const char *flags;
};

/* The first call looks the data up. Only one thread may call this function. */
const struct machine *machine_get(void);

#endif
