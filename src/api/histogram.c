/* SPDX-License-Identifier: MIT */
/* Reads an engine's measurements. */
#include "stats/histogram.h"

#include "engine/misuse.h"
#include "expiry/measure.h"

#include <errno.h>

int tw_histogram_get(struct tw_engine *engine, uint32_t measurement, struct tw_histogram *ret)
{
	if (engine == NULL || measurement >= TWI_MEASUREMENTS || !twi_histogram_right(ret))
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	if (engine->worker.measure == NULL)
		return -EINVAL;
	twi_histogram_begin(ret);
	twi_measure_add(engine->worker.measure, measurement, ret);
	twi_histogram_flush(ret);
	return 0;
}
