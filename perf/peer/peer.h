/* SPDX-License-Identifier: MIT */
/*
 * Peers: the engines that the harness compares. tickwheel is one of them.
 *
 * A peer inside the process has a file of its own. It includes peer/shared.h if any thread may
 * schedule and cancel, or peer/loop.h if only the thread of an event loop may. A peer outside the
 * process is a program that peer/external.c starts.
 */
#ifndef PERF_PEER_PEER_H
#define PERF_PEER_PEER_H

#include "harness/options.h"
#include "harness/sample.h"
#include "workload/workload.h"

#include <stdbool.h>
#include <stdint.h>

/* One task for a peer. The options are complete: no number in them is 0 to stand for a default. */
struct peer_task {
	const struct workload *workload;
	const struct options *options;
};

struct peer {
	const char *name;
	unsigned workloads;
	/* The peer is tickwheel, with some settings. */
	bool ours;
	/* The peer takes part only if the user names it. */
	bool by_name;
	/*
	 * For tickwheel: changes the options to this peer's settings. NULL: no change. Returns 0 or
	 * a negative errno value.
	 */
	int (*set)(struct options *options);
	/*
	 * Runs one repeat, in a child process. Fills in the peer's version too. Returns 0 or a
	 * negative errno value.
	 */
	int (*run)(const struct peer *self, const struct peer_task *task,
		   struct sample *ret_sample);
	/* The command of a peer that is a program. NULL: the peer runs inside the process. */
	const char *const *command;
};

/* A set of peers is a mask with a bit for each index in the table. */
enum { PEERS_MAX = 64 };

unsigned peer_count(void);
const struct peer *peer_at(unsigned place);

/* Returns the index of a peer that is built in, or -1. */
int peer_find(const char *name);

/* Returns whether there is a peer of this name, built in or not. */
bool peer_known(const char *name);

bool peer_knows(const struct peer *peer, const struct workload *workload);

/*
 * Returns the peers that a comparison needs but that are not built in, as "a, b", or "" if there
 * are none.
 */
const char *peers_missing(void);

/* The name of tickwheel, with which all other peers are compared. */
#define PEER_OURS "tickwheel"

#endif
