/* SPDX-License-Identifier: MIT */
/*
 * What histograms have in common, for those who fill and those who print them.
 */
#ifndef TWI_STATS_HISTOGRAM_H
#define TWI_STATS_HISTOGRAM_H

#include <stdbool.h>
#include <tickwheel/histogram.h>

/* One that a caller may hand in. */
bool twi_histogram_right(const struct tw_histogram *histogram);

/* Empty, and ready for others to be added. */
void twi_histogram_begin(struct tw_histogram *ret);

/*
 * After the buckets were filled: `count` is their sum, and the least and the greatest value, as far as
 * they are known, are of the first and the last bucket that has some.
 */
void twi_histogram_settle(struct tw_histogram *histogram);

#endif
