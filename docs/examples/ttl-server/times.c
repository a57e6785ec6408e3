/* SPDX-License-Identifier: MIT */
/* EXPIRE and its variants, TTL and PERSIST: the time that a key has left. */
#include "command.h"

#include <time.h>

bool deadline_after(int64_t from_ns, int64_t amount, int64_t unit_ns, int64_t *ret_ns)
{
	int64_t delay_ns;

	return !__builtin_mul_overflow(amount, unit_ns, &delay_ns) &&
	       !__builtin_add_overflow(from_ns, delay_ns, ret_ns) && *ret_ns < STORE_NEVER;
}

void reply_invalid_expire(const struct call *call)
{
	reply_error_about(call->out, "ERR invalid expire time in ", call->command->name,
			  " command");
}

/*
 * Sets a deadline: the number in the argument, in units of the command, after `from_ns`. If the
 * deadline has passed, the key is removed.
 */
static void expire_from(const struct call *call, int64_t from_ns)
{
	struct entry *entry = call_find(call, 1);
	int64_t amount;
	int64_t deadline_ns;

	if (!span_to_int64(call->args[2], &amount)) {
		reply_error(call->out, NOT_AN_INTEGER);
	} else if (!deadline_after(from_ns, amount, call->command->unit_ns, &deadline_ns)) {
		reply_invalid_expire(call);
	} else if (entry == NULL) {
		reply_integer(call->out, 0);
	} else if (deadline_ns <= call->now_ns) {
		store_remove(entry);
		reply_integer(call->out, 1);
	} else if (store_expire(entry, deadline_ns) < 0) {
		reply_error(call->out, "OOM out of memory");
	} else {
		reply_integer(call->out, 1);
	}
}

void serve_expire(const struct call *call)
{
	expire_from(call, call->now_ns);
}

/*
 * Converts a time of the wall clock to one of the engine's clock, once. If the wall clock is set
 * afterwards, the key keeps the time that it had left.
 */
void serve_expireat(const struct call *call)
{
	struct timespec wall;

	/* Reads the clocks in this order, so that a delay between the two makes the key live
	 * longer, never shorter. */
	clock_gettime(CLOCK_REALTIME, &wall);
	expire_from(call,
		    alarms_now_ns(call->server->alarms) - (wall.tv_sec * NS_PER_S + wall.tv_nsec));
}

/* TTL rounds to the nearest second. PTTL rounds up, so that an existing key never has 0 left. */
void serve_ttl(const struct call *call)
{
	struct entry *entry = call_find(call, 1);
	int64_t unit_ns = call->command->unit_ns;
	int64_t round_ns = unit_ns == NS_PER_S ? NS_PER_S / 2 : NS_PER_MS - 1;

	if (entry == NULL)
		reply_integer(call->out, -2);
	else if (entry_deadline_ns(entry) == STORE_NEVER)
		reply_integer(call->out, -1);
	else
		reply_integer(call->out,
			      (entry_deadline_ns(entry) - call->now_ns + round_ns) / unit_ns);
}

void serve_persist(const struct call *call)
{
	struct entry *entry = call_find(call, 1);
	bool expiring = entry != NULL && entry_deadline_ns(entry) != STORE_NEVER;

	if (expiring)
		store_expire(entry, STORE_NEVER);
	reply_integer(call->out, expiring);
}
