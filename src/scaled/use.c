/* SPDX-License-Identifier: MIT */
/* The calls on the timeouts of a scaled kind (protocol: scaled.h). */
#include "base/tick.h"
#include "engine/misuse.h"
#include "scaled/scaled.h"
#include "timeout/node.h"

#include <errno.h>
#include <tickwheel.h>

/* Returns -EINVAL for NULL, -ECHILD for a kind of this forked process's parent, or 0. */
static int scaled_check(const struct tw_scaled *scaled)
{
	if (scaled == NULL)
		return -EINVAL;
	return twi_scaled_of_parent(scaled) ? twi_misuse(scaled->queue, TWI_MISUSE_PARENTS, -ECHILD)
					    : 0;
}

int tw_scaled_schedule(struct tw_scaled *scaled, const struct tw_kind *kind, void *arg,
		       struct tw_handle *ret_handle)
{
	int error = scaled_check(scaled);

	if (error != 0)
		return error;
	/*
	 * Only the thread of a turn owns the queue, so an owner-only timeout could be cancelled
	 * only inside callbacks of the kind.
	 */
	if (kind != NULL && (kind->flags & TW_KIND_FLAG_OWNER_ONLY) != 0)
		return -EINVAL;
	return tw_schedule(scaled->queue, scaled->most_ns, kind, arg, ret_handle);
}

/* Checks a handle. Returns -ESTALE if its memory serves a timeout of another kind or engine. */
static int handle_check(const struct tw_scaled *scaled, struct tw_handle handle)
{
	int error = scaled_check(scaled);

	if (error != 0)
		return error;
	if (!twi_handle_sane(handle))
		return twi_misuse_handle(handle);
	return twi_node_engine(twi_node_of_handle(handle)) == scaled->queue ? 0 : -ESTALE;
}

int tw_scaled_touch(struct tw_scaled *scaled, struct tw_handle handle)
{
	int error = handle_check(scaled, handle);

	return error != 0 ? error : tw_reschedule(handle, scaled->most_ns);
}

int tw_scaled_deadline(struct tw_scaled *scaled, struct tw_handle handle, int64_t *ret_deadline_ns)
{
	struct tw_timeout seen = {.size = sizeof seen};
	int error = ret_deadline_ns != NULL ? handle_check(scaled, handle) : -EINVAL;

	if (error == 0)
		error = tw_timeout_get(handle, &seen);
	if (error != 0)
		return error;
	*ret_deadline_ns = seen.deadline_ns == TW_NEVER
				   ? TW_NEVER
				   : seen.deadline_ns - twi_scaled_ahead_ns(scaled);
	return 0;
}

int64_t tw_scaled_pending(struct tw_scaled *scaled)
{
	int error = scaled_check(scaled);

	return error != 0 ? error : tw_engine_pending(scaled->queue);
}

int tw_scaled_owns(const struct tw_kind *kind)
{
	return kind == &twi_scaled_driver_kind || kind == &twi_scaled_relay_kind;
}
