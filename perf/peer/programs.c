/* SPDX-License-Identifier: MIT */
/* The table of the peers that are programs. perf/meson.build generates its rows. */
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
