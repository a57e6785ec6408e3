/* SPDX-License-Identifier: MIT */
#include "hosts/preload/loops.h"

#include <stdatomic.h>
#include <stdlib.h>

struct entry {
	_Atomic(const uv_loop_t *) loop; /* NULL: free */
	struct tw_uv_timers *timers;
	struct entry *next;
};

static _Atomic(struct entry *) entries;
/* Most threads use one loop. */
static _Thread_local struct entry *last;

static struct entry *entry_find(const uv_loop_t *loop)
{
	struct entry *entry = last;

	if (entry != NULL && atomic_load(&entry->loop) == loop)
		return entry;
	entry = atomic_load(&entries);
	while (entry != NULL && atomic_load(&entry->loop) != loop)
		entry = entry->next;
	if (entry != NULL)
		last = entry;
	return entry;
}

/* Takes an entry that is free. The address of the entry itself keeps it from others meanwhile. */
static struct entry *entry_reuse(void)
{
	struct entry *entry = atomic_load(&entries);

	for (; entry != NULL; entry = entry->next) {
		const uv_loop_t *none = NULL;

		if (atomic_compare_exchange_strong(&entry->loop, &none,
						   (const uv_loop_t *)(void *)entry))
			return entry;
	}
	return NULL;
}

static struct entry *entry_make(void)
{
	struct entry *entry = calloc(1, sizeof *entry);

	if (entry == NULL)
		return NULL;
	atomic_store(&entry->loop, (const uv_loop_t *)(void *)entry);
	entry->next = atomic_load(&entries);
	while (!atomic_compare_exchange_weak(&entries, &entry->next, entry))
		;
	return entry;
}

struct tw_uv_timers *twi_preload_timers_find(const uv_loop_t *loop)
{
	struct entry *entry = entry_find(loop);

	return entry == NULL ? NULL : entry->timers;
}

static void entry_free(struct entry *entry)
{
	entry->timers = NULL;
	atomic_store(&entry->loop, NULL);
}

struct tw_uv_timers *twi_preload_timers_of(uv_loop_t *loop)
{
	struct tw_uv_timers *timers = twi_preload_timers_find(loop);
	struct entry *entry;

	if (timers != NULL)
		return timers;
	entry = entry_reuse();
	if (entry == NULL)
		entry = entry_make();
	if (entry == NULL)
		return NULL;
	if (tw_uv_timers_create(loop, &entry->timers) != 0) {
		entry_free(entry);
		return NULL;
	}
	atomic_store(&entry->loop, loop);
	last = entry;
	return entry->timers;
}

void twi_preload_forget(const uv_loop_t *loop)
{
	struct entry *entry = entry_find(loop);

	if (entry != NULL)
		entry_free(entry);
}
