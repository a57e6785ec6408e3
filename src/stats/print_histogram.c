/* SPDX-License-Identifier: MIT */
/*
 * Writes one histogram alone. The percentile distribution is that of HdrHistogram's Java version,
 * with five steps for each halving of the distance to 100 %.
 */
#include "stats/histogram.h"
#include "stats/text.h"

#include "base/buckets.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

enum {
	STEPS_PER_HALF = 5,
};

/*
 * Returns the percentile of the next line. Five equal steps lead half of the way to 100 %, the next
 * five half of the rest, and so on.
 */
static double level_next(double level)
{
	double steps = 2 * STEPS_PER_HALF;

	for (double left = 50; left >= 100 - level; left /= 2)
		steps *= 2;
	return level + 100 / steps;
}

static void level_write(struct twi_text *text, uint64_t value_ns, double level, uint64_t count)
{
	uint64_t part = (uint64_t)(level * 1e10 + 0.5);
	uint64_t inverse = (uint64_t)(100 / (100 - level) * 100 + 0.5);

	twi_text_put(text,
		     "%8" PRIu64 ".000 0.%012" PRIu64 " %10" PRIu64 " %11" PRIu64 ".%02" PRIu64
		     "\n",
		     value_ns, part, count, inverse / 100, inverse % 100);
}

static uint64_t value_of(const struct tw_histogram *histogram, uint32_t bucket)
{
	uint64_t greatest = twi_bucket_greatest(bucket);

	return greatest < histogram->max_ns ? greatest : histogram->max_ns;
}

/* Writes all lines except the last, which is at 100 %. */
static void levels_write(struct twi_text *text, const struct tw_histogram *histogram)
{
	uint64_t count = 0;
	double level = 0;

	for (uint32_t i = 0; i < TWI_BUCKETS && count < histogram->count; i++) {
		if (histogram->bucket[i] == 0)
			continue;
		count += histogram->bucket[i];
		while (level < 100 && 100.0 * (double)count / (double)histogram->count >= level) {
			level_write(text, value_of(histogram, i), level, count);
			level = level_next(level);
			if (count == histogram->count)
				break;
		}
	}
}

/* Returns the square root, by Newton's method, from a first value that is not below the root. */
static double square_root(double value)
{
	double root = value > 1 ? value : 1;
	double next = (root + value / root) / 2;

	/* If the value is 0, the steps would end in a division of 0 by 0. */
	while (value > 0 && next < root) {
		root = next;
		next = (root + value / root) / 2;
	}
	return value > 0 ? root : 0;
}

/* Returns the standard deviation, computed from the middle value of each bucket. */
static double deviation_ns(const struct tw_histogram *histogram, double mean)
{
	double sum = 0;

	if (histogram->count == 0)
		return 0;
	for (uint32_t i = 0; i < TWI_BUCKETS; i++) {
		double off =
			((double)twi_bucket_least(i) + (double)value_of(histogram, i)) / 2 - mean;

		if (histogram->bucket[i] != 0)
			sum += off * off * (double)histogram->bucket[i];
	}
	return square_root(sum / (double)histogram->count);
}

static void thousandths_put(struct twi_text *text, double value)
{
	/* A recorded value may have all 64 bits. From 2^53 on a double is a whole number. */
	uint64_t whole = value < 0x1p64 ? (uint64_t)value : UINT64_MAX;
	uint64_t thousandths =
		value < 0x1p53 ? (uint64_t)((value - (double)whole) * 1000 + 0.5) : 0;

	whole += thousandths / 1000;
	twi_text_put(text, "%8" PRIu64 ".%03" PRIu64, whole, thousandths % 1000);
}

static void distribution_write(struct twi_text *text, const struct tw_histogram *histogram)
{
	double mean =
		histogram->count != 0 ? (double)histogram->sum_ns / (double)histogram->count : 0;

	twi_text_put(text, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
		     "1/(1-Percentile)");
	levels_write(text, histogram);
	if (histogram->count != 0)
		twi_text_put(text, "%8" PRIu64 ".000 1.000000000000 %10" PRIu64 "\n",
			     histogram->max_ns, histogram->count);
	twi_text_put(text, "#[Mean    = ");
	thousandths_put(text, mean);
	twi_text_put(text, ", StdDeviation   = ");
	thousandths_put(text, deviation_ns(histogram, mean));
	twi_text_put(text, "]\n#[Max     = %8" PRIu64 ".000, Total count    = %12" PRIu64 "]\n",
		     histogram->max_ns, histogram->count);
	twi_text_put(text, "#[Buckets = %12d, SubBuckets     = %12d]\n",
		     TWI_BUCKET_TOP - TWI_BUCKET_BITS + 1, 2 * TWI_BUCKET_PARTS);
}

static bool metric_right(const char *name)
{
	size_t bytes = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789_:");

	return bytes > 0 && bytes <= 128 && name[bytes] == '\0' && (*name < '0' || *name > '9');
}

static void named_write(struct twi_text *text, const struct tw_histogram *histogram,
			const char *name, uint32_t format)
{
	if (format == TW_PRINT_PROMETHEUS) {
		twi_text_put(text, "# TYPE %s_seconds histogram\n", name);
		twi_histogram_series(text, histogram, name, NULL);
		return;
	}
	if (format == TW_PRINT_JSON)
		twi_text_put(text, "{\"name\":");
	twi_text_quote(text, name, true);
	twi_text_put(text, format == TW_PRINT_JSON ? ",\"ns\":" : ": ");
	if (format == TW_PRINT_JSON) {
		twi_histogram_object(text, histogram);
		twi_text_put(text, "}\n");
	} else {
		twi_histogram_line(text, histogram);
	}
}

int tw_histogram_print(const struct tw_histogram *histogram, const char *name, uint32_t format,
		       tw_dump_hook *hook, void *context)
{
	struct twi_text text;

	if (!twi_histogram_right(histogram) || name == NULL || hook == NULL ||
	    format > TW_PRINT_PERCENTILES || (format == TW_PRINT_PROMETHEUS && !metric_right(name)))
		return -EINVAL;
	text.hook = hook;
	text.context = context;
	text.used = 0;
	if (format == TW_PRINT_PERCENTILES)
		distribution_write(&text, histogram);
	else
		named_write(&text, histogram, name, format);
	twi_text_end(&text);
	return 0;
}
