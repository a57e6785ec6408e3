/* SPDX-License-Identifier: MIT */
/*
 * Does a series of samples grow? The rule of the soak.
 *
 * A line is fitted to the samples by least squares. The standard error of its slope is widened for
 * samples that resemble their neighbours (first-order autocorrelation r of the residuals: by
 * sqrt((1 + r) / (1 - r))), as those of a process do. The series grows when the slope is above zero
 * by more than three such errors, and the growth that the line stands for is more than the floor:
 * a single page that was touched late is no leak, though it makes a slope without any noise.
 */
#ifndef SOAK_SLOPE_H
#define SOAK_SLOPE_H

#include <stdbool.h>
#include <stddef.h>

struct slope {
	double per_sample; /* of the fitted line */
	double error;      /* its standard error, widened */
	double growth;     /* of the fitted line over all samples */
};

/* At least three samples. */
struct slope slope_fit(const double *samples, size_t count);

bool slope_grows(const struct slope *slope, double floor);

#endif
