/* SPDX-License-Identifier: MIT */
#include "durable/time/linger.h"

#include "durable/stage.h"

#include <stdlib.h>

enum { ROOM_LEAST = 1024 };

static void place(struct tw_durable *set, size_t at, struct twi_linger linger)
{
	set->lingers[at] = linger;
	linger.timer->linger_at = (uint32_t)at + 1;
}

/* Puts an entry into the heap, at this place or nearer to the top. */
static void sift_up(struct tw_durable *set, size_t at, struct twi_linger linger)
{
	while (at > 0 && linger.until_ns < set->lingers[(at - 1) / 2].until_ns) {
		place(set, at, set->lingers[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	place(set, at, linger);
}

/* Puts an entry into the heap, at this place or nearer to the bottom or the top. */
static void sift(struct tw_durable *set, size_t at, struct twi_linger linger)
{
	size_t child;

	while ((child = 2 * at + 1) < set->linger_count) {
		if (child + 1 < set->linger_count &&
		    set->lingers[child + 1].until_ns < set->lingers[child].until_ns)
			child++;
		if (linger.until_ns <= set->lingers[child].until_ns)
			break;
		place(set, at, set->lingers[child]);
		at = child;
	}
	sift_up(set, at, linger);
}

static bool grow(struct tw_durable *set)
{
	size_t room = set->linger_room == 0 ? ROOM_LEAST : 2 * set->linger_room;
	struct twi_linger *lingers;

	if (set->linger_count < set->linger_room)
		return true;
	if (room >= UINT32_MAX)
		return false;
	lingers = realloc(set->lingers, room * sizeof *lingers);
	if (lingers == NULL)
		return false;
	set->lingers = lingers;
	set->linger_room = room;
	return true;
}

/* RELAXED: only a bound for callers. */
static void bytes_add(struct tw_durable *set, int64_t bytes)
{
	(void)twi_fetch_add_relaxed(&set->linger_bytes, bytes);
}

bool twi_linger_add(struct tw_durable *set, struct twi_durable_timer *timer, int64_t until_ns)
{
	if (!grow(set))
		return false;
	sift_up(set, set->linger_count++, (struct twi_linger){until_ns, timer});
	bytes_add(set, (int64_t)twi_timer_bytes(timer));
	return true;
}

void twi_linger_remove(struct tw_durable *set, struct twi_durable_timer *timer)
{
	size_t at = timer->linger_at - 1;
	struct twi_linger last = set->lingers[--set->linger_count];

	timer->linger_at = 0;
	if (last.timer != timer)
		sift(set, at, last);
	bytes_add(set, -(int64_t)twi_timer_bytes(timer));
}

struct twi_durable_timer *twi_linger_first(const struct tw_durable *set, int64_t until_ns)
{
	if (set->linger_count == 0 || set->lingers[0].until_ns > until_ns)
		return NULL;
	return set->lingers[0].timer;
}
