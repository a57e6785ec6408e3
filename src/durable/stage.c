/* SPDX-License-Identifier: MIT */
/*
 * Staging. Callers push items. The I/O thread takes all of them at once, and sleeps when there are
 * none.
 *
 * No wake-up is lost. A caller pushes, adds to staged_bytes, and then looks at `asleep`. The I/O
 * thread sets `asleep`, and then looks at staged_bytes. All four accesses are seq_cst (E103), so at
 * least one of the two threads reads what the other has written. The I/O thread subtracts the bytes
 * that it took. If it does so before the caller has added them, the number is not 0. Then the I/O
 * thread does not sleep, but looks again.
 */
#include "durable/stage.h"

#include "thread/futex.h"
#include "thread/rcu.h"

#include <errno.h>
#include <tickwheel/fork.h>

#if TWI_TSAN
/* The address that stands for the hash table's own edges, which ThreadSanitizer does not know. */
static char hash_edge;
#define HASH_RELEASE() __tsan_release(&hash_edge)
#define HASH_ACQUIRE() __tsan_acquire(&hash_edge)
#else
#define HASH_RELEASE() ((void)0)
#define HASH_ACQUIRE() ((void)0)
#endif

_Thread_local struct tw_durable *twi_durable_within;

void twi_stage_wake(struct tw_durable *set)
{
	/*
	 * E103: pairs with the sleeper's store. The caller makes this exchange after the stores
	 * that the sleeper must see.
	 */
	if (twi_exchange_seq_cst(&set->asleep, TWI_AWAKE) != TWI_AWAKE)
		twi_futex_wake(&set->asleep);
}

void twi_stage_note(struct tw_durable *set, int64_t bytes, bool urgent)
{
	uint32_t asleep;

	/* E103: must come before the load of `asleep`. */
	(void)twi_fetch_add_seq_cst(&set->staged_bytes, bytes);
	if (urgent)
		/* E103: must come before the load of `asleep`, too. */
		twi_store_seq_cst(&set->urgent, 1);
	asleep = twi_load_seq_cst(&set->asleep); /* E103 */
	if (TWI_UNLIKELY(asleep == TWI_ASLEEP_IDLE || (urgent && asleep != TWI_AWAKE)))
		twi_stage_wake(set);
}

void twi_stage(struct tw_durable *set, struct twi_item *item, int64_t bytes, bool urgent)
{
	twi_handover_push(&set->staging, &item->link);
	twi_stage_note(set, bytes, urgent);
}

void twi_stage_begin(struct tw_durable *set)
{
	/*
	 * E103: if a caller sets its mark after this exchange, this thread reads the mark before
	 * its next sleep. A plain store would not be enough: the exchange also acquires the push of
	 * the caller whose mark it clears.
	 */
	(void)twi_exchange_seq_cst(&set->urgent, 0);
}

void twi_stage_took(struct tw_durable *set, int64_t bytes)
{
	/* E103: callers have added these bytes already, or are about to add them. */
	(void)twi_fetch_add_seq_cst(&set->staged_bytes, -bytes);
}

void twi_stage_sleep(struct tw_durable *set, enum twi_asleep how, int64_t wait_ns)
{
	int64_t until_ns = twi_until_ns(wait_ns);
	bool work;

	/* E103: must come before the loads below. */
	twi_store_seq_cst(&set->asleep, (uint32_t)how);
	work = twi_load_seq_cst(&set->urgent) != 0;                              /* E103 */
	if (how == TWI_ASLEEP_IDLE && twi_load_seq_cst(&set->staged_bytes) != 0) /* E103 */
		work = true;
	if (!work)
		(void)twi_futex_wait(&set->asleep, (uint32_t)how, until_ns);
	/* RELAXED: a caller that still reads the old value only wakes this thread in vain. */
	twi_store_relaxed(&set->asleep, TWI_AWAKE);
}

static _Atomic uint32_t lanes_given; /* [atomic] */

uint32_t twi_lane_number(void)
{
	static _Thread_local uint32_t number; /* 1 + the lane, or 0 if the thread has none yet */

	if (number == 0) {
		/* RELAXED: the number only chooses a lane, and publishes nothing. */
		number = twi_fetch_add_relaxed(&lanes_given, 1) % TWI_DURABLE_LANES + 1;
	}
	return number - 1;
}

void twi_serial_give(struct tw_durable *set, uint64_t first, uint64_t end)
{
	/* RELAXED: the store of serial_end below publishes this one. */
	if (first != 0)
		twi_store_relaxed(&set->serial_next, first);
	/* E107: a thread that reads the new end also reads the new `serial_next`. */
	twi_store_release(&set->serial_end, end);
}

/*
 * RELAXED, the load and the swap of `serial_next`: a thread that reads the new end also reads the
 * new `serial_next`. So its swap fails if it has loaded the old one.
 */
bool twi_serial_chunk(struct tw_durable *set, uint64_t *ret_first)
{
	uint64_t next = twi_load_relaxed(&set->serial_next);

	do {
		/* E107: pairs with twi_serial_give(). */
		if (next + TWI_DURABLE_CHUNK > twi_load_acquire(&set->serial_end))
			return false;
	} while (!twi_cas_relaxed(&set->serial_next, &next, next + TWI_DURABLE_CHUNK));
	*ret_first = next;
	return true;
}

bool twi_serial_take(struct tw_durable *set, uint64_t *ret_serial)
{
	_Atomic uint64_t *lane = &set->lanes[twi_lane_number()].next;
	uint64_t next = twi_load_relaxed(lane); /* RELAXED: the swap decides. */
	uint64_t first;

	while (next % TWI_DURABLE_CHUNK != 0) {
		/* RELAXED: a serial publishes nothing; the swap makes it unique. */
		if (twi_cas_relaxed(lane, &next, next + 1)) {
			*ret_serial = next;
			return true;
		}
	}
	if (!twi_serial_chunk(set, &first))
		return false;
	/*
	 * RELAXED: a serial publishes nothing. If another thread has refilled the lane, the rest of
	 * this chunk stays unused.
	 */
	(void)twi_cas_relaxed(lane, &next, first + 1);
	*ret_serial = first;
	return true;
}

bool twi_slot_take(struct tw_durable *set, struct twi_durable_timer *timer)
{
	_Atomic(struct twi_durable_timer *) *slot = &set->slots[timer->id.serial & set->slot_mask];
	struct twi_durable_timer *none = NULL;

	/* RELAXED: only saves a swap that would fail; the swap decides. */
	if (twi_load_relaxed(slot) != NULL)
		return false;
	timer->slotted = true;
	/* E102: publishes the timer to threads that look its id up, however they got the id. */
	if (twi_cas_release(slot, &none, timer))
		return true;
	timer->slotted = false;
	return false;
}

void twi_slot_clear(struct tw_durable *set, struct twi_durable_timer *timer)
{
	if (!timer->slotted)
		return;
	timer->slotted = false;
	/*
	 * E102: a caller that does not find the timer here finds it in the hash table, if it is
	 * stored.
	 */
	twi_store_release(&set->slots[timer->id.serial & set->slot_mask], NULL);
}

void twi_hash_add(struct tw_durable *set, struct twi_durable_timer *timer)
{
	HASH_RELEASE();
	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	cds_lfht_add(set->hash, (unsigned long)timer->id.serial, &timer->node);
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
	timer->hashed = true;
}

void twi_hash_remove(struct tw_durable *set, struct twi_durable_timer *timer)
{
	if (!timer->hashed)
		return;
	timer->hashed = false;
	twi_rcu_enter(); /* E105: until we leave, no timer is freed. */
	(void)cds_lfht_del(set->hash, &timer->node);
	twi_rcu_leave(); /* E105: from here on, timers may be freed. */
}

static int same_id(struct cds_lfht_node *node, const void *id)
{
	const struct twi_durable_timer *timer =
		TWI_CONTAINER_OF(node, const struct twi_durable_timer, node);
	const struct tw_durable_id *wanted = id;

	return timer->id.serial == wanted->serial && timer->id.place == wanted->place;
}

struct twi_durable_timer *twi_timer_find(struct tw_durable *set, struct tw_durable_id id)
{
	struct twi_durable_timer *timer;
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	/* E102: pairs with twi_slot_take(), and with twi_slot_clear(). */
	timer = twi_load_acquire(&set->slots[id.serial & set->slot_mask]);
	if (timer != NULL && same_id(&timer->node, &id))
		return timer;
	HASH_ACQUIRE();
	cds_lfht_lookup(set->hash, (unsigned long)id.serial, same_id, &id, &iter);
	node = cds_lfht_iter_get_node(&iter);
	return node == NULL ? NULL : TWI_CONTAINER_OF(node, struct twi_durable_timer, node);
}

int twi_durable_check(const struct tw_durable *set)
{
	if (set == NULL)
		return -EINVAL;
	return set->generation == tw_fork_generation() ? 0 : -ECHILD;
}

/*
 * RELAXED, both loads: if this thread misses a change, the I/O thread knows of it, and ends what
 * this thread stages.
 */
int twi_durable_check_open(struct tw_durable *set)
{
	int error = twi_durable_check(set);

	if (error != 0)
		return error;
	if (twi_load_relaxed(&set->closing) != 0)
		return -ESHUTDOWN;
	return twi_load_relaxed(&set->state) == TW_DURABLE_STATE_FAILED ? -EIO : 0;
}
