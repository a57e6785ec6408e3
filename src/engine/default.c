/* SPDX-License-Identifier: MIT */
/*
 * The process's own engine, made by the first thread that asks for it.
 *
 * Protocol. `wished` holds a pointer to the options that were set, or NULL, and a bit SEALED. A
 * thread that sets options swaps pointer and bit in one step, and fails if the bit is set. A thread
 * that finds no engine sets the bit, makes an engine by these options, and offers it by a swap of
 * `made`. One swap wins: it is the linearization point of the creation. The losers free their
 * engines, which no other thread has seen, and use the winner's. So every thread makes its engine
 * by the same options: those that the last successful call of twi_default_wish has set.
 *
 * Lifetime. The engine stays until the process exits. A stop joins the engine's threads, because
 * the engine is never destroyed (api/engine.c). A forked child makes its own default engine, by the
 * same options. The child's swap replaces the parent's engine. If the child has taken over the
 * parent's default engine, it keeps that engine.
 *
 * Progress: lock-free; the creation allocates.
 */
#include "base/atomic.h"
#include "engine/engine.h"
#include "memory/memory.h"
#include "timeout/recovery.h"

#include <errno.h>

#define SEALED ((uintptr_t)1)

/* The options that a caller has set. */
struct wish {
	_Alignas(TWI_CACHE_LINE) struct tw_options options;
	const struct tw_allocator *allocator;
};

static _Atomic(struct tw_engine *) made; /* [atomic E120] */
/* [atomic E120] pointer to a struct wish, and the bit SEALED */
static _Atomic uintptr_t wished;

static struct wish *wish_of(uintptr_t word)
{
	return (struct wish *)(word & ~SEALED);
}

static void wish_free(struct wish *wish)
{
	if (wish != NULL)
		twi_release(wish->allocator, wish, sizeof *wish, TWI_CACHE_LINE);
}

int twi_default_wish(const struct tw_options *options)
{
	const struct tw_allocator *allocator = twi_allocator();
	struct wish *wish = twi_allocate(allocator, sizeof *wish, TWI_CACHE_LINE);
	uintptr_t word;

	if (wish == NULL)
		return -ENOMEM;
	*wish = (struct wish){.options = *options, .allocator = allocator};
	/* RELAXED: a first guess, which the swap checks. */
	word = twi_load_relaxed(&wished);
	do {
		if ((word & SEALED) != 0) {
			wish_free(wish);
			return -EBUSY;
		}
		/*
		 * E120: releases the options to a creator. Acquires the options that this swap
		 * replaces, so that they can be freed: SEALED was not set, so no creator has read
		 * them.
		 */
	} while (!twi_cas_acq_rel(&wished, &word, (uintptr_t)wish));
	wish_free(wish_of(word));
	return 0;
}

/* Returns whether this process may use the engine. */
static bool usable(const struct tw_engine *engine)
{
	return engine != NULL && !twi_engine_of_parent(engine);
}

bool twi_default_is(const struct tw_engine *engine)
{
	/* RELAXED: the pointer is only compared. The caller already has the engine. */
	return engine == twi_load_relaxed(&made);
}

/*
 * Makes an engine and offers it instead of `seen`, which this process cannot use or which is NULL.
 * Returns NULL if no engine can be made.
 */
static TWI_COLD struct tw_engine *default_make(struct tw_engine *seen)
{
	/* E120: acquires the options. From now on twi_default_wish fails. */
	const struct wish *wish = wish_of(twi_fetch_or_acquire(&wished, SEALED));
	struct tw_engine *engine;
	struct tw_options read;

	if (twi_recovery_take() != 0 ||
	    twi_options_read(wish != NULL ? &wish->options : NULL, &read) != 0 ||
	    twi_engine_create(&read, &engine) != 0)
		return NULL;
	TWI_TEST_POINT("default:offering");
	while (!usable(seen)) {
		/* E120: releases the engine; if another thread was first, acquires its engine. */
		if (twi_cas_acq_rel(&made, &seen, engine))
			return engine;
	}
	twi_engine_free(engine);
	return seen;
}

struct tw_engine *twi_default_engine(void)
{
	/* E120: acquires the engine. */
	struct tw_engine *engine = twi_load_acquire(&made);

	return TWI_LIKELY(usable(engine)) ? engine : default_make(engine);
}
