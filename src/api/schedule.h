/* SPDX-License-Identifier: MIT */
/* Declares the steps that all paths of scheduling share (schedule.c). */
#ifndef TWI_API_SCHEDULE_H
#define TWI_API_SCHEDULE_H

#include "engine/engine.h"

#include <stdbool.h>
#include <stdint.h>
#include <tickwheel/id.h>

/* Returns 0, or an error if the kind is not valid. */
int twi_kind_check(const struct tw_kind *kind);

/* Counts a rejection. Returns the node to the stock if it is not NULL. Returns `error`. */
int twi_schedule_reject(struct tw_engine *engine, struct twi_thread *thread, struct twi_node *node,
			int error);

/*
 * Writes the id that the next timeout of this thread will have (id.c). Returns false if there is no
 * memory. Until that timeout is scheduled, the thread must take no other block.
 */
bool twi_id_promise(struct twi_thread *thread, tw_id *ret_id);

/*
 * Writes the handle that the next timeout of this thread will have, as twi_id_promise writes the
 * id.
 */
bool twi_handle_promise(struct twi_thread *thread, struct tw_handle *ret_handle);

/*
 * Schedules a chain. If it returns an error, the chain was rejected and counted as rejected, and
 * still belongs to the caller.
 */
int twi_chain_schedule(struct tw_engine *engine, struct twi_thread *thread, int64_t deadline_ns,
		       const struct tw_kind *kind, struct twi_chain *chain,
		       struct tw_handle *ret_handle);

#endif
