/* SPDX-License-Identifier: MIT */
/*
 * The command line.
 */
#ifndef PERF_CLI_H
#define PERF_CLI_H

#include "harness/options.h"

#include <stdio.h>

/* Returns 0, or -1 after a message on stderr. */
int cli_parse(int argc, char **argv, struct options *ret_options);

void cli_usage(FILE *file);

#endif
