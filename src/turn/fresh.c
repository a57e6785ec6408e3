/* SPDX-License-Identifier: MIT */
#include "turn/fresh.h"

void twi_fresh_flush(struct twi_worker *worker)
{
	for (uint32_t i = 0; i < worker->fresh_count; i++)
		twi_wheel_insert(worker->wheel, worker->fresh[i]);
	worker->fresh_count = 0;
}
