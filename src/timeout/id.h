/* SPDX-License-Identifier: MIT */
/*
 * Ids: a block's index in the upper 32 bits, and 32 bits of generation in the lower ones.
 *
 * A generation has 56 bits. A timeout whose generation needs more than 32 bits has no id, and a
 * schedule by id never uses a block with such a generation (api/id.c). So an id holds the whole
 * generation, which is compared with the state word like the generation of a handle.
 *
 * The block with index 0 is the head of the first slab and never a timeout, so no id is 0.
 */
#ifndef TWI_TIMEOUT_ID_H
#define TWI_TIMEOUT_ID_H

#include "timeout/node.h"

#include <tickwheel/id.h>

/* Returns whether a timeout of this generation has an id. */
static inline bool twi_generation_has_id(uint64_t generation)
{
	return generation / TWI_WORD_GENERATION <= UINT32_MAX;
}

/* Returns the id of a timeout. It must have one (twi_generation_has_id). */
static inline tw_id twi_id_of(struct tw_handle handle)
{
	return (uint64_t)twi_block_index(handle.node) << 32 |
	       handle.generation / TWI_WORD_GENERATION;
}

/*
 * Returns the handle that belongs to an id, or zeros if no slab has such a block. The block may be
 * one that is not a node. Its state word then is zero or has a final state, so it matches no
 * pending timeout.
 */
static inline struct tw_handle twi_id_handle(tw_id id)
{
	uint32_t index = (uint32_t)(id >> 32);
	/* RELAXED: as in twi_block_at. */
	struct twi_slab *slab = twi_load_relaxed(&twi_slab_table[index / TWI_SLAB_BLOCKS]);

	if (TWI_UNLIKELY(slab == NULL))
		return (struct tw_handle){0};
	return (struct tw_handle){.node = twi_slab_block(slab, index),
				  .generation = (uint64_t)(uint32_t)id * TWI_WORD_GENERATION};
}

#endif
