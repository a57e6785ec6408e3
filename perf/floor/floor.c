/* SPDX-License-Identifier: MIT */
/*
 * The floor: the cost of the parts of an operation on this machine. Each part runs alone in a loop,
 * without contention.
 */
#include "harness/measure.h"
#include "harness/options.h"
#include "harness/probe.h"

#include <ck_pr.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <tickwheel.h>
#include <time.h>

enum { OPS = PROBE_OPS };

static _Atomic uint64_t word;

static double per_op(int64_t started_ns)
{
	return (double)(measure_now_ns() - started_ns) / OPS;
}

static double read_clock(clockid_t id)
{
	int64_t started_ns = measure_now_ns();
	struct timespec now;

	for (int i = 0; i < OPS; i++)
		clock_gettime(id, &now);
	return per_op(started_ns);
}

static double probe_clock(const struct probe *probe)
{
	(void)probe;
	return read_clock(CLOCK_MONOTONIC);
}

static double probe_clock_coarse(const struct probe *probe)
{
	(void)probe;
	return read_clock(CLOCK_MONOTONIC_COARSE);
}

#if defined(__x86_64__) || defined(__i386__)
static double probe_rdtsc(const struct probe *probe)
{
	int64_t started_ns = measure_now_ns();

	(void)probe;
	for (int i = 0; i < OPS; i++)
		(void)__builtin_ia32_rdtsc();
	return per_op(started_ns);
}
#endif

static double probe_exchange(const struct probe *probe)
{
	int64_t started_ns = measure_now_ns();

	(void)probe;
	for (uint64_t i = 0; i < OPS; i++)
		atomic_exchange_explicit(&word, i, memory_order_acq_rel);
	return per_op(started_ns);
}

static double probe_cas(const struct probe *probe)
{
	int64_t started_ns = measure_now_ns();
	uint64_t expected = atomic_load(&word);

	(void)probe;
	for (int i = 0; i < OPS; i++)
		if (atomic_compare_exchange_strong_explicit(&word, &expected, expected + 1,
							    memory_order_acq_rel,
							    memory_order_acquire))
			expected++;
	return per_op(started_ns);
}

static double probe_cas_pair(const struct probe *probe)
{
	static _Alignas(16) uint64_t pair[2];
	int64_t started_ns = measure_now_ns();
	uint64_t expected[2] = {0, 0}, next[2] = {0, 0}, seen[2];

	(void)probe;
	for (uint64_t i = 0; i < OPS; i++) {
		next[1] = i;
		(void)ck_pr_cas_64_2_value(pair, expected, next, seen);
		expected[1] = i;
	}
	return per_op(started_ns);
}

static double probe_pair(const struct probe *probe)
{
	static _Atomic uint64_t other;
	int64_t started_ns = measure_now_ns();
	uint64_t expected = atomic_load(&word);

	(void)probe;
	for (uint64_t i = 0; i < OPS; i++) {
		atomic_exchange_explicit(&other, i, memory_order_acq_rel);
		if (atomic_compare_exchange_strong_explicit(&word, &expected, expected + 1,
							    memory_order_acq_rel,
							    memory_order_acquire))
			expected++;
	}
	return per_op(started_ns);
}

static const enum tw_clock_type clock_types[] = {TW_CLOCK_MONOTONIC, TW_CLOCK_BOOTTIME,
						 TW_CLOCK_COARSE, TW_CLOCK_TSC};
static const double fractions[] = {0.5, 0.99};

/* A probe of one of the library's clocks. `type` is an index into clock_types. */
#define TW_CLOCK_PROBE(label, type)                                                                \
	{                                                                                          \
		.name = "tw-clock-" label, .summary = "tw_clock_now of the " label " clock",       \
		.run = probe_tw_clock, .parameter = &clock_types[type], .producers = 1,            \
	}
#define OVERSLEEP_PROBE(label, which)                                                              \
	{                                                                                          \
		.name = "oversleep-" label,                                                        \
		.summary = "a bare futex wait until a deadline, " label, .run = probe_oversleep,   \
		.parameter = &fractions[which], .producers = 1,                                    \
	}

const struct probe floor_sleep_probes[] = {
	OVERSLEEP_PROBE("p50", 0),
	OVERSLEEP_PROBE("p99", 1),
	{.name = NULL},
};

const struct probe floor_part_probes[] = {
	{"clock", "clock_gettime(CLOCK_MONOTONIC)", probe_clock, NULL, 1},
	{"clock-coarse", "clock_gettime(CLOCK_MONOTONIC_COARSE)", probe_clock_coarse, NULL, 1},
#if defined(__x86_64__) || defined(__i386__)
	{"rdtsc", "time stamp counter", probe_rdtsc, NULL, 1},
#endif
	{"exchange", "atomic exchange", probe_exchange, NULL, 1},
	{"cas", "atomic compare-and-swap", probe_cas, NULL, 1},
	{"cas-pair", "compare-and-swap of 128 bits", probe_cas_pair, NULL, 1},
	{"exchange-cas", "an exchange and a compare-and-swap", probe_pair, NULL, 1},
	{"rcu-inlined", "liburcu-bp read-side section, inlined", probe_rcu_inlined, NULL, 1},
	{"rcu-by-call", "liburcu-bp read-side section, by call", probe_rcu_by_call, NULL, 1},
	{"mpsc-push", "push on the ingress queue, no consumer", probe_push, NULL, 1},
	{"miss", "a read that misses caches and TLB", probe_miss, NULL, 1},
	{"line", "compare-and-swap, another thread wrote last", probe_line, NULL, 1},
	{"loop-bare", "a pair of calls that store a timeout", probe_loop_bare, NULL, 1},
	{.name = NULL},
};

/* Indexed by enum tw_clock_type. */
const struct probe floor_clock_probes[] = {
	TW_CLOCK_PROBE("monotonic", 0),
	TW_CLOCK_PROBE("boottime", 1),
	TW_CLOCK_PROBE("coarse", 2),
	TW_CLOCK_PROBE("tsc", 3),
	{.name = NULL},
};

/*
 * Returns whether the library trusts the time stamp counter. Then an engine without a clock option
 * reads it, unless its tick is very short.
 */
static bool counter_trusted(void)
{
	struct tw_clock *clock;
	bool trusted;

	if (tw_clock_create(TW_CLOCK_TSC, &clock) != 0)
		return false;
	trusted = tw_clock_type(clock) == TW_CLOCK_TSC;
	(void)tw_clock_destroy(clock);
	return trusted;
}

const struct probe *floor_clock_probe(unsigned clock_type)
{
	const struct probe *probe = floor_part_probes;

	if (clock_type == OPTIONS_CLOCK_AUTO) {
		const char *name = counter_trusted() ? "rdtsc" : "clock";

		while (strcmp(probe->name, name) != 0)
			probe++;
		return probe;
	}
	return &floor_clock_probes[clock_type];
}
