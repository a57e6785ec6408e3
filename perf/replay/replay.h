/* SPDX-License-Identifier: MIT */
/*
 * Runs recorded timer operations through an engine.
 */
#ifndef PERF_REPLAY_REPLAY_H
#define PERF_REPLAY_REPLAY_H

#include "harness/options.h"
#include "harness/sample.h"
#include "replay/trace.h"

/* Makes one replay on a new engine. Returns 0 or the library's error. */
int replay_run(const struct options *options, const struct trace *trace, struct sample *ret_sample);

#endif
