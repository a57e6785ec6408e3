/* SPDX-License-Identifier: MIT */
/*
 * The slots of a scope (protocol: scope.h): how a schedule finds one, how the scope grows, and how
 * the members are read.
 */
#include "base/test_point.h"
#include "memory/memory.h"
#include "scope/scope.h"
#include "timeout/node.h"

enum {
	/* How many slots ahead a member's node is prefetched. */
	AHEAD = 16,
};

/* Returns the slot with this number. Its chunk must exist. */
static inline struct twi_scope_slot *slot_at(struct tw_scope *scope, uint64_t at)
{
	unsigned number = twi_slot_chunk(at);
	/* E141: pairs with chunk_make. The slots must be zeroed. */
	struct twi_scope_slot *first = twi_load_acquire(&scope->chunk[number]);

	return &first[at - twi_chunk_first(number)];
}

/*
 * Reads a slot that other threads may change. The halves may come from two handles. Even then the
 * node is that of some timeout. Only a swap shows whether both halves belong together.
 */
static inline struct twi_pair slot_look(const struct twi_scope_slot *slot)
{
	struct twi_pair seen;

	/*
	 * E141: acquires what an earlier owner of the slot has acquired from its member. The slot
	 * may now hold a new timeout in the same node, with another generation. Then the caller
	 * must read that timeout's state word, and no older one.
	 */
	seen.half[1] = twi_load_acquire(&slot->half[1]);
	/*
	 * E141: the node is not older than the generation. If it is newer, the two may still form a
	 * valid handle, because two nodes may have equal generations. Then the caller must read the
	 * state word of the newer timeout, and no older one.
	 */
	seen.half[0] = twi_load_acquire(&slot->half[0]);
	return seen;
}

static inline struct twi_node *pair_node(struct twi_pair seen)
{
	return (struct twi_node *)(uintptr_t)seen.half[0];
}

/* Returns whether a slot is free, or its timeout has ended and its callback does not run. */
static bool member_over(struct twi_pair seen)
{
	struct tw_handle handle = {pair_node(seen), seen.half[1]};
	uint64_t word;

	if (!twi_slot_full(handle.generation) || handle.node == NULL)
		return handle.generation == TWI_SLOT_FREE;
	/*
	 * E4: acquires what the callback has written. A waiter that finds the slot with another
	 * member relies on this acquire.
	 */
	word = twi_load_acquire(&twi_node_of_handle(handle)->word);
	if (twi_word_same(word, handle.generation) && twi_word_state(word) != TWI_WORD_CANCELLED &&
	    twi_word_state(word) != TWI_WORD_EXPIRED)
		return false;
	twi_handle_acquire(handle);
	return true;
}

/*
 * Claims a slot. Returns false if another thread claims it, or its member has not ended or still
 * runs.
 */
static bool slot_take(struct twi_scope_slot *slot)
{
	static const struct twi_pair claimed = {{0, TWI_SLOT_CLAIMED}};
	struct twi_pair seen = slot_look(slot);

	TWI_TEST_POINT("scope:seen");
	/* E141: passes on that the member has ended. */
	return member_over(seen) && twi_cas_pair_acq_rel(slot->half, seen, claimed);
}

void twi_slot_fill(struct twi_scope_slot *slot, struct tw_handle handle)
{
	/* E141: publishes that the timeout is pending. */
	twi_store_release(&slot->half[0], (uint64_t)(uintptr_t)handle.node);
	/* E141: publishes the node. */
	twi_store_release(&slot->half[1], handle.generation);
}

/* Makes a chunk, unless another thread has made it. Returns false if there is no memory. */
static bool chunk_make(struct tw_scope *scope, unsigned number)
{
	size_t bytes = twi_chunk_slots(number) * sizeof(struct twi_scope_slot);
	struct twi_scope_slot *chunk, *seen = NULL;

	/*
	 * E141: acquires another thread's chunk, because this thread publishes it again with
	 * `used`.
	 */
	if (twi_load_acquire(&scope->chunk[number]) != NULL)
		return true;
	chunk = twi_allocate_zeroed(scope->allocator, bytes, TWI_CACHE_LINE);
	if (chunk == NULL)
		return false;
	TWI_TEST_POINT("scope:growing");
	/* E141: pairs with slot_at. If the swap fails, acquires as above. */
	if (!twi_cas_acq_rel(&scope->chunk[number], &seen, chunk))
		twi_release(scope->allocator, chunk, bytes, TWI_CACHE_LINE);
	return true;
}

void twi_scope_chunks_release(struct tw_scope *scope)
{
	for (unsigned number = 1; number < TWI_SCOPE_CHUNKS; number++) {
		/* RELAXED: no other thread uses the scope any more. */
		struct twi_scope_slot *chunk = twi_load_relaxed(&scope->chunk[number]);

		if (chunk != NULL)
			twi_release(scope->allocator, chunk,
				    twi_chunk_slots(number) * sizeof *chunk, TWI_CACHE_LINE);
	}
}

static void slot_prefetch(struct tw_scope *scope, uint64_t at, uint64_t end)
{
	/* RELAXED: only a hint. */
	if (at < end)
		TWI_PREFETCH((void *)(uintptr_t)twi_load_relaxed(&slot_at(scope, at)->half[0]));
}

/*
 * Returns how many of the first `used` slots are claimed, or have a member that has not ended or
 * still runs.
 */
static uint64_t members_count(struct tw_scope *scope, uint64_t used)
{
	uint64_t members = 0;

	for (uint64_t at = 0; at < used; at++) {
		slot_prefetch(scope, at + AHEAD, used);
		members += !member_over(slot_look(slot_at(scope, at)));
	}
	return members;
}

/* Puts slots into play until there are `wanted`. Returns false if there is no memory. */
static bool scope_grow(struct tw_scope *scope, uint64_t used, uint64_t wanted)
{
	for (unsigned number = twi_slot_chunk(used - 1); number <= twi_slot_chunk(wanted - 1);
	     number++) {
		if (!chunk_make(scope, number))
			return false;
	}
	/* E141: publishes the chunks. */
	if (twi_cas_release(&scope->used, &used, wanted))
		twi_store_relaxed(&scope->cursor, used); /* RELAXED: only a hint. */
	return true;
}

/*
 * Begins a new pass over the slots. Called when a schedule has looked at the last slot. The next
 * look is at the first of the new slots or, if there are none, at the first slot of all. Returns
 * false if slots are needed and there is no memory, or if the scope has its largest size.
 */
static bool turn_over(struct tw_scope *scope, uint64_t used)
{
	uint64_t wanted = 2 * members_count(scope, used) + TWI_SCOPE_SPARE;

	if (wanted > TWI_SCOPE_SLOTS_MAX)
		wanted = TWI_SCOPE_SLOTS_MAX;
	if (wanted > used && scope_grow(scope, used, wanted))
		return true;
	twi_store_relaxed(&scope->cursor, 0); /* RELAXED: only a hint. */
	return wanted <= used && used < TWI_SCOPE_SLOTS_MAX;
}

uint64_t twi_scope_used(struct tw_scope *scope)
{
	return twi_load_acquire(&scope->used); /* E141: pairs with scope_grow. */
}

/*
 * Returns the next slot to look at. If two threads get the same one, the swap decides which of them
 * claims it.
 */
static uint64_t cursor_move(struct tw_scope *scope)
{
	/* RELAXED, load and store: only a hint. */
	uint64_t at = twi_load_relaxed(&scope->cursor);

	twi_store_relaxed(&scope->cursor, at + 1); /* RELAXED: as above */
	return at;
}

struct twi_scope_slot *twi_slot_claim(struct tw_scope *scope)
{
	bool short_of_memory = false;

	for (;;) {
		uint64_t used = twi_scope_used(scope);
		uint64_t at = cursor_move(scope);

		if (at < used) {
			struct twi_scope_slot *slot = slot_at(scope, at);

			if (slot_take(slot))
				return slot;
		} else if (short_of_memory) {
			return NULL;
		} else {
			/* Looks at all slots once more before it gives up. */
			short_of_memory = !turn_over(scope, used);
		}
	}
}

uint64_t twi_scope_members(struct tw_scope *scope)
{
	return members_count(scope, twi_scope_used(scope));
}

size_t twi_scope_row(struct tw_scope *scope, uint64_t at, uint64_t end,
		     struct twi_scope_slot **ret_slot)
{
	unsigned number = twi_slot_chunk(at);
	uint64_t last = twi_chunk_first(number) + twi_chunk_slots(number);

	*ret_slot = slot_at(scope, at);
	return (size_t)((last < end ? last : end) - at);
}

struct tw_handle twi_slot_handle(const struct twi_scope_slot *slot)
{
	/*
	 * E141: acquires the node. If the slot has another member than before, also acquires the
	 * end of the earlier member's callback.
	 */
	struct twi_pair seen = twi_load_pair_acquire(slot->half);

	if (!twi_slot_full(seen.half[1]))
		return (struct tw_handle){0};
	return (struct tw_handle){pair_node(seen), seen.half[1]};
}
