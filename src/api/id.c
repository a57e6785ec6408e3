/* SPDX-License-Identifier: MIT */
/*
 * Timeouts by id.
 *
 * A schedule by id looks up which block the schedule by handle will take: the next one in the
 * thread's stock. So the schedule by id knows the id before the push, and writes it before the
 * callback can read it. An id has too few bits for the highest generations. If the next block has
 * such a generation, a schedule by id removes the block from the stock for good. A schedule by
 * handle does not check the generation, so it may use a block with such a generation.
 */
#include "timeout/id.h"

#include "api/schedule.h"
#include "engine/misuse.h"
#include "thread/thread.h"

#include <errno.h>

/*
 * Returns the handle of the timeout that will take the next block, or zeros if there is no memory.
 */
static struct tw_handle next_handle(const struct twi_thread *thread)
{
	struct twi_node *node = twi_pool_next(&thread->stock);

	if (node == NULL)
		return (struct tw_handle){0};
	/* RELAXED: the thread owns the free block, so no other thread changes its word. */
	return (struct tw_handle){
		.node = node,
		.generation = twi_word_next_generation(twi_load_relaxed(&node->word)),
	};
}

bool twi_handle_promise(struct twi_thread *thread, struct tw_handle *ret_handle)
{
	if (TWI_UNLIKELY(!twi_pool_stocked(&thread->stock)))
		return false;
	*ret_handle = next_handle(thread);
	return true;
}

bool twi_id_promise(struct twi_thread *thread, tw_id *ret_id)
{
	struct tw_handle next;

	for (;;) {
		if (TWI_UNLIKELY(!twi_pool_stocked(&thread->stock)))
			return false;
		next = next_handle(thread);
		if (TWI_LIKELY(twi_generation_has_id(next.generation)))
			break;
		(void)twi_pool_take_warm(&thread->stock);
	}
	*ret_id = twi_id_of(next);
	/*
	 * Under ThreadSanitizer, twi_pool_taken has reported this release before `ret_id` was
	 * written. It is reported again so that it also covers that write.
	 */
	twi_handle_release(next);
	return true;
}

/*
 * Checks the arguments that must be valid before the stock is touched. The schedule itself checks
 * the others.
 */
static int arguments_check(const struct tw_engine *engine, const tw_id *ret_id)
{
	if (engine == NULL || ret_id == NULL)
		return -EINVAL;
	return twi_engine_of_parent(engine) ? twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD) : 0;
}

typedef int schedule_at(struct tw_engine *engine, int64_t time_ns, const struct tw_kind *kind,
			void *arg, struct tw_handle *ret_handle);

static TWI_ALWAYS_INLINE int by_id(schedule_at *schedule, struct tw_engine *engine, int64_t time_ns,
				   const struct tw_kind *kind, void *arg, tw_id *ret_id)
{
	int error = arguments_check(engine, ret_id);
	struct twi_thread *thread;
	tw_id before;

	if (error != 0)
		return error;
	thread = twi_thread();
	before = *ret_id;
	if (!twi_id_promise(thread, ret_id))
		return twi_schedule_reject(engine, thread, NULL, -ENOMEM);
	error = schedule(engine, time_ns, kind, arg, NULL);
	if (TWI_UNLIKELY(error != 0))
		*ret_id = before;
	return error;
}

int tw_id_schedule(struct tw_engine *engine, int64_t delay_ns, const struct tw_kind *kind,
		   void *arg, tw_id *ret_id)
{
	return by_id(tw_schedule, engine, delay_ns, kind, arg, ret_id);
}

int tw_id_schedule_at(struct tw_engine *engine, int64_t deadline_ns, const struct tw_kind *kind,
		      void *arg, tw_id *ret_id)
{
	return by_id(tw_schedule_at, engine, deadline_ns, kind, arg, ret_id);
}

int tw_id_cancel(tw_id id)
{
	return tw_cancel(twi_id_handle(id));
}

int tw_id_reschedule(tw_id id, int64_t delay_ns)
{
	return tw_reschedule(twi_id_handle(id), delay_ns);
}

int tw_id_reschedule_at(tw_id id, int64_t deadline_ns)
{
	return tw_reschedule_at(twi_id_handle(id), deadline_ns);
}

int tw_id_state(tw_id id)
{
	return tw_timeout_state(twi_id_handle(id));
}

struct tw_handle tw_id_handle(tw_id id)
{
	struct tw_handle handle = twi_id_handle(id);

	return twi_handle_sane(handle) ? handle : (struct tw_handle){0};
}

tw_id tw_id_of(struct tw_handle handle)
{
	if (!twi_handle_sane(handle) || !twi_generation_has_id(handle.generation))
		return TW_ID_NONE;
	return twi_id_of(handle);
}
