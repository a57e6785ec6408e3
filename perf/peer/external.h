/* SPDX-License-Identifier: MIT */
/* Runs peers that are programs of their own. */
#ifndef PERF_PEER_EXTERNAL_H
#define PERF_PEER_EXTERNAL_H

#include "peer/peer.h"

/*
 * Runs the peer's command, and reads its output. Returns 0, or a negative errno value after a
 * message that names the peer.
 */
int external_run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample);

#endif
