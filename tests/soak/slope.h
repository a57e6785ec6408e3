/* SPDX-License-Identifier: MIT */
/*
 * The rule by which the soak decides whether a series of samples grows.
 *
 * A line is fitted to the samples by least squares. Samples of a process resemble their neighbours
 * (first-order autocorrelation r of the residuals). So the standard error of the slope is widened
 * by sqrt((1 + r) / (1 - r)). The series grows if two conditions hold. The slope is above zero by
 * more than three such errors. The growth along the line is more than the floor: a single page that
 * is touched late is no leak, although without noise it alone makes a slope above three errors.
 */
#ifndef SOAK_SLOPE_H
#define SOAK_SLOPE_H

#include <stdbool.h>
#include <stddef.h>

struct slope {
	double per_sample; /* the slope of the fitted line */
	double error;      /* the slope's standard error, widened */
	double growth;     /* how much the fitted line grows over all samples */
};

/* Fits a line to the samples, of which there must be at least three. */
struct slope slope_fit(const double *samples, size_t count);

bool slope_grows(const struct slope *slope, double floor);

#endif
