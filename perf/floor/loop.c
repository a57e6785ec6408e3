/* SPDX-License-Identifier: MIT */
/*
 * The cost of a pair in a loop without a wheel. It consists of the workload's own work
 * (workload/loop.c) and two calls: one stores a timeout, and the other takes that timeout back.
 */
#include "base/compiler.h"
#include "harness/measure.h"
#include "harness/probe.h"
#include "harness/sample.h"
#include "harness/shape.h"

#include <math.h>
#include <stdint.h>

struct bare_timeout {
	_Alignas(64) uint64_t word;
	int64_t deadline_ns;
	void *owner;
	const void *kind;
	void *arg;
	uint64_t place;
};

struct bare_handle {
	struct bare_timeout *timeout;
	uint64_t generation;
};

static struct bare_timeout only;

static TWI_NOINLINE int bare_schedule(void *owner, int64_t deadline_ns, const void *kind, void *arg,
				      struct bare_handle *ret_handle)
{
	uint64_t generation = only.word + 8;

	only.deadline_ns = deadline_ns;
	only.owner = owner;
	only.kind = kind;
	only.arg = arg;
	only.place = generation;
	only.word = generation;
	*ret_handle = (struct bare_handle){&only, generation};
	return 0;
}

static TWI_NOINLINE int bare_cancel(struct bare_handle handle)
{
	struct bare_timeout *timeout = handle.timeout;

	if (timeout->word != handle.generation)
		return -1;
	timeout->word++;
	timeout->place = 0;
	return 0;
}

double probe_loop_bare(const struct probe *probe)
{
	struct random random = random_seeded(1);
	struct tally scheduled = {0, 0}, cancelled = {0, 0};
	int64_t started_ns = measure_now_ns();

	for (uint64_t id = 1; id <= PROBE_OPS; id++) {
		struct bare_handle handle;

		if (bare_schedule(&only, started_ns + loop_delay_ns(&random), probe,
				  (void *)(uintptr_t)id, &handle) != 0)
			break;
		tally_add(&scheduled, id);
		if (bare_cancel(handle) == 0)
			tally_add(&cancelled, id);
	}
	if (scheduled.id_sum != cancelled.id_sum)
		return NAN;
	return (double)(measure_now_ns() - started_ns) / PROBE_OPS;
}
