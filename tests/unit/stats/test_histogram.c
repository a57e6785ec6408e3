/* SPDX-License-Identifier: MIT */
/*
 * Histograms: values that the test records must be read back, with an error of at most 1 %.
 *
 * Seen to fail with these defects: there are only 64 buckets per power of two; the least value of a
 * bucket is reported instead of the greatest; a rank is rounded down; a merge takes the least value
 * of an empty histogram; a difference keeps the greatest value of the minuend; a merge always takes
 * the greatest value of the second histogram; a loop goes one bucket too far.
 */
#include "check.h"

#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <tickwheel.h>

#define HOUR_NS (3600 * (uint64_t)NS_PER_S)

static struct tw_histogram one, other;

static void both_empty(void)
{
	one = (struct tw_histogram){.size = sizeof one};
	other = one;
}

static void record(struct tw_histogram *histogram, uint64_t value_ns, int times)
{
	while (times-- > 0)
		check_int(tw_histogram_record(histogram, value_ns), 0);
}

/*
 * Records a much greater value too. A histogram's greatest value is exact, so without this the
 * check would always pass.
 */
static void error_check(uint64_t value_ns)
{
	int64_t found_ns;

	both_empty();
	record(&one, value_ns, 1);
	record(&one, 2 * HOUR_NS, 1);
	found_ns = tw_histogram_percentile(&one, 50);
	check_at_least(found_ns, value_ns);
	check_at_most(found_ns, value_ns + value_ns / 100);
}

Test(histogram, one_percent_from_1_ns_to_1_h)
{
	for (uint64_t value_ns = 1; value_ns < HOUR_NS; value_ns += value_ns / 7 + 1)
		error_check(value_ns);
	for (unsigned bits = 0; bits < 42; bits++) {
		error_check(UINT64_C(1) << bits);
		error_check((UINT64_C(2) << bits) - 1);
	}
	error_check(HOUR_NS);
}

/* A value beyond the range of the buckets must still be exact as the greatest value. */
Test(histogram, greatest_value_is_exact_beyond_the_buckets)
{
	both_empty();
	record(&one, 0, 1);
	check_int(tw_histogram_percentile(&one, 100), 0);
	record(&one, UINT64_C(1) << 42, 1);
	record(&one, 1000 * HOUR_NS, 1);
	check_int(tw_histogram_percentile(&one, 100), 1000 * HOUR_NS);
	check_int(one.bucket[TW_HISTOGRAM_BUCKETS - 1], 2);
	record(&one, UINT64_MAX, 1);
	check_int(tw_histogram_percentile(&one, 100), INT64_MAX);
	check_true(one.max_ns == UINT64_MAX);
	check_int(one.min_ns, 0);
}

/* The values 1 to 200 have a bucket each, so their percentiles must be exact. */
Test(histogram, percentiles_of_small_values_are_exact)
{
	both_empty();
	check_int(tw_histogram_percentile(&one, 50), 0);
	for (uint64_t value_ns = 1; value_ns <= 200; value_ns++)
		record(&one, value_ns, 1);
	check_int(tw_histogram_percentile(&one, 0), 1);
	check_int(tw_histogram_percentile(&one, 0.4), 1);
	check_int(tw_histogram_percentile(&one, 0.6), 2);
	check_int(tw_histogram_percentile(&one, 50), 100);
	check_int(tw_histogram_percentile(&one, 50.1), 101);
	check_int(tw_histogram_percentile(&one, 99), 198);
	check_int(tw_histogram_percentile(&one, 99.9), 200);
	check_int(tw_histogram_percentile(&one, 100), 200);
	check_int(one.count, 200);
	check_int(one.sum_ns, 200 * 201 / 2);
	check_int(one.min_ns, 1);
	check_int(one.max_ns, 200);
}

static int by_size(const void *left, const void *right)
{
	uint64_t one_ns = *(const uint64_t *)left, other_ns = *(const uint64_t *)right;

	return one_ns < other_ns ? -1 : one_ns > other_ns;
}

/* Compares the percentiles with those of the sorted values. */
Test(histogram, percentiles_of_random_values)
{
	enum { COUNT = 10000 };
	static uint64_t value_ns[COUNT];

	srandom(7);
	both_empty();
	for (int i = 0; i < COUNT; i++) {
		value_ns[i] = (uint64_t)random() >> random() % 31;
		record(&one, value_ns[i], 1);
	}
	qsort(value_ns, COUNT, sizeof value_ns[0], by_size);
	for (int permille = 1; permille <= 1000; permille++) {
		uint64_t exact_ns = value_ns[COUNT / 1000 * permille - 1];
		int64_t found_ns = tw_histogram_percentile(&one, permille / 10.0);

		check_at_least(found_ns, exact_ns);
		check_at_most(found_ns, exact_ns + exact_ns / 100);
	}
}

Test(histogram, merge_adds_counts_and_keeps_the_extremes)
{
	both_empty();
	record(&other, 500, 3);
	check_int(tw_histogram_merge(&one, &other), 0);
	check_int(one.min_ns, 500);
	other = (struct tw_histogram){.size = sizeof other};
	check_int(tw_histogram_merge(&one, &other), 0);
	check_int(one.min_ns, 500);
	record(&other, 7, 2);
	record(&other, 90000, 1);
	check_int(tw_histogram_merge(&one, &other), 0);
	check_int(one.count, 6);
	check_int(one.sum_ns, 3 * 500 + 2 * 7 + 90000);
	check_int(one.min_ns, 7);
	check_int(one.max_ns, 90000);
	check_int(tw_histogram_percentile(&one, 33), 7);
	check_int(tw_histogram_percentile(&one, 34), 501);
}

Test(histogram, merge_keeps_the_greater_maximum)
{
	both_empty();
	record(&one, 90000, 1);
	record(&other, 500, 1);
	check_int(tw_histogram_merge(&one, &other), 0);
	check_int(one.max_ns, 90000);
}

/* The library must neither read nor change the memory after a histogram. */
Test(histogram, ends_at_its_last_bucket)
{
	struct followed {
		struct tw_histogram histogram;
		uint64_t after;
	} later = {.histogram.size = sizeof later.histogram}, earlier = later;

	check_int(offsetof(struct followed, after),
		  offsetof(struct tw_histogram, bucket) + sizeof later.histogram.bucket);
	record(&later.histogram, 500, 2);
	record(&earlier.histogram, 500, 1);
	later.after = 2;
	earlier.after = 3;
	check_int(tw_histogram_subtract(&later.histogram, &earlier.histogram), 0);
	check_int(tw_histogram_merge(&later.histogram, &earlier.histogram), 0);
	check_int(later.after, 2);
	check_int(later.histogram.count, 2);
}

Test(histogram, subtract_leaves_the_later_values)
{
	both_empty();
	record(&one, 10, 5);
	record(&one, 1000000, 1);
	other = one;
	record(&one, 20, 2);
	record(&one, 1000, 1);
	check_int(tw_histogram_subtract(&one, &other), 0);
	check_int(one.count, 3);
	check_int(one.sum_ns, 1040);
	check_int(one.min_ns, 20);
	check_at_least(one.max_ns, 1000);
	check_at_most(one.max_ns, 1010);
	check_int(tw_histogram_percentile(&one, 50), 20);
	other = one;
	check_int(tw_histogram_subtract(&one, &other), 0);
	check_int(one.count, 0);
	check_int(one.sum_ns, 0);
	check_int(one.min_ns, 0);
	check_int(one.max_ns, 0);
	/* In the other order, the subtrahend is not an earlier reading, so subtract must reject
	 * it. */
	check_int(tw_histogram_subtract(&one, &other), -ERANGE);
	check_int(one.count, 0);
}

static void on_text(void *context, const char *text, size_t bytes)
{
	(void)text;
	*(size_t *)context += bytes;
}

/* tests/print tests the output of these calls. Here are the calls that they must reject. */
Test(histogram, bad_arguments_of_print)
{
	struct tw_stats stats = {.size = sizeof stats};
	struct tw_reading reading = {.engine = "one", .stats = &stats};
	size_t bytes = 0;

	both_empty();
	other.size--;
	check_int(tw_stats_print(NULL, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(tw_stats_print(&reading, 1, TW_PRINT_TEXT, NULL, &bytes), -EINVAL);
	check_int(tw_stats_print(&reading, 1, TW_PRINT_PERCENTILES, on_text, &bytes), -EINVAL);
	reading.lateness = &other;
	check_int(tw_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	reading.lateness = NULL;
	reading.duration = &other;
	check_int(tw_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	reading.duration = NULL;
	stats.size--;
	check_int(tw_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	reading.stats = NULL;
	check_int(tw_stats_print(&reading, 1, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(tw_histogram_print(NULL, "name", TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(tw_histogram_print(&other, "name", TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(tw_histogram_print(&one, NULL, TW_PRINT_TEXT, on_text, &bytes), -EINVAL);
	check_int(tw_histogram_print(&one, "name", TW_PRINT_TEXT, NULL, &bytes), -EINVAL);
	check_int(tw_histogram_print(&one, "name", TW_PRINT_PERCENTILES + 1, on_text, &bytes),
		  -EINVAL);
	check_int(tw_histogram_print(&one, "a name", TW_PRINT_PROMETHEUS, on_text, &bytes),
		  -EINVAL);
	check_int(tw_histogram_print(&one, "1st", TW_PRINT_PROMETHEUS, on_text, &bytes), -EINVAL);
	check_int(tw_histogram_print(&one, "", TW_PRINT_PROMETHEUS, on_text, &bytes), -EINVAL);
	check_int(bytes, 0);
	/* An empty histogram must be printed all the same. */
	check_int(tw_histogram_print(&one, "name", TW_PRINT_PERCENTILES, on_text, &bytes), 0);
	check_at_least(bytes, 100);
}

Test(histogram, bad_arguments_are_rejected)
{
	struct tw_histogram *bad = &other;

	both_empty();
	bad->size--;
	check_int(tw_histogram_record(NULL, 1), -EINVAL);
	check_int(tw_histogram_record(bad, 1), -EINVAL);
	check_int(tw_histogram_percentile(NULL, 1), -EINVAL);
	check_int(tw_histogram_percentile(bad, 1), -EINVAL);
	check_int(tw_histogram_percentile(&one, -0.1), -ERANGE);
	check_int(tw_histogram_percentile(&one, 100.1), -ERANGE);
	check_int(tw_histogram_percentile(&one, (double)NAN), -ERANGE);
	check_int(tw_histogram_merge(NULL, &one), -EINVAL);
	check_int(tw_histogram_merge(&one, NULL), -EINVAL);
	check_int(tw_histogram_merge(&one, bad), -EINVAL);
	check_int(tw_histogram_merge(bad, &one), -EINVAL);
	check_int(tw_histogram_subtract(NULL, &one), -EINVAL);
	check_int(tw_histogram_subtract(&one, NULL), -EINVAL);
	check_int(tw_histogram_subtract(&one, bad), -EINVAL);
	check_int(tw_histogram_subtract(bad, &one), -EINVAL);
	check_int(one.count, 0);
}
