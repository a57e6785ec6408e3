/* SPDX-License-Identifier: MIT */
/* What callers and callbacks share: staging, the wake-up of the I/O thread, ids. */
#ifndef TWI_DURABLE_STAGE_H
#define TWI_DURABLE_STAGE_H

#include "durable/set.h"

/*
 * Pushes an item that is not in the queue, and that counts as `bytes` there. Wakes the I/O thread
 * if it is idle. If `urgent`, also ends its sleep during the commit window.
 */
void twi_stage(struct tw_durable *set, struct twi_item *item, int64_t bytes, bool urgent);
/* As twi_stage, but pushes nothing: the caller has put the item where the I/O thread finds it. */
void twi_stage_note(struct tw_durable *set, int64_t bytes, bool urgent);
/* Wakes the I/O thread in any case. */
void twi_stage_wake(struct tw_durable *set);

/*
 * For the I/O thread, which calls twi_stage_begin at the beginning of each step, and twi_stage_took
 * after it has taken items of `bytes` bytes. twi_stage_sleep sleeps until a wake-up, but no longer
 * than wait_ns.
 */
void twi_stage_begin(struct tw_durable *set);
void twi_stage_took(struct tw_durable *set, int64_t bytes);
void twi_stage_sleep(struct tw_durable *set, enum twi_asleep how, int64_t wait_ns);

/* Returns the number of the calling thread's lane. Threads are assigned to lanes in turn. */
uint32_t twi_lane_number(void);
/* Takes a chunk of reserved serials, for a lane. Returns false if none is left at the moment. */
bool twi_serial_chunk(struct tw_durable *set, uint64_t *ret_first);
/* Takes a serial that the store has reserved. Returns false if none is left at the moment. */
bool twi_serial_take(struct tw_durable *set, uint64_t *ret_serial);
/*
 * Adds the serials that the store has reserved up to `end`. They begin at `first`, or follow the
 * old ones if `first` is 0. Called by the I/O thread.
 */
void twi_serial_give(struct tw_durable *set, uint64_t first, uint64_t end);

/* Puts a timer into the slot where callers find it. Returns false if the slot is taken. */
bool twi_slot_take(struct tw_durable *set, struct twi_durable_timer *timer);
/* Takes a timer out of its slot. Called by the I/O thread. */
void twi_slot_clear(struct tw_durable *set, struct twi_durable_timer *timer);

/*
 * Add a timer to the table of the timers that the store has, or remove it. Called by the I/O
 * thread.
 */
void twi_hash_add(struct tw_durable *set, struct twi_durable_timer *timer);
void twi_hash_remove(struct tw_durable *set, struct twi_durable_timer *timer);

/* Returns a timer in memory, or NULL. The caller must be inside a read-side section. */
struct twi_durable_timer *twi_timer_find(struct tw_durable *set, struct tw_durable_id id);

/* Returns the set's data of a kind, or NULL if the set was opened without this kind. */
static inline struct twi_durable_kind *twi_kind_find(const struct tw_durable *set,
						     const struct tw_durable_kind *kind)
{
	for (size_t i = 0; i < set->kind_count; i++) {
		if (set->kinds[i].user == kind)
			return &set->kinds[i];
	}
	return NULL;
}

static inline uint64_t twi_timer_bytes(const struct twi_durable_timer *timer)
{
	return sizeof *timer + timer->payload_bytes + timer->key_bytes;
}

/*
 * Checks a set. Returns 0, or the code that every call returns: -EINVAL for NULL, -ECHILD in a
 * forked child.
 */
int twi_durable_check(const struct tw_durable *set);
/*
 * Checks a set for calls that stage something. Returns as twi_durable_check, or -EIO or -ESHUTDOWN.
 */
int twi_durable_check_open(struct tw_durable *set);

#endif
