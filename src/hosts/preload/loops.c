/* SPDX-License-Identifier: MIT */
#include "hosts/preload/loops.h"

#include "base/atomic.h"

#include <stddef.h>

struct entry {
	_Atomic(const uv_loop_t *) loop; /* NULL: free */
	struct tw_uv_timers *timers;
	struct entry *next; /* in the list of free entries */
};

static struct entry entries[TWI_PRELOAD_LOOPS];
static _Atomic size_t entry_count;
static _Thread_local struct entry *free_entries;
/* Most threads use one loop. */
static _Thread_local struct entry *last;

/* RELAXED: loops.h says why. */
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

/* RELAXED: a number that each thread gets once. NULL: the table is full. */
static struct entry *entry_take(void)
{
	struct entry *entry = free_entries;
	size_t at;

	if (entry != NULL) {
		free_entries = entry->next;
		return entry;
	}
	/* It does not grow without bound. */
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

/* RELAXED: loops.h says why. */
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

/* RELAXED: loops.h says why. */
void twi_preload_forget(const uv_loop_t *loop)
{
	struct entry *entry = entry_find(loop);

	if (entry == NULL)
		return;
	twi_store_relaxed(&entry->loop, NULL);
	entry_give(entry);
}
