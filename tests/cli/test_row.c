/* SPDX-License-Identifier: MIT */
/*
 * How tickwheel-perf combines the repeats of a measurement into a row. The row must show a bad
 * repeat, whether it is the first or a later one, but a single bad repeat must not decide the
 * figures.
 */
#include "check.h"
#include "report/row.h"

#include <math.h>

static const double far_off = 1e9;

/* Makes three repeats whose figures are 3, far off, and 4. Their median is 4. */
static void three_repeats(struct sample samples[3])
{
	static const double values[3] = {3, far_off, 4};

	for (int i = 0; i < 3; i++) {
		samples[i] = sample_empty();
		samples[i].ns_per_op = values[i];
		samples[i].cpu_ns_per_op = values[i];
		samples[i].wakeups_per_s = values[i];
		samples[i].cpu_ms_per_s = values[i];
		samples[i].wall_s = values[i];
	}
}

Test(row, figures_are_medians)
{
	static struct sample samples[3];
	static struct row row;

	three_repeats(samples);
	row_fill(&row, samples, 3, NAN);
	check_true(row.ns_per_op == 4);
	check_true(row.ns_per_op_min == 3);
	check_true(row.ns_per_op_max == far_off);
	check_true(row.cpu_ns_per_op == 4);
	check_true(row.wakeups_per_s == 4);
	check_true(row.cpu_ms_per_s == 4);
	check_true(row.wall_s == 4);
}

Test(row, what_was_not_measured_stays_so)
{
	static struct sample samples[2];
	static struct row row;

	samples[0] = samples[1] = sample_empty();
	row_fill(&row, samples, 2, NAN);
	check_true(isnan(row.wakeups_per_s));
	check_true(isnan(row.bytes_per_pending));
	check_true(row_good(&row));
}

Test(row, early_is_never_good)
{
	static struct sample samples[2];
	static struct row row;

	samples[0] = samples[1] = sample_empty();
	histogram_add(&samples[0].lateness_ns, 0);
	histogram_add(&samples[0].lateness_ns, 5000);
	histogram_add(&samples[1].lateness_ns, 5000);
	row_fill(&row, samples, 2, NAN);
	check_true(row_good(&row));

	histogram_add(&samples[1].lateness_ns, -1);
	row = (struct row){0};
	row_fill(&row, samples, 2, NAN);
	check_int(row.lateness_ns.early_count, 1);
	check_int(row.lateness_ns.count, 4);
	check_true(!row_good(&row));
	row.early_allowed = true;
	check_true(row_good(&row));
}

static double believed(double accounted, double rss)
{
	static struct sample sample;
	static struct row row;

	sample = sample_empty();
	sample.accounted_bytes_per_pending = accounted;
	sample.rss_bytes_per_pending = rss;
	row = (struct row){0};
	row_fill(&row, &sample, 1, NAN);
	return row.bytes_per_pending;
}

Test(row, growth_of_more_than_one_percent_is_the_figure)
{
	check_true(believed(100, 90) == 100);
	check_true(believed(100, 100.9) == 100);
	check_true(believed(100, 101.1) == 101.1);
	check_true(believed(100, 104) == 104);
}

static struct account three_ended(void)
{
	return (struct account){
		.scheduled = {.count = 3, .id_sum = 6},
		.cancelled = {.count = 1, .id_sum = 1},
		.expired = {.count = 1, .id_sum = 2},
		.unexpired = {.count = 1, .id_sum = 3},
	};
}

Test(account, is_whole_when_all_have_ended_once)
{
	struct account account = three_ended();

	check_true(account_whole(&account));
	account.expired.count = 2;
	check_true(!account_whole(&account));
	account = three_ended();
	account.cancelled.id_sum = 2;
	check_true(!account_whole(&account));
}

Test(account, differs_by_what_was_scheduled_or_expired)
{
	const struct account one = three_ended();
	struct account other = three_ended();

	check_true(account_same(&one, &other));
	other.scheduled.id_sum++;
	check_true(!account_same(&one, &other));
	other = three_ended();
	other.expired.id_sum++;
	check_true(!account_same(&one, &other));
	other = three_ended();
	other.expired.count++;
	check_true(!account_same(&one, &other));
}
