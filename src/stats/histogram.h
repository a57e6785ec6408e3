/* SPDX-License-Identifier: MIT */
/*
 * Functions for the code that fills histograms and the code that prints them.
 */
#ifndef TWI_STATS_HISTOGRAM_H
#define TWI_STATS_HISTOGRAM_H

#include <stdbool.h>
#include <tickwheel/histogram.h>

/* Returns whether the caller's histogram exists and has the size that this version knows. */
static inline bool twi_histogram_right(const struct tw_histogram *histogram)
{
	return histogram != NULL && histogram->size == sizeof *histogram;
}

/* Makes an empty histogram, to which others can be added. */
void twi_histogram_begin(struct tw_histogram *ret);

/*
 * Completes a histogram whose buckets were filled. Sets `count` to their sum. Moves the least and
 * the greatest value, as far as they are known, into the first and the last bucket that is not
 * empty.
 */
void twi_histogram_flush(struct tw_histogram *histogram);

#endif
