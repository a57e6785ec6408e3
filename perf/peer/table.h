/* SPDX-License-Identifier: MIT */
/*
 * The peers by name. Each peer has its own file. The table (table.c) has the peers that are built
 * in.
 */
#ifndef PERF_PEER_TABLE_H
#define PERF_PEER_TABLE_H

#include "peer/peer.h"

extern const struct peer peer_tickwheel;
extern const struct peer peer_tickwheel_at;
extern const struct peer peer_tickwheel_coarse;
extern const struct peer peer_tickwheel_measured;
extern const struct peer peer_tickwheel_sampled;
extern const struct peer peer_tickwheel_limited;
extern const struct peer peer_tickwheel_ordered;
extern const struct peer peer_tickwheel_small_batch;
extern const struct peer peer_mutex_wheel;
extern const struct peer peer_mutex_wheel_monotonic;
extern const struct peer peer_mutex_heap;
extern const struct peer peer_mutex_heap_monotonic;
extern const struct peer peer_libevent;
extern const struct peer peer_libevent_locked;
extern const struct peer peer_libev;
extern const struct peer peer_libuv;
extern const struct peer peer_asio;
extern const struct peer peer_dpdk;
extern const struct peer peer_timerfd;
extern const struct peer peer_posix_timer;

/* The peers that are programs, in the order of perf/meson.build. Ends with a NULL name. */
extern const struct peer peer_programs[];

#endif
