/* SPDX-License-Identifier: MIT */
#include "durable/fresh/table.h"

#include "durable/batch.h"
#include "durable/keep.h"
#include "durable/stage.h"

#include <stdlib.h>

enum {
	/*
	 * After so many chunks that were not free, the caller pushes its timer to the staging queue
	 * (schedule.c).
	 */
	CHUNK_TRIES = 4,
	/*
	 * A scheduling thread prefetches the entry so many serials ahead, because the entry's cache
	 * line is in the cache of the I/O thread's CPU.
	 */
	AHEAD = 8,
	ENTRIES_LEAST = 64 * TWI_DURABLE_CHUNK,
	ENTRIES_MOST = 2048 * TWI_DURABLE_CHUNK,
};

bool twi_fresh_timers_create(struct tw_durable *set, uint64_t entries)
{
	uint64_t chunks = (entries < ENTRIES_LEAST  ? (uint64_t)ENTRIES_LEAST
			   : entries > ENTRIES_MOST ? (uint64_t)ENTRIES_MOST
						    : entries) /
			  TWI_DURABLE_CHUNK;
	uintptr_t at;

	/* The pages are zero, and take no memory before their first use. */
	set->fresh_memory = calloc(chunks + 1, sizeof *set->fresh_chunks);
	if (set->fresh_memory == NULL)
		return false;
	at = (uintptr_t)set->fresh_memory + TWI_CACHE_LINE - 1;
	set->fresh_chunks = (struct twi_fresh_chunk *)(at - at % TWI_CACHE_LINE);
	set->fresh_mask = chunks - 1;
	return true;
}

static struct twi_fresh_chunk *chunk_of(const struct tw_durable *set, uint64_t serial)
{
	return &set->fresh_chunks[(serial / TWI_DURABLE_CHUNK) & set->fresh_mask];
}

static struct twi_fresh_entry *entry_of(const struct tw_durable *set, uint64_t serial)
{
	return &chunk_of(set, serial)->entries[serial % TWI_DURABLE_CHUNK];
}

static uint64_t word_of(uint64_t serial, enum twi_fresh_state state)
{
	return serial * TWI_FRESH_STATES + (uint64_t)state;
}

/*
 * Returns whether the chunk of the next serials is probably free. If the I/O thread is far behind,
 * callers must not use up serials in vain. RELAXED, both: only a guess; a swap decides.
 */
static bool chunk_free_next(struct tw_durable *set)
{
	uint64_t next = twi_load_relaxed(&set->serial_next);

	return twi_load_relaxed(&chunk_of(set, next)->first) == 0;
}

/* Takes serials whose chunk is free. Returns NULL if there are none. */
static struct twi_fresh_chunk *chunk_claim(struct tw_durable *set, uint64_t *ret_first)
{
	for (int i = 0; i < CHUNK_TRIES; i++) {
		struct twi_fresh_chunk *chunk;
		uint64_t none = 0;

		if (!chunk_free_next(set) || !twi_serial_chunk(set, ret_first))
			return NULL;
		chunk = chunk_of(set, *ret_first);
		/* E109: acquires the reads of the I/O thread, which has freed the chunk. */
		if (twi_cas_acquire(&chunk->first, &none, *ret_first))
			return chunk;
	}
	return NULL;
}

/*
 * Gives a lane a new chunk, and takes its first serial. `seen`: the lane's `next`, as the caller
 * has read it.
 */
static bool lane_fill(struct tw_durable *set, uint32_t lane, uint64_t seen, uint64_t *ret_serial)
{
	struct twi_fresh_chunk *chunk = chunk_claim(set, ret_serial);

	if (chunk == NULL)
		return false;
	chunk->lane = lane;
	/* RELAXED: the push publishes it. */
	twi_store_relaxed(&chunk->given, TWI_DURABLE_CHUNK);
	twi_handover_push(&set->fresh, &chunk->link);
	/*
	 * E109: the push happens before another thread takes a serial of this chunk. Otherwise a
	 * flush of that thread could be answered before the I/O thread knows the chunk.
	 */
	if (!twi_cas_release(&set->fresh_lanes[lane].next, &seen, *ret_serial + 1))
		/*
		 * RELAXED: another thread has filled the lane, so the rest of this chunk stays
		 * unused. The entry of the chunk's first serial publishes this number.
		 */
		twi_store_relaxed(&chunk->given, 1);
	return true;
}

struct twi_fresh_entry *twi_fresh_timer_take(struct tw_durable *set, uint64_t *ret_serial)
{
	uint32_t lane = twi_lane_number();
	_Atomic uint64_t *next = &set->fresh_lanes[lane].next;
	uint64_t serial = twi_load_relaxed(next); /* RELAXED: the swap decides. */
	struct twi_fresh_entry *entry;

	while (serial % TWI_DURABLE_CHUNK != 0) {
		/* E109: pairs with lane_fill(). */
		if (!twi_cas_acquire(next, &serial, serial + 1))
			continue;
		entry = entry_of(set, serial);
		if (serial % TWI_DURABLE_CHUNK + AHEAD < TWI_DURABLE_CHUNK)
			TWI_PREFETCH_WRITE(entry + AHEAD);
		*ret_serial = serial;
		return entry;
	}
	return lane_fill(set, lane, serial, ret_serial) ? entry_of(set, *ret_serial) : NULL;
}

/* RELAXED, the three stores: the store of the word publishes them. */
void twi_fresh_timer_put(struct tw_durable *set, struct twi_fresh_entry *entry,
			 struct twi_durable_timer *timer)
{
	int64_t bytes = (int64_t)twi_timer_bytes(timer);
	uint64_t word = word_of(timer->id.serial, TWI_FRESH_STAGED);

	twi_store_relaxed(&entry->timer, timer);
	twi_store_relaxed(&entry->place, timer->id.place);
	twi_store_relaxed(&entry->context, timer->context);
	/* E109: gives the timer to the thread whose swap comes first. */
	twi_store_release(&entry->word, word);
	twi_stage_note(set, bytes, false);
}

/* RELAXED, the two loads: if the entry got another serial meanwhile, the swap fails. */
bool twi_fresh_timer_absorb(struct tw_durable *set, struct tw_durable_id id)
{
	struct twi_fresh_entry *entry = entry_of(set, id.serial);
	uint64_t word = word_of(id.serial, TWI_FRESH_STAGED);
	struct twi_durable_timer *timer;
	int64_t bytes;

	/* E109: pairs with twi_fresh_timer_put(), whose timer this thread frees. */
	if (twi_load_acquire(&entry->word) != word || id.serial > UINT64_MAX / TWI_FRESH_STATES)
		return false;
	timer = twi_load_relaxed(&entry->timer);
	if (twi_load_relaxed(&entry->place) != id.place)
		return false;
	/*
	 * E109, LIN of this cancel: this thread's reads of the entry come before the chunk's next
	 * use.
	 */
	if (!twi_cas_release(&entry->word, &word, word_of(id.serial, TWI_FRESH_ABSORBED)))
		return false;
	bytes = (int64_t)twi_timer_bytes(timer) - TWI_FRESH_BYTES;
	/* RELAXED: the rest of the bytes keeps the I/O thread awake until it has seen the entry. */
	(void)twi_fetch_sub_relaxed(&set->staged_bytes, bytes);
	twi_timer_free(timer);
	return true;
}

/* Appends the pushed chunks to the list of the open ones. */
static void chunks_take(struct tw_durable *set)
{
	struct twi_handover_link *link = twi_handover_take(&set->fresh);

	while (link != NULL) {
		struct twi_fresh_chunk *chunk =
			TWI_CONTAINER_OF(link, struct twi_fresh_chunk, link);

		link = link->next;
		chunk->next = NULL;
		*set->fresh_end = chunk;
		set->fresh_end = &chunk->next;
	}
}

/* Returns a bit for each of the first `count` entries, or for all if there are fewer. */
static uint64_t first_bits(uint64_t count)
{
	if (count == 0)
		return 0;
	return UINT64_MAX >> (64 - (count < TWI_DURABLE_CHUNK ? count : TWI_DURABLE_CHUNK));
}

/*
 * Returns the entries that this thread has not seen, one bit for each. RELAXED, all: a later step
 * finds what this one misses. A flush misses no serial that its caller took before: the push of the
 * request publishes `next` of the lane.
 */
static uint64_t unseen(struct tw_durable *set, const struct twi_fresh_chunk *chunk)
{
	uint64_t next = twi_load_relaxed(&set->fresh_lanes[chunk->lane].next);
	uint64_t first = twi_load_relaxed(&chunk->first);

	/*
	 * If the lane takes serials of this chunk, those before `next` are in use. If `next` is
	 * beyond the chunk, all its serials may be in use. If `next` is before the chunk, the
	 * difference wraps, and this thread looks at all entries, some of them in vain.
	 */
	return first_bits(next - first) & ~chunk->seen;
}

/* Returns whether an entry has the timer of this serial, or had it. */
static bool filled(const struct twi_fresh_entry *entry, uint64_t serial)
{
	/* RELAXED: nothing else of the entry is read before entry_take(). */
	return twi_load_relaxed(&entry->word) / TWI_FRESH_STATES == serial;
}

/* Returns the timer of an entry, or NULL if it was absorbed. */
static struct twi_durable_timer *entry_take(struct twi_fresh_entry *entry, uint64_t serial)
{
	uint64_t word = word_of(serial, TWI_FRESH_STAGED);

	/*
	 * E109: pairs with twi_fresh_timer_put(). If the swap fails, it pairs with
	 * twi_fresh_timer_absorb(), whose reads of the entry come before the chunk's next use.
	 */
	if (!twi_cas_acquire(&entry->word, &word, word_of(serial, TWI_FRESH_TAKEN)))
		return NULL;
	/* RELAXED: acquired with the word. */
	return twi_load_relaxed(&entry->timer);
}

static void entry_see(struct tw_durable *set, struct twi_fresh_entry *entry, uint64_t serial,
		      void (*give)(struct tw_durable *set, struct twi_durable_timer *timer))
{
	struct twi_durable_timer *timer = entry_take(entry, serial);

	if (timer != NULL) {
		give(set, timer);
		return;
	}
	set->taken_bytes += TWI_FRESH_BYTES;
	/* RELAXED: acquired with the word. */
	twi_batch_absorbed(set, (struct tw_durable_id){twi_load_relaxed(&entry->place), serial},
			   twi_load_relaxed(&entry->context));
}

/* Returns whether an entry was filled. */
static bool chunk_see(struct tw_durable *set, struct twi_fresh_chunk *chunk,
		      void (*give)(struct tw_durable *set, struct twi_durable_timer *timer))
{
	uint64_t first = twi_load_relaxed(&chunk->first); /* RELAXED: acquired with the chunk. */
	uint64_t before = chunk->seen;

	for (uint64_t bits = unseen(set, chunk); bits != 0; bits &= bits - 1) {
		unsigned at = (unsigned)__builtin_ctzll(bits);

		if (!filled(&chunk->entries[at], first + at))
			continue;
		chunk->seen |= UINT64_C(1) << at;
		entry_see(set, &chunk->entries[at], first + at, give);
	}
	return chunk->seen != before;
}

/*
 * RELAXED: acquired with the entry of the first serial. Before this thread has seen that entry,
 * `seen` lacks its bit, and the chunk is not over.
 */
static bool chunk_over(const struct twi_fresh_chunk *chunk)
{
	uint64_t all = first_bits(twi_load_relaxed(&chunk->given));

	return (chunk->seen & all) == all;
}

static void chunk_free(struct tw_durable *set, struct twi_fresh_chunk **at)
{
	struct twi_fresh_chunk *chunk = *at;

	*at = chunk->next;
	if (set->fresh_end == &chunk->next)
		set->fresh_end = at;
	chunk->seen = 0;
	/* E109: pairs with chunk_claim(). */
	twi_store_release(&chunk->first, 0);
}

bool twi_fresh_timers_collect(struct tw_durable *set,
			      void (*give)(struct tw_durable *set, struct twi_durable_timer *timer))
{
	struct twi_fresh_chunk **at = &set->fresh_open;
	bool any = false;

	chunks_take(set);
	while (*at != NULL) {
		any |= chunk_see(set, *at, give);
		if (chunk_over(*at))
			chunk_free(set, at);
		else
			at = &(*at)->next;
	}
	twi_batch_absorbed_tell(set);
	return any;
}

bool twi_fresh_timers_any(struct tw_durable *set)
{
	if (!twi_handover_empty(&set->fresh))
		return true;
	for (struct twi_fresh_chunk *chunk = set->fresh_open; chunk != NULL; chunk = chunk->next) {
		/* RELAXED: acquired with the chunk. */
		uint64_t first = twi_load_relaxed(&chunk->first);

		for (uint64_t bits = unseen(set, chunk); bits != 0; bits &= bits - 1) {
			unsigned at = (unsigned)__builtin_ctzll(bits);

			if (filled(&chunk->entries[at], first + at))
				return true;
		}
	}
	return false;
}

static void chunk_drop(struct twi_fresh_chunk *chunk)
{
	/* RELAXED: no other thread uses the set any more. */
	uint64_t first = twi_load_relaxed(&chunk->first);

	for (uint64_t at = 0; at < TWI_DURABLE_CHUNK && first != 0; at++)
		twi_timer_free(entry_take(&chunk->entries[at], first + at));
}

void twi_fresh_timers_destroy(struct tw_durable *set)
{
	for (uint64_t i = 0; set->fresh_memory != NULL && i <= set->fresh_mask; i++)
		chunk_drop(&set->fresh_chunks[i]);
	free(set->fresh_memory);
}
