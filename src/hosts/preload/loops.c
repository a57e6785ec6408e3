/* SPDX-License-Identifier: MIT */
#include "hosts/preload/loops.h"

#include "base/atomic.h"

#include <stddef.h>

struct entry {
	_Atomic(const uv_loop_t *) loop; /* NULL if the entry is free */
	struct tw_uv_timers *timers;
	struct entry *next; /* the next free entry of the thread that freed this one */
};

static struct entry entries[TWI_PRELOAD_LOOPS];
static _Atomic size_t entry_count;
static _Thread_local struct entry *free_entries;
/* The entry that this thread found last. Most threads use one loop only, so it is checked first. */
static _Thread_local struct entry *last;

/*
 * Returns the entry of a loop, or NULL. RELAXED, all loads: only the loop's thread uses its entry
 * (loops.h).
 */
static struct entry *entry_find(const uv_loop_t *loop)
{
	size_t count;

	if (last != NULL && twi_load_relaxed(&last->loop) == loop)
		return last;
	count = twi_load_relaxed(&entry_count);
	for (size_t i = 0; i < count && i < TWI_PRELOAD_LOOPS; i++)
		if (twi_load_relaxed(&entries[i].loop) == loop)
			return last = &entries[i];
	return NULL;
}

/*
 * Takes a free entry. Returns NULL if the table is full. RELAXED, both accesses: the count
 * publishes nothing, and the addition gives each number to one thread.
 */
static struct entry *entry_take(void)
{
	struct entry *entry = free_entries;
	size_t at;

	if (entry != NULL) {
		free_entries = entry->next;
		return entry;
	}
	/* Without this check, each further call would raise the count without bound. */
	if (twi_load_relaxed(&entry_count) >= TWI_PRELOAD_LOOPS)
		return NULL;
	at = twi_fetch_add_relaxed(&entry_count, 1);
	return at < TWI_PRELOAD_LOOPS ? &entries[at] : NULL;
}

static void entry_give(struct entry *entry)
{
	entry->next = free_entries;
	free_entries = entry;
}

struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop)
{
	struct entry *entry = entry_find(loop);

	return entry == NULL ? NULL : entry->timers;
}

/* RELAXED: only the loop's thread uses its entry (loops.h). */
struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop)
{
	struct entry *entry = entry_find(loop);

	if (entry != NULL)
		return entry->timers;
	entry = entry_take();
	if (entry == NULL)
		return NULL;
	if (tw_uv_timers_create(loop, &entry->timers) != 0) {
		entry_give(entry);
		return NULL;
	}
	twi_store_relaxed(&entry->loop, loop);
	last = entry;
	return entry->timers;
}

/* RELAXED: only the loop's thread uses its entry (loops.h). */
void twi_preload_forget(const uv_loop_t *loop)
{
	struct entry *entry = entry_find(loop);

	if (entry == NULL)
		return;
	twi_store_relaxed(&entry->loop, NULL);
	entry_give(entry);
}
