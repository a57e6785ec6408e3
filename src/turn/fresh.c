/* SPDX-License-Identifier: MIT */
#include "turn/fresh.h"

/* Returns whether there is a hole, and every hole was left by a removed timeout. */
static TWI_WORKER_ONLY bool holes_only(const struct twi_worker *worker)
{
	bool holes = false;

	for (uint32_t i = 0; i < worker->fresh_count; i++) {
		if (worker->fresh[i] == TWI_FRESH_NUMBERED)
			return false;
		holes |= worker->fresh[i] == TWI_FRESH_REMOVED;
	}
	return holes;
}

static TWI_WORKER_ONLY void holes_close(struct twi_worker *worker)
{
	uint32_t count = 0;

	for (uint32_t i = 0; i < worker->fresh_count; i++) {
		struct twi_node *node = worker->fresh[i];

		if (node == TWI_FRESH_REMOVED)
			continue;
		node->place = count * (uintptr_t)TWI_BLOCK_BYTES | TWI_PLACE_FRESH;
		worker->fresh[count++] = node;
	}
	worker->fresh_count = count;
}

void twi_fresh_flush(struct twi_worker *worker)
{
	/* A hole uses up a sequence number too, like every position. */
	for (uint32_t i = 0; i < worker->fresh_count; i++)
		if (twi_fresh_is_node(worker->fresh[i]))
			twi_wheel_insert(worker->wheel, worker->fresh[i]);
		else
			worker->wheel->sequence++;
	worker->fresh_count = 0;
}

TWI_COLD void twi_fresh_make_room(struct twi_worker *worker)
{
	if (holes_only(worker))
		holes_close(worker);
	else
		twi_fresh_flush(worker);
}

uint64_t twi_fresh_sequence(struct twi_worker *worker)
{
	if (worker->fresh_count == 0)
		return worker->wheel->sequence++;
	if (worker->fresh_count == TWI_FRESH_MAX) {
		twi_fresh_make_room(worker);
		return twi_fresh_sequence(worker);
	}
	worker->fresh[worker->fresh_count] = TWI_FRESH_NUMBERED;
	return worker->wheel->sequence + worker->fresh_count++;
}
