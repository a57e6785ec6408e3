/* SPDX-License-Identifier: MIT */
/*
 * Peers: the engines that the harness compares. tickwheel is one of them.
 *
 * A peer inside the process has a file of its own. It includes peer/shared.h if any thread may
 * schedule and cancel, or peer/loop.h if only the thread of an event loop may. A peer outside is a
 * program, which peer/external.c starts.
 */
#ifndef PERF_PEER_PEER_H
#define PERF_PEER_PEER_H

#include "harness/options.h"
#include "harness/sample.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* The options are complete: no zeros. */
struct peer_task {
	const struct workload *workload;
	const struct options *options;
};

struct peer {
	const char *name;
	unsigned workloads;
	/* tickwheel, with any of its settings. */
	bool ours;
	/* Only where it is asked for by its name. */
	bool by_name;
	/* Of tickwheel: what this one has otherwise. NULL: nothing. 0 or a negative errno value. */
	int (*set)(struct options *options);
	/* One repeat, in a process of its own. Fills in the peer's version too. Returns 0 or a
	 * negative errno value. */
	int (*run)(const struct peer *self, const struct peer_task *task,
		   struct sample *ret_sample);
	/* A program's words; NULL: it is in the process. */
	const char *const *command;
};

/* Sets of peers are masks of their places in the table. */
enum { PEERS_MAX = 64 };

unsigned peer_count(void);
const struct peer *peer_at(unsigned place);

/* Returns the index of a peer that is built in, or -1. */
int peer_find(const char *name);

/* Whether there is such a peer, built in or not. */
bool peer_known(const char *name);

bool peer_knows(const struct peer *peer, const struct workload *workload);

/* The peers that a comparison needs but that are not built in, as "a, b", or "" for none. */
const char *peers_missing(void);

/* tickwheel itself, which all others are compared with. */
#define PEER_OURS "tickwheel"

#endif
