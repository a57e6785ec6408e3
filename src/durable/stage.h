/* SPDX-License-Identifier: MIT */
/* What callers and callbacks share: staging, the wake-up of the I/O thread, ids. */
#ifndef TWI_DURABLE_STAGE_H
#define TWI_DURABLE_STAGE_H

#include "durable/set.h"

/* Pushes an item that was not pushed, and wakes the I/O thread if it must be. */
void twi_stage(struct tw_durable *set, struct twi_item *item, int64_t bytes, bool urgent);
/* Wakes the I/O thread, whatever it sleeps for. */
void twi_stage_wake(struct tw_durable *set);

/* For the I/O thread: a step begins; it has taken so many bytes; it sleeps until a wake, or so long. */
void twi_stage_begin(struct tw_durable *set);
void twi_stage_took(struct tw_durable *set, int64_t bytes);
void twi_stage_sleep(struct tw_durable *set, enum twi_asleep how, int64_t wait_ns);

/* A serial that the store has reserved. False: none is left at the moment. */
bool twi_serial_take(struct tw_durable *set, uint64_t *ret_serial);
/* For the I/O thread: the store has reserved those up to `end`, from `first` on if it is not 0. */
void twi_serial_give(struct tw_durable *set, uint64_t first, uint64_t end);

/* Puts a timer where callers find it. False: its place is taken. */
bool twi_slot_take(struct tw_durable *set, struct twi_durable_timer *timer);
/* For the I/O thread. */
void twi_slot_clear(struct tw_durable *set, struct twi_durable_timer *timer);

/* For the I/O thread: the table of the timers that the store has. */
void twi_hash_add(struct tw_durable *set, struct twi_durable_timer *timer);
void twi_hash_remove(struct tw_durable *set, struct twi_durable_timer *timer);

/* Inside a read-side section. NULL: it is not in memory. */
struct twi_durable_timer *twi_timer_find(struct tw_durable *set, struct tw_durable_id id);

/* NULL: the set was opened without it. */
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

/* 0, or the code that every call returns for such a set. */
int twi_durable_check(const struct tw_durable *set);
/* The same, for calls that stage something: -EIO and -ESHUTDOWN too. */
int twi_durable_check_open(struct tw_durable *set);

#endif
