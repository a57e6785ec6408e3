/* SPDX-License-Identifier: MIT */
#include "durable/shared/session.h"

#include "durable/keep.h"

#include <errno.h>

enum {
	/*
	 * The most rows of one claim. Such a claim takes some ten milliseconds. The bound leaves
	 * rows for other sets.
	 */
	CLAIM_MAX = 1000,
};

static int64_t boot_ns(const struct tw_durable *set)
{
	return set->hooks.boot_ns(set->hooks.context);
}

/* RELAXED: only a number, which publishes nothing. */
int twi_session_beat(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	int error = store->ops->beat(store->store, &set->session);

	if (error != 0 || set->session.cut != 0)
		return error;
	twi_store_relaxed(&set->server_ns, set->session.wall_ns);
	return 0;
}

/* RELAXED: only this thread changes the session. */
bool twi_session_stale(const struct tw_durable *set, struct twi_durable_timer *timer)
{
	return set->shared && twi_load_relaxed(&timer->session) != set->session.number;
}

static uint64_t room(const struct tw_durable *set)
{
	uint64_t in_memory = set->axes[TWI_AXIS_WALL].in_memory;

	if (set->axes[TWI_AXIS_WALL].memory_bytes >= set->options.near_bytes_max)
		return 0;
	return in_memory < set->options.near_max ? set->options.near_max - in_memory : 0;
}

static int claim(struct tw_durable *set)
{
	const struct tw_durable_store *store = &set->options.store;
	size_t most = room(set) < CLAIM_MAX ? (size_t)room(set) : CLAIM_MAX;
	int count;

	if (most == 0 || (!set->claim_more && boot_ns(set) < set->session.claim_at_ns))
		return 0;
	count = store->ops->claim(store->store, most, twi_keep_load, set);
	if (count < 0) {
		set->claim_more = false;
		return count == -EAGAIN || count == -ENOMEM || count == -ENOSPC ? 0 : count;
	}
	set->counters[TWI_SHOWN_CLAIMED] += (uint64_t)count;
	set->claim_more = (size_t)count >= most;
	return set->claim_more;
}

int twi_session_claim(struct tw_durable *set)
{
	if (set->session.cut != 0)
		return 0;
	if (set->session.number != set->session_in_memory) {
		set->counters[TWI_SHOWN_SESSIONS]++;
		twi_keep_drop_stale(set);
		set->session_in_memory = set->session.number;
	}
	/* RELAXED: a later step looks at the flag again. */
	return twi_load_relaxed(&set->closing) != 0 ? 0 : claim(set);
}

int64_t twi_session_wait_ns(struct tw_durable *set)
{
	int64_t at_ns = set->session.beat_at_ns;

	if (set->session.cut == 0 && room(set) != 0 && set->session.claim_at_ns < at_ns)
		at_ns = set->session.claim_at_ns;
	return twi_durable_until_ns(at_ns, boot_ns(set));
}
