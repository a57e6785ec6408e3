/* SPDX-License-Identifier: MIT */
/*
 * Has the table of the peers in this build, and the names of those that a comparison needs.
 */
#include "peer/table.h"

#include "workload/workload.h"

#include <stdio.h>
#include <string.h>

static const struct peer *const in_process[] = {
	&peer_tickwheel,
	&peer_tickwheel_at,
	&peer_tickwheel_coarse,
	&peer_tickwheel_measured,
	&peer_tickwheel_sampled,
	&peer_tickwheel_limited,
	&peer_tickwheel_ordered,
	&peer_tickwheel_small_batch,
#if defined(PERF_PEER_MUTEX_WHEEL)
	&peer_mutex_wheel,
	&peer_mutex_wheel_monotonic,
#endif
#if defined(PERF_PEER_MUTEX_HEAP)
	&peer_mutex_heap,
	&peer_mutex_heap_monotonic,
#endif
#if defined(PERF_PEER_LIBEVENT)
	&peer_libevent,
	&peer_libevent_locked,
#endif
#if defined(PERF_PEER_LIBEV)
	&peer_libev,
#endif
#if defined(PERF_PEER_LIBUV)
	&peer_libuv,
#endif
#if defined(PERF_PEER_ASIO)
	&peer_asio,
#endif
#if defined(PERF_PEER_DPDK)
	&peer_dpdk,
#endif
#if defined(PERF_PEER_TIMERFD)
	&peer_timerfd,
#endif
#if defined(PERF_PEER_POSIX_TIMER)
	&peer_posix_timer,
#endif
};

enum { IN_PROCESS_COUNT = sizeof(in_process) / sizeof(*in_process) };

static const char *const required[] = {
	"netty-512", "netty-65536", "jdk",        "go",          "libevent",
	"libuv",     "dpdk",        "mutex-heap", "mutex-wheel",
};

static const char *const others[] = {
	"libevent-locked",       "libev", "asio", "timerfd", "posix-timer", "mutex-heap-monotonic",
	"mutex-wheel-monotonic",
};

unsigned peer_count(void)
{
	unsigned count = IN_PROCESS_COUNT;

	while (peer_programs[count - IN_PROCESS_COUNT].name)
		count++;
	return count;
}

const struct peer *peer_at(unsigned place)
{
	return place < IN_PROCESS_COUNT ? in_process[place]
					: &peer_programs[place - IN_PROCESS_COUNT];
}

int peer_find(const char *name)
{
	for (unsigned i = 0; i < peer_count(); i++)
		if (strcmp(peer_at(i)->name, name) == 0)
			return (int)i;
	return -1;
}

static bool among(const char *const *names, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

bool peer_known(const char *name)
{
	return peer_find(name) >= 0 ||
	       among(required, sizeof(required) / sizeof(*required), name) ||
	       among(others, sizeof(others) / sizeof(*others), name);
}

bool peer_knows(const struct peer *peer, const struct workload *workload)
{
	if (workload->kind == 0)
		return peer == &peer_tickwheel;
	return peer->workloads & workload->kind;
}

const char *peers_missing(void)
{
	static char text[256];

	text[0] = '\0';
	for (size_t i = 0; i < sizeof(required) / sizeof(*required); i++) {
		size_t used = strlen(text);

		if (peer_find(required[i]) < 0)
			snprintf(text + used, sizeof(text) - used, "%s%s", used ? ", " : "",
				 required[i]);
	}
	return text;
}
