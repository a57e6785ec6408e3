/* SPDX-License-Identifier: MIT */
/*
 * The machine and the build of the figures, which each table names.
 */
#ifndef PERF_REPORT_MACHINE_H
#define PERF_REPORT_MACHINE_H

#include <stdint.h>

enum { MACHINE_TEXT_BYTES = 128 };

struct machine {
	/* When the harness began, UTC: 2026-01-31T12:00:00Z. */
	char date[MACHINE_TEXT_BYTES];
	/* As the system calls it, or else its architecture. */
	char cpu[MACHINE_TEXT_BYTES];
	char kernel[MACHINE_TEXT_BYTES];
	/* Those that this process may run on. */
	unsigned cpus;
	uint64_t memory_bytes;
	/* Of the harness and the library, which are built together. */
	const char *compiler;
	const char *flags;
};

/* Looked up by the first call, from one thread. */
const struct machine *machine_get(void);

#endif
