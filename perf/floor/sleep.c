/* SPDX-License-Identifier: MIT */
/*
 * By how much the system lets a thread sleep too long: a bare FUTEX_WAIT_BITSET with an absolute
 * deadline 1 to 2 ms away. The thread's timer slack is 1 ns, like the worker's.
 */
#include "harness/histogram.h"
#include "harness/measure.h"
#include "harness/probe.h"
#include "harness/random.h"

#include <linux/futex.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { FROM_US = 1000, TO_US = 2000 };
#define NS_PER_S INT64_C(1000000000)

static int64_t oversleep_ns(int64_t delay_ns)
{
	static uint32_t word;
	int64_t until_ns = measure_now_ns() + delay_ns;
	struct timespec until = {
		.tv_sec = until_ns / NS_PER_S,
		.tv_nsec = until_ns % NS_PER_S,
	};

	(void)syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 0, &until, NULL,
		      FUTEX_BITSET_MATCH_ANY);
	return measure_now_ns() - until_ns;
}

double probe_oversleep(const struct probe *probe)
{
	static struct histogram histogram;
	struct random random = random_seeded(0);

	(void)prctl(PR_SET_TIMERSLACK, 1UL);
	for (unsigned i = 0; i < PROBE_SLEEPS; i++)
		histogram_add(&histogram, oversleep_ns(random_delay_ns(&random, FROM_US, TO_US)));
	return histogram_percentile(&histogram, *(const double *)probe->parameter);
}
