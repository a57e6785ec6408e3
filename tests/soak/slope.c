/* SPDX-License-Identifier: MIT */
#include "slope.h"

#include <math.h>

static double mean_of(const double *samples, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += samples[i];
	return sum / (double)count;
}

/* Sums of products of the residuals: of each with itself, and of each with the next. */
struct residuals {
	double squares;
	double neighbours;
};

static struct residuals residuals_of(const double *samples, size_t count, double mean,
				     double per_sample)
{
	double middle = (double)(count - 1) / 2;
	struct residuals sums = {0, 0};
	double before = 0;

	for (size_t i = 0; i < count; i++) {
		double residual = samples[i] - mean - per_sample * ((double)i - middle);

		sums.squares += residual * residual;
		if (i > 0)
			sums.neighbours += before * residual;
		before = residual;
	}
	return sums;
}

/* Returns the factor by which the error is wider than for independent samples. */
static double widening(const struct residuals *sums)
{
	double r = sums->squares > 0 ? sums->neighbours / sums->squares : 0;

	if (r < 0)
		r = 0;
	if (r > 0.95)
		r = 0.95;
	return sqrt((1 + r) / (1 - r));
}

struct slope slope_fit(const double *samples, size_t count)
{
	double middle = (double)(count - 1) / 2;
	double mean = mean_of(samples, count);
	struct slope slope = {0, 0, 0};
	struct residuals sums;
	double spread = 0;

	for (size_t i = 0; i < count; i++) {
		double at = (double)i - middle;

		spread += at * at;
		slope.per_sample += at * (samples[i] - mean);
	}
	slope.per_sample /= spread;
	sums = residuals_of(samples, count, mean, slope.per_sample);
	slope.error = sqrt(sums.squares / (double)(count - 2) / spread) * widening(&sums);
	slope.growth = slope.per_sample * (double)(count - 1);
	return slope;
}

bool slope_grows(const struct slope *slope, double floor)
{
	return slope->per_sample > 3 * slope->error && slope->growth > floor;
}
