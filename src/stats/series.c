/* SPDX-License-Identifier: MIT */
/*
 * Writes one histogram as part of a report: as a text line, a JSON object or a Prometheus series.
 */
#include "stats/text.h"

#include "base/buckets.h"

#include <inttypes.h>

enum {
	/* The first and the last power of two that Prometheus gets: 1 us, 73 minutes. */
	LE_BITS_MIN = 10,
	LE_BITS_MAX = TWI_BUCKET_TOP,
};

static const struct percentile {
	const char *name;
	double percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p999", 99.9}, {"p9999", 99.99}};

enum { PERCENTILES = sizeof percentiles / sizeof percentiles[0] };

static uint64_t mean_ns(const struct tw_histogram *histogram)
{
	return histogram->count != 0 ? histogram->sum_ns / histogram->count : 0;
}

void twi_histogram_line(struct twi_text *text, const struct tw_histogram *histogram)
{
	twi_text_put(text, "count %" PRIu64 ", ns: mean %" PRIu64 ", min %" PRIu64,
		     histogram->count, mean_ns(histogram), histogram->min_ns);
	for (size_t i = 0; i < PERCENTILES; i++)
		twi_text_put(text, ", %s %" PRId64, percentiles[i].name,
			     tw_histogram_percentile(histogram, percentiles[i].percent));
	twi_text_put(text, ", max %" PRIu64 "\n", histogram->max_ns);
}

void twi_histogram_object(struct twi_text *text, const struct tw_histogram *histogram)
{
	twi_text_put(text,
		     "{\"count\":%" PRIu64 ",\"sum\":%" PRIu64 ",\"mean\":%" PRIu64
		     ",\"min\":%" PRIu64 ",\"max\":%" PRIu64,
		     histogram->count, histogram->sum_ns, mean_ns(histogram), histogram->min_ns,
		     histogram->max_ns);
	for (size_t i = 0; i < PERCENTILES; i++)
		twi_text_put(text, ",\"%s\":%" PRId64, percentiles[i].name,
			     tw_histogram_percentile(histogram, percentiles[i].percent));
	twi_text_put(text, "}");
}

/*
 * Writes the beginning of a sample, up to its value: name and labels. If `bucket`, the caller must
 * add the bound of the bucket, a closing quote and a closing brace.
 */
static void sample_begin(struct twi_text *text, const char *metric, const char *part,
			 const struct twi_label *label, bool bucket)
{
	twi_text_put(text, "%s_seconds%s", metric, part);
	if (label == NULL && !bucket)
		return;
	twi_text_put(text, "{");
	if (label != NULL) {
		twi_text_put(text, "%s=", label->name);
		twi_text_quote(text, label->value, false);
	}
	if (bucket)
		twi_text_put(text, "%sle=\"", label != NULL ? "," : "");
	else
		twi_text_put(text, "}");
}

/*
 * Writes how many values lie below a power of two. The count is exact, because the power is the
 * bound of a bucket.
 */
static void bucket_write(struct twi_text *text, const char *metric, const struct twi_label *label,
			 unsigned bits, uint64_t count)
{
	sample_begin(text, metric, "_bucket", label, true);
	twi_text_seconds(text, (UINT64_C(1) << bits) - 1);
	twi_text_put(text, "\"} %" PRIu64 "\n", count);
}

void twi_histogram_series(struct twi_text *text, const struct tw_histogram *histogram,
			  const char *metric, const struct twi_label *label)
{
	uint64_t count = 0;
	uint32_t at = 0;

	for (unsigned bits = LE_BITS_MIN; bits <= LE_BITS_MAX; bits++) {
		for (; at < twi_bucket_of(UINT64_C(1) << bits); at++)
			count += histogram->bucket[at];
		bucket_write(text, metric, label, bits, count);
	}
	sample_begin(text, metric, "_bucket", label, true);
	twi_text_put(text, "+Inf\"} %" PRIu64 "\n", histogram->count);
	sample_begin(text, metric, "_sum", label, false);
	twi_text_put(text, " ");
	twi_text_seconds(text, histogram->sum_ns);
	twi_text_put(text, "\n");
	sample_begin(text, metric, "_count", label, false);
	twi_text_put(text, " %" PRIu64 "\n", histogram->count);
}
