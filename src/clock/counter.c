/* SPDX-License-Identifier: MIT */
/*
 * The counter is trusted on two conditions. The processor must report that the counter runs evenly
 * in all power states. And the kernel must use it as its own clock source, because the kernel
 * compares the counters of all processors, and stops using them if they diverge.
 */
#include "clock/counter.h"

#include "thread/futex.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>
#include <x86intrin.h>

#define KERNEL_CLOCK "/sys/devices/system/clocksource/clocksource0/current_clocksource"

#define LEAF_POWER 0x80000007U

enum {
	INVARIANT = 1 << 8, /* the bit in EDX that says that the counter runs evenly */
	/* Of this many readings in a row, the one that took the least time is used. */
	TRIES = 16,
};

#define MEASURED_NS INT64_C(1000000)

uint64_t twi_tsc_read(void)
{
	_mm_lfence();
	return __rdtsc();
}

static bool runs_evenly(void)
{
	unsigned a, b, c, d = 0;

	return __get_cpuid(LEAF_POWER, &a, &b, &c, &d) && (d & INVARIANT) != 0;
}

static bool clock_is_tsc(void)
{
	char name[8] = "";
	int file = open(KERNEL_CLOCK, O_RDONLY | O_CLOEXEC);

	if (file < 0)
		return false;
	if (read(file, name, sizeof name - 1) < 0)
		name[0] = '\0';
	(void)close(file);
	return strcmp(name, "tsc\n") == 0;
}

static bool kernel_trusts(void)
{
	int cancel_state;
	bool trusts;

	/*
	 * If the thread were cancelled (pthread_cancel) in one of these system calls, the objects
	 * that our callers have made would leak.
	 */
	(void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	trusts = clock_is_tsc();
	(void)pthread_setcancelstate(cancel_state, NULL);
	return trusts;
}

/* The counter and CLOCK_MONOTONIC, read at nearly the same moment. */
struct moment {
	uint64_t tsc;
	int64_t ns;
};

static struct moment moment_take(void)
{
	struct moment best = {0, 0};
	uint64_t least = UINT64_MAX;

	for (int i = 0; i < TRIES; i++) {
		uint64_t before = twi_tsc_read();
		int64_t ns = twi_monotonic_ns();
		uint64_t width = twi_tsc_read() - before;

		if (width < least) {
			least = width;
			best = (struct moment){.tsc = before + width / 2, .ns = ns};
		}
	}
	return best;
}

uint64_t twi_tsc_rate(void)
{
	struct moment first, last;

	if (!runs_evenly() || !kernel_trusts())
		return 0;
	first = moment_take();
	while (twi_monotonic_ns() - first.ns < MEASURED_NS)
		;
	last = moment_take();
	if (last.tsc <= first.tsc)
		return 0;
	return ((uint64_t)(last.ns - first.ns) << 32) / (last.tsc - first.tsc);
}

#else

uint64_t twi_tsc_read(void)
{
	return 0;
}

uint64_t twi_tsc_rate(void)
{
	return 0;
}

#endif
