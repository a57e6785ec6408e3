/* SPDX-License-Identifier: MIT */
/*
 * Schedule: the caller makes the timer and puts it into the entry of its serial (fresh/table.h).
 * Some timers must be findable before the I/O thread has taken them: those that have a key, are
 * sent again, or are due before their commit can be done. The caller instead puts such a timer into
 * the slot of its id, and pushes it to the staging queue. It does the same if no entry is free. If
 * the timer is due before its commit can be done, the caller also arms it in the engine, before the
 * push.
 */
#include "base/sized.h"
#include "durable/fresh/table.h"
#include "durable/run.h"
#include "durable/stage.h"

#include <limits.h>
#include <stdlib.h>
#include <tickwheel/fork.h>

enum {
	/* If the slots of this many serials in a row are taken, the table counts as full. */
	SLOT_TRIES = 64,
};

static int spec_bytes_check(const struct tw_durable *set, const struct tw_durable_spec *spec)
{
	if ((spec->payload == NULL && spec->payload_bytes != 0) ||
	    (spec->key == NULL) != (spec->key_bytes == 0))
		return -EINVAL;
	if (spec->payload_bytes > set->options.payload_max || spec->key_bytes > TWI_DURABLE_KEY_MAX)
		return -EMSGSIZE;
	return 0;
}

static int spec_check(const struct tw_durable *set, const struct tw_durable_spec *spec)
{
	uint32_t known = TW_DURABLE_AT | TW_DURABLE_RESEND;
	int error;

	if (spec == NULL)
		return -EINVAL;
	error = twi_size_check(spec, spec->size, sizeof *spec, sizeof *spec);
	if (error != 0)
		return error;
	if ((spec->flags & ~known) != 0 || spec->reserved != 0 || spec->due_ns == TW_NEVER)
		return -EINVAL;
	if ((spec->flags & TW_DURABLE_RESEND) != 0 && spec->id.serial == 0)
		return -EINVAL;
	if (spec->due_ns == INT64_MIN)
		return -ERANGE;
	return spec_bytes_check(set, spec);
}

static bool due_of(struct tw_durable *set, const struct twi_durable_kind *kind,
		   const struct tw_durable_spec *spec, int64_t now_ns, int64_t *ret_due_ns)
{
	if ((spec->flags & TW_DURABLE_AT) != 0) {
		*ret_due_ns = twi_durable_from_wall(set, kind, spec->due_ns);
		return true;
	}
	return !__builtin_add_overflow(now_ns, spec->due_ns, ret_due_ns) && *ret_due_ns != TW_NEVER;
}

/* Returns the bucket of a deadline. Deadlines before 1970 are rounded down, too. */
static uint64_t place_of(int64_t due_ns)
{
	return (uint64_t)(due_ns / TWI_DURABLE_BUCKET_NS - (due_ns % TWI_DURABLE_BUCKET_NS < 0));
}

static struct twi_durable_timer *timer_make(const struct tw_durable_spec *spec)
{
	struct twi_durable_timer *timer =
		malloc(sizeof *timer + spec->payload_bytes + spec->key_bytes);

	if (timer == NULL)
		return NULL;
	memset(timer, 0, sizeof *timer);
	timer->item.type = TWI_ITEM_TIMER;
	timer->context = spec->context;
	timer->version = spec->version;
	timer->payload_bytes = spec->payload_bytes;
	timer->key_bytes = (uint8_t)spec->key_bytes;
	timer->resend = (spec->flags & TW_DURABLE_RESEND) != 0;
	if (spec->payload_bytes != 0)
		memcpy(timer->bytes, spec->payload, spec->payload_bytes);
	if (spec->key_bytes != 0)
		memcpy(timer->bytes + spec->payload_bytes, spec->key, spec->key_bytes);
	return timer;
}

/*
 * Gives a timer its id and its slot. Returns 0, or -EAGAIN if no serial is reserved or too many
 * timers wait for their commit.
 */
static int id_give(struct tw_durable *set, struct twi_durable_timer *timer,
		   const struct tw_durable_spec *spec)
{
	if (timer->resend) {
		timer->id = spec->id;
		return twi_slot_take(set, timer) ? 0 : -EAGAIN;
	}
	timer->id.place = place_of(timer->due_ns);
	for (int i = 0; i < SLOT_TRIES; i++) {
		if (!twi_serial_take(set, &timer->id.serial))
			break;
		if (twi_slot_take(set, timer))
			return 0;
	}
	twi_stage_wake(set);
	return -EAGAIN;
}

static bool due_before_commit(const struct tw_durable *set, const struct twi_durable_timer *timer,
			      int64_t now_ns)
{
	int64_t soon_ns = (int64_t)set->options.window_ns + TWI_DURABLE_MARGIN_NS;

	return timer->key_bytes == 0 && !timer->resend && !timer->confirm &&
	       twi_durable_until_ns(timer->due_ns, now_ns) <= soon_ns;
}

/* RELAXED: only a bound. Concurrent calls may exceed it by one timer each. */
static bool full(const struct tw_durable *set, int64_t bytes)
{
	return twi_load_relaxed(&set->staged_bytes) + twi_load_relaxed(&set->linger_bytes) + bytes >
	       (int64_t)set->options.staged_bytes_max;
}

/*
 * Makes all checks that need no memory. Returns 0 and the kind, the time on its clock and the
 * deadline, or a code.
 */
static int admit(struct tw_durable *set, const struct tw_durable_spec *spec,
		 struct twi_durable_kind **ret_kind, int64_t *ret_now_ns, int64_t *ret_due_ns)
{
	int error = spec_check(set, spec);
	uint32_t conditions;

	if (error != 0)
		return error;
	*ret_kind = twi_kind_find(set, spec->kind);
	if (*ret_kind == NULL)
		return -EINVAL;
	*ret_now_ns = twi_durable_now_ns(set, *ret_kind);
	if (!due_of(set, *ret_kind, spec, *ret_now_ns, ret_due_ns))
		return -ERANGE;
	/*
	 * RELAXED: a call that misses a change of the conditions counts as made before the change.
	 */
	conditions = twi_load_relaxed(&set->conditions);
	if ((conditions & TWI_CONDITION_FULL) != 0)
		return -ENOSPC;
	return (conditions & TWI_CONDITION_SLOW) != 0 ||
			       full(set, (int64_t)(sizeof(struct twi_durable_timer) +
						   spec->payload_bytes + spec->key_bytes))
		       ? -EAGAIN
		       : 0;
}

/* RELAXED: only a count. */
static void count(struct twi_lane *lanes)
{
	(void)twi_fetch_add_relaxed(&lanes[twi_lane_number()].scheduled, 1);
}

/* Stages a timer as a fresh one. Returns false if there is no entry for it. */
static bool stage_fresh(struct tw_durable *set, struct twi_durable_timer *timer,
			struct tw_durable_id *ret_id)
{
	struct twi_fresh_entry *entry = twi_fresh_timer_take(set, &timer->id.serial);

	if (entry == NULL)
		return false;
	timer->id.place = place_of(timer->due_ns);
	/* Must come before the put. After the put another thread may free the timer. */
	if (ret_id != NULL)
		*ret_id = timer->id;
	count(set->fresh_lanes);
	twi_fresh_timer_put(set, entry, timer);
	return true;
}

/*
 * Stages a timer that callers find at once. If `soon_ns` is not NULL, the timer is due soon, and
 * *soon_ns is the present time on the clock of its kind.
 */
static int stage_known(struct tw_durable *set, struct twi_durable_timer *timer,
		       const struct tw_durable_spec *spec, struct tw_durable_id *ret_id,
		       const int64_t *soon_ns)
{
	int64_t bytes = (int64_t)twi_timer_bytes(timer);
	int error = id_give(set, timer, spec);

	if (error != 0)
		return error;
	/* Must come before the push. After the push another thread may end and free the timer. */
	if (ret_id != NULL)
		*ret_id = timer->id;
	if (soon_ns != NULL)
		(void)twi_run_arm(set, timer,
				  twi_durable_shift(tw_engine_now(set->engine),
						    twi_durable_until_ns(timer->due_ns, *soon_ns)));
	count(set->lanes);
	twi_stage(set, &timer->item, bytes, false);
	return 0;
}

static int schedule(struct tw_durable *set, const struct tw_durable_spec *spec,
		    struct tw_durable_id *ret_id)
{
	int64_t now_ns, due_ns;
	struct twi_durable_timer *timer;
	struct twi_durable_kind *kind;
	bool soon;
	int error = admit(set, spec, &kind, &now_ns, &due_ns);

	if (error != 0)
		return error;
	timer = timer_make(spec);
	if (timer == NULL)
		return -ENOMEM;
	timer->kind = kind;
	timer->due_ns = due_ns;
	timer->scheduled_ns = now_ns;
	timer->confirm = (kind->user->flags & TW_DURABLE_KIND_AT_MOST_ONCE) != 0;
	soon = due_before_commit(set, timer, now_ns);
	if (timer->key_bytes == 0 && !timer->resend && !soon && stage_fresh(set, timer, ret_id))
		return 0;
	error = stage_known(set, timer, spec, ret_id, soon ? &now_ns : NULL);
	if (error != 0)
		free(timer);
	return error;
}

int tw_durable_schedule(struct tw_durable *durable, const struct tw_durable_spec *spec,
			struct tw_durable_id *ret_id)
{
	int error = twi_durable_check_open(durable);

	return error != 0 ? error : schedule(durable, spec, ret_id);
}

int tw_durable_schedule_many(struct tw_durable *durable, const struct tw_durable_spec *specs,
			     size_t count, struct tw_durable_id *ret_ids)
{
	int error = twi_durable_check_open(durable);

	if (error != 0)
		return error;
	if (specs == NULL || count == 0 || count > INT_MAX)
		return -EINVAL;
	for (size_t i = 0; i < count; i++) {
		error = schedule(durable, &specs[i], ret_ids == NULL ? NULL : &ret_ids[i]);
		if (error != 0)
			return i == 0 ? error : (int)i;
	}
	return (int)count;
}
