/* SPDX-License-Identifier: MIT */
/* Shared by the tests of scaled timeouts: a scaled kind of a fixture's engine. */
#ifndef TESTS_SCALED_SCENE_H
#define TESTS_SCALED_SCENE_H

#include "probe.h"

#include <errno.h>

static inline struct tw_scaled *scaled_open(struct tw_engine *engine, int64_t least_ns,
					    int64_t most_ns)
{
	struct tw_scaled *scaled = NULL;

	check_int(tw_scaled_create(engine, least_ns, most_ns, &scaled), 0);
	return scaled;
}

static inline void scaled_close(struct tw_scaled *scaled)
{
	check_int(tw_scaled_stop(scaled, NULL, NULL, PATIENCE_NS), 0);
	check_int(tw_scaled_destroy(scaled), 0);
}

static inline struct tw_handle scaled_schedule(struct tw_scaled *scaled, const struct tw_kind *kind,
					       void *arg)
{
	struct tw_handle handle = TW_HANDLE_NONE;

	check_int(tw_scaled_schedule(scaled, kind, arg, &handle), 0);
	return handle;
}

static inline struct tw_handle scaled_probe(struct fixture *fixture, struct tw_scaled *scaled,
					    struct probe *probe)
{
	probe_init(probe, fixture->engine);
	return scaled_schedule(scaled, &probe_final_kind, probe);
}

static inline void factor_set(struct fixture *fixture, double factor)
{
	check_int(tw_scaled_factor_set(fixture->engine, factor), 0);
}

#endif
