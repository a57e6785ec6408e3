/* SPDX-License-Identifier: MIT */
/*
 * The programs that perf/meson.build has found.
 */
#include "peer/external.h"
#include "peer/table.h"
#include "peer_programs.h"

#include <stddef.h>

#define PROGRAM(label, ...)                                                                        \
	{                                                                                          \
		.name = (label),                                                                   \
		.workloads = WORKLOAD_KIND_SHARED,                                                 \
		.run = external_run,                                                               \
		.command = (const char *const[]){__VA_ARGS__, NULL},                               \
	},

const struct peer peer_programs[] = {PEER_PROGRAMS{.name = NULL}};
