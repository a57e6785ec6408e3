/* SPDX-License-Identifier: MIT */
/*
 * Runs recorded timer operations through an engine.
 */
#ifndef PERF_REPLAY_H
#define PERF_REPLAY_H

#include "options.h"
#include "sample.h"
#include "trace.h"

/* One replay on an engine of its own. Returns 0 or the library's error. */
int replay_run(const struct options *options, const struct trace *trace, struct sample *ret_sample);

#endif
