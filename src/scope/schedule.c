/* SPDX-License-Identifier: MIT */
/*
 * tw_scope_schedule and tw_scope_schedule_at (protocol: scope.h).
 */
#include "api/schedule.h"
#include "base/test_point.h"
#include "engine/misuse.h"
#include "expiry/slack.h"
#include "scope/scope.h"
#include "thread/thread.h"
#include "worker/at_once.h"

#include <errno.h>

/*
 * Counts the schedule as inside. While it is inside, an end must copy the handles one by one.
 * Returns false if the scope has ended.
 */
static bool scope_enter(struct tw_scope *scope)
{
	/* RELAXED: the order of the read-modify-writes of the word is enough. */
	uint64_t word = twi_fetch_add_relaxed(&scope->word, TWI_SCOPE_INSIDE);

	return (word & TWI_SCOPE_ENDED) == 0;
}

/*
 * Leaves the scope: this is the schedule's last access to it. Returns false if the scope has ended.
 */
static bool scope_leave(struct tw_scope *scope)
{
	/* E140: publishes the slot to the end. */
	uint64_t word = twi_fetch_sub_release(&scope->word, TWI_SCOPE_INSIDE);

	TWI_TEST_POINT("scope:left");
	return (word & TWI_SCOPE_ENDED) == 0;
}

/*
 * Schedules the timeout without a deadline. Afterwards another thread may end the timeout, and free
 * the object that contains `*ret_handle`. So this thread keeps a copy of the handle in
 * `*ret_member`.
 */
static int member_begin(struct tw_engine *engine, const struct tw_kind *kind, void *arg,
			struct tw_handle *ret_member, struct tw_handle *ret_handle)
{
	struct twi_thread *thread = twi_thread();

	if (!twi_handle_promise(thread, ret_member))
		return twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	return tw_schedule_at(engine, TW_NEVER, kind, arg, ret_handle);
}

/* Schedules into a scope that the caller has entered. */
static int member_schedule(struct tw_scope *scope, const struct tw_kind *kind, void *arg,
			   struct tw_handle *ret_member, struct tw_handle *ret_handle)
{
	struct twi_scope_slot *slot = twi_slot_claim(scope);
	int error;

	if (slot == NULL)
		return twi_schedule_reject(scope->engine, twi_thread(), NULL, -ENOMEM);
	error = member_begin(scope->engine, kind, arg, ret_member, ret_handle);
	TWI_TEST_POINT("scope:begun");
	twi_slot_fill(slot, error == 0 ? *ret_member : TW_HANDLE_NONE);
	return error;
}

static int scope_schedule(struct tw_scope *scope, int64_t deadline_ns, const struct tw_kind *kind,
			  void *arg, struct tw_handle *ret_handle)
{
	struct tw_handle member;
	int error = -ESHUTDOWN;
	bool open;

	if (scope_enter(scope))
		error = member_schedule(scope, kind, arg, &member, ret_handle);
	/* Linearization point of the schedule. */
	open = scope_leave(scope);
	if (error != 0)
		return error;
	if (!open)
		(void)tw_cancel(member);
	else if (deadline_ns != TW_NEVER)
		(void)tw_reschedule_at(member, deadline_ns);
	return 0;
}

static int arguments_check(struct tw_scope *scope, int64_t time_ns, const struct tw_kind *kind)
{
	int error;

	if (scope == NULL)
		return -EINVAL;
	if (twi_engine_of_parent(scope->engine))
		return twi_misuse(scope->engine, TWI_MISUSE_PARENTS, -ECHILD);
	error = twi_kind_check(kind);
	if (error != 0)
		return error;
	/* Any thread may end the scope, but only the owner may cancel an owner-only timeout. */
	if ((kind->flags & TW_KIND_FLAG_OWNER_ONLY) != 0)
		return -EINVAL;
	return time_ns == INT64_MIN ? -ERANGE : 0;
}

/*
 * Returns the deadline with the kind's slack, as the engine would compute it. The reschedule that
 * sets this deadline ignores slack.
 */
static int64_t slackened_ns(const struct tw_scope *scope, int64_t deadline_ns,
			    const struct tw_kind *kind)
{
	if (TWI_LIKELY(kind->slack_ns == 0))
		return deadline_ns;
	return twi_slacken(&scope->engine->worker, deadline_ns, kind->slack_ns);
}

int tw_scope_schedule(struct tw_scope *scope, int64_t delay_ns, const struct tw_kind *kind,
		      void *arg, struct tw_handle *ret_handle)
{
	int error = arguments_check(scope, delay_ns, kind);
	int64_t deadline_ns;

	if (error != 0)
		return error;
	deadline_ns = twi_deadline_ns(&scope->engine->worker, delay_ns);
	return scope_schedule(scope, slackened_ns(scope, deadline_ns, kind), kind, arg, ret_handle);
}

int tw_scope_schedule_at(struct tw_scope *scope, int64_t deadline_ns, const struct tw_kind *kind,
			 void *arg, struct tw_handle *ret_handle)
{
	int error = arguments_check(scope, deadline_ns, kind);

	if (error != 0)
		return error;
	if (deadline_ns < 0)
		deadline_ns = TWI_LONG_PAST_NS;
	return scope_schedule(scope, slackened_ns(scope, deadline_ns, kind), kind, arg, ret_handle);
}
