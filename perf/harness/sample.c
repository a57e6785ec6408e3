/* SPDX-License-Identifier: MIT */
/* Makes empty samples, and checks the account of a sample. */
#include "harness/sample.h"

#include <math.h>

struct sample sample_empty(void)
{
	return (struct sample){
		.ns_per_op = NAN,
		.cpu_ns_per_op = NAN,
		.clock_reads_per_op = NAN,
		.accounted_bytes_per_pending = NAN,
		.rss_bytes_per_pending = NAN,
		.wakeups_per_s = NAN,
		.cpu_ms_per_s = NAN,
		.schedule_ns = NAN,
		.cancel_ns = NAN,
		.wall_s = NAN,
	};
}

static bool tallies_equal(struct tally a, struct tally b)
{
	return a.count == b.count && a.id_sum == b.id_sum;
}

bool account_whole(const struct account *account)
{
	struct tally ended = account->cancelled;

	tally_merge(&ended, account->unexpired);
	tally_merge(&ended, account->expired);
	return tallies_equal(account->scheduled, ended);
}

bool account_same(const struct account *a, const struct account *b)
{
	return tallies_equal(a->scheduled, b->scheduled) && tallies_equal(a->expired, b->expired);
}
