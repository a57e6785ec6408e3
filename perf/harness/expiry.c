/* SPDX-License-Identifier: MIT */
/*
 * Counts the timeouts that have fired.
 */
#include "harness/expiry.h"

#include "harness/measure.h"

#define POLL_NS INT64_C(2000000)

void expiry_wait(const struct expiry *expiry, uint64_t count, int64_t timeout_ns)
{
	int64_t end_ns = measure_now_ns() + timeout_ns;

	while (expiry_count(expiry) < count && measure_now_ns() < end_ns)
		measure_sleep_ns(POLL_NS);
}

void expiry_fill(const struct expiry *expiry, struct sample *sample)
{
	sample->account.expired = (struct tally){
		.count = expiry_count(expiry),
		.id_sum = expiry->id_sum,
	};
	sample->lateness_ns = expiry->lateness_ns;
}
