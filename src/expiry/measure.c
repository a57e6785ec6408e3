/* SPDX-License-Identifier: MIT */
/*
 * The histograms of runs (protocol: measure.h).
 */
#include "expiry/measure.h"

#include "base/atomic.h"
#include "memory/memory.h"
#include "worker/role.h"

#include <string.h>

static size_t measure_bytes(uint32_t stripe_count)
{
	return sizeof(struct twi_measure) + stripe_count * sizeof(struct twi_measured_pair);
}

struct twi_measure *twi_measure_create(const struct tw_allocator *allocator,
				       const struct tw_options *options)
{
	uint32_t stripe_count = options->dispatch != NULL ? TWI_MEASURE_STRIPES : 0;
	struct twi_measure *measure =
		twi_allocate_zeroed(allocator, measure_bytes(stripe_count), TWI_CACHE_LINE);

	if (measure != NULL) {
		measure->stripe_count = stripe_count;
		measure->sampled = options->measure == TW_MEASURE_SAMPLES;
	}
	return measure;
}

void twi_measure_free(const struct tw_allocator *allocator, struct twi_measure *measure)
{
	if (measure != NULL)
		twi_release(allocator, measure, measure_bytes(measure->stripe_count),
			    TWI_CACHE_LINE);
}

void twi_measure_renew(struct twi_measure *measure)
{
	if (measure == NULL)
		return;
	memset(&measure->worker, 0, sizeof measure->worker);
	memset(measure->stripe, 0, measure->stripe_count * sizeof *measure->stripe);
}

/* Counts a run on the worker. RELAXED, all: the worker is the only writer. */
static inline void worker_count(struct twi_measured *measured, uint64_t value_ns)
{
	twi_count_add(&measured->bucket[twi_bucket_of(value_ns)], 1);
	twi_count_add(&measured->sum_ns, value_ns);
	if (TWI_UNLIKELY(value_ns > twi_load_relaxed(&measured->greatest_ns)))
		twi_store_relaxed(&measured->greatest_ns, value_ns);
	if (TWI_UNLIKELY(~value_ns > twi_load_relaxed(&measured->least_ns)))
		twi_store_relaxed(&measured->least_ns, ~value_ns);
}

/* Counts a run on another thread. */
static TWI_NOINLINE void stripe_count(struct twi_measured *measured, uint64_t value_ns)
{
	twi_measured_count(measured, value_ns);
}

static inline void run_count(const struct twi_run *run, uint32_t measurement, int64_t value_ns)
{
	struct twi_measure *measure = run->worker->measure;
	/*
	 * In loop mode the caller may pass a time that is ahead of the engine's clock. Then the run
	 * seems to be early, and counts as 0.
	 */
	uint64_t count_ns = value_ns > 0 ? (uint64_t)value_ns : 0;

	if (TWI_LIKELY(run->thread->worker == run->worker))
		worker_count(&measure->worker.of[measurement], count_ns);
	else
		stripe_count(
			&measure->stripe[run->thread->lane % TWI_MEASURE_STRIPES].of[measurement],
			count_ns);
}

/*
 * Chooses at random whether to measure a run, so that a regular pattern of runs cannot coincide
 * with the choice. The numbers are those of the quick generator in "Numerical Recipes" (Press et
 * al., 2nd edition, section 7.1). Its high bits are the most random ones.
 */
bool twi_measure_chosen(const struct twi_run *run)
{
	uint32_t *chance = &run->thread->chance;

	if (!run->worker->measure->sampled)
		return true;
	*chance = *chance * UINT32_C(1664525) + UINT32_C(1013904223);
	return *chance >> (32 - TWI_MEASURE_SAMPLE_BITS) == 0;
}

void twi_measure_begin(struct twi_run *run, int64_t now_ns)
{
	run->begin_ns = now_ns;
	run->marks |= TWI_RUN_MEASURED;
	run_count(run, TW_MEASUREMENT_LATENESS, now_ns - twi_node_deadline_ns(run->node));
}

void twi_measure_end(const struct twi_run *run, int64_t now_ns)
{
	run_count(run, TW_MEASUREMENT_DURATION, now_ns - run->begin_ns);
}

void twi_measure_add(const struct twi_measure *measure, uint32_t measurement,
		     struct tw_histogram *sum)
{
	twi_measured_sum(&measure->worker.of[measurement], sum);
	for (uint32_t i = 0; i < measure->stripe_count; i++)
		twi_measured_sum(&measure->stripe[i].of[measurement], sum);
}
