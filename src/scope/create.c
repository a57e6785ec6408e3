/* SPDX-License-Identifier: MIT */
/* Makes and destroys a scope. */
#include "base/tsan.h"
#include "memory/memory.h"
#include "scope/scope.h"
#include "thread/fork.h"

#include <errno.h>
#include <stdlib.h>
#include <tickwheel/engine.h>

static void *c_allocate(void *context, size_t bytes, size_t align)
{
	(void)context;
	return aligned_alloc(align, bytes);
}

static void c_release(void *context, void *memory, size_t bytes, size_t align)
{
	(void)context;
	(void)bytes;
	(void)align;
	free(memory);
}

static const struct tw_allocator c_allocator = {.allocate = c_allocate, .release = c_release};

static bool allocator_valid(const struct tw_allocator *allocator)
{
	return allocator == NULL || (allocator->allocate != NULL && allocator->release != NULL);
}

static size_t scope_bytes(void)
{
	return (sizeof(struct tw_scope) + TWI_CACHE_LINE - 1) / TWI_CACHE_LINE * TWI_CACHE_LINE;
}

int tw_scope_create(struct tw_engine *engine, const struct tw_allocator *allocator,
		    struct tw_scope **ret_scope)
{
	int state = tw_engine_state(engine);
	struct tw_scope *scope;

	if (ret_scope == NULL || !allocator_valid(allocator))
		return -EINVAL;
	if (state < 0)
		return state;
	if (allocator == NULL)
		allocator = &c_allocator;
	scope = twi_allocate_zeroed(allocator, scope_bytes(), TWI_CACHE_LINE);
	if (scope == NULL)
		return -ENOMEM;
	scope->engine = engine;
	scope->allocator = allocator;
	scope->fork_epoch = twi_fork_epoch;
	/* RELAXED: the caller publishes the scope. */
	twi_store_relaxed(&scope->chunk[0], scope->near);
	twi_store_relaxed(&scope->used, TWI_SCOPE_NEAR); /* RELAXED: as above */
	*ret_scope = scope;
	return 0;
}

/* Returns whether the scope must stay: it has not ended, or a call is inside. */
static bool scope_busy(struct tw_scope *scope)
{
	/* RELAXED: no other thread uses the scope any more, if the caller keeps the rules. */
	uint64_t word = twi_load_relaxed(&scope->word);

	return word >= TWI_SCOPE_INSIDE || (word & TWI_SCOPE_ENDED) == 0;
}

int tw_scope_destroy(struct tw_scope *scope)
{
	if (scope == NULL)
		return 0;
	/* In a forked child, threads of the parent may seem to be inside for ever. */
	if (twi_fork_epoch == scope->fork_epoch && scope_busy(scope))
		return -EBUSY;
	twi_scope_chunks_release(scope);
	twi_release(scope->allocator, scope, scope_bytes(), TWI_CACHE_LINE);
	return 0;
}
