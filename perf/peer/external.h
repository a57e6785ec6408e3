/* SPDX-License-Identifier: MIT */
/*
 * Peers outside the process.
 */
#ifndef PERF_PEER_EXTERNAL_H
#define PERF_PEER_EXTERNAL_H

#include "peer/peer.h"

/* Runs the peer's command, and reads what it tells. 0 or a negative errno value, after a message that
 * names the peer. */
int external_run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample);

#endif
