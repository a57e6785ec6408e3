/* SPDX-License-Identifier: MIT */
/*
 * tw_scope_end and tw_scope_end_wait (protocol: scope.h).
 *
 * Each call cancels the timeouts of all slots. It does so even after an earlier end, because that
 * end may still be under way. Each timeout is then cancelled by only one of the two.
 */
#include "base/test_point.h"
#include "scope/scope.h"
#include "thread/fork.h"
#include "thread/futex.h"

#include <errno.h>
#include <tickwheel/batch.h>

/* How many handles an end copies at once while other threads may change the slots. */
enum { COPIES = 64 };

/*
 * Ends the scope. Returns true if the scope is FIXED then. If not, the caller counts as inside, and
 * must call end_leave.
 */
static bool scope_close(struct tw_scope *scope)
{
	/* RELAXED: the swap decides. */
	uint64_t word = twi_load_relaxed(&scope->word);
	uint64_t next;

	do {
		next = word | TWI_SCOPE_ENDED;
		if ((word & TWI_SCOPE_FIXED) != 0 || word < TWI_SCOPE_INSIDE)
			next |= TWI_SCOPE_FIXED;
		else
			next += TWI_SCOPE_INSIDE;
		/*
		 * E140: acquires the slots of each schedule that has left. Linearization point of
		 * the end.
		 */
	} while (!twi_cas_acquire(&scope->word, &word, next));
	TWI_TEST_POINT("scope:ended");
	return (next & TWI_SCOPE_FIXED) != 0;
}

static void end_leave(struct tw_scope *scope, bool fixed)
{
	/*
	 * E140: this end's reads of the slots come before a later end's. A later end that finds no
	 * call inside reads the slots without atomic accesses.
	 */
	if (!fixed)
		(void)twi_fetch_sub_release(&scope->word, TWI_SCOPE_INSIDE);
}

/* Cancels the timeouts of slots that no thread changes. */
static int64_t fixed_cancel(const struct twi_scope_slot *slot, size_t count)
{
	const struct tw_handle *handle = &slot->fixed;

	/* Slots that were never used come last. */
	while (count > 0 && handle[count - 1].generation == TWI_SLOT_FREE)
		count--;
	return count == 0 ? 0 : tw_cancel_many(handle, count, NULL);
}

/* Cancels the timeouts of slots that other threads may change. */
static int64_t moving_cancel(const struct twi_scope_slot *slot, size_t count)
{
	struct tw_handle handle[COPIES];
	int64_t cancelled = 0;
	size_t copied = 0;

	for (size_t i = 0; i < count; i++) {
		handle[copied] = twi_slot_handle(&slot[i]);
		copied += twi_slot_full(handle[copied].generation);
		if (copied < COPIES && i + 1 < count)
			continue;
		if (copied > 0)
			cancelled += tw_cancel_many(handle, copied, NULL);
		copied = 0;
	}
	return cancelled;
}

static int64_t members_cancel(struct tw_scope *scope, bool fixed)
{
	uint64_t used = twi_scope_used(scope);
	int64_t cancelled = 0;
	struct twi_scope_slot *slot;

	for (uint64_t at = 0; at < used;) {
		size_t count = twi_scope_row(scope, at, used, &slot);

		cancelled += fixed ? fixed_cancel(slot, count) : moving_cancel(slot, count);
		at += count;
	}
	return cancelled;
}

/* Waits for the callback of one member, until the time `until_ns`. */
static int slot_wait(const struct twi_scope_slot *slot, bool fixed, int64_t until_ns)
{
	struct tw_handle handle = fixed ? slot->fixed : twi_slot_handle(slot);
	int64_t timeout_ns = TW_NEVER;

	/*
	 * If the slot is free or claimed, there is no callback to wait for: a member that the slot
	 * gets now has no deadline.
	 */
	if (!twi_slot_full(handle.generation))
		return 0;
	if (until_ns != TW_NEVER)
		timeout_ns = until_ns - twi_monotonic_ns();
	return tw_cancel_wait(handle, timeout_ns) == -ETIMEDOUT ? -ETIMEDOUT : 0;
}

/* Waits for the callbacks of members that run now. */
static int members_wait(struct tw_scope *scope, bool fixed, int64_t until_ns)
{
	uint64_t used = twi_scope_used(scope);
	struct twi_scope_slot *slot;
	int error = 0;

	for (uint64_t at = 0; at < used;) {
		size_t count = twi_scope_row(scope, at, used, &slot);

		for (size_t i = 0; i < count; i++) {
			if (slot_wait(&slot[i], fixed, until_ns) != 0)
				error = -ETIMEDOUT;
		}
		at += count;
	}
	return error;
}

static int arguments_check(const struct tw_scope *scope)
{
	if (scope == NULL)
		return -EINVAL;
	return twi_forked() ? -ECHILD : 0;
}

int64_t tw_scope_end(struct tw_scope *scope)
{
	int error = arguments_check(scope);
	int64_t cancelled;
	bool fixed;

	if (error != 0)
		return error;
	fixed = scope_close(scope);
	cancelled = members_cancel(scope, fixed);
	end_leave(scope, fixed);
	return cancelled;
}

int tw_scope_end_wait(struct tw_scope *scope, int64_t timeout_ns)
{
	int error = arguments_check(scope);
	int64_t until_ns;
	bool fixed;

	if (error != 0)
		return error;
	until_ns = twi_until_ns(timeout_ns);
	fixed = scope_close(scope);
	(void)members_cancel(scope, fixed);
	error = members_wait(scope, fixed, until_ns);
	end_leave(scope, fixed);
	return error;
}

int64_t tw_scope_count(struct tw_scope *scope)
{
	int error = arguments_check(scope);

	return error != 0 ? error : (int64_t)twi_scope_members(scope);
}
