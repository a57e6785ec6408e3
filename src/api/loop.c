/* SPDX-License-Identifier: MIT */
/* The public functions of loop mode. They check the calling thread and pass the call on. */
#include "base/atomic.h"
#include "base/tick.h"
#include "engine/misuse.h"
#include "ingress/lanes.h"
#include "turn/poll.h"
#include "turn/sleep.h"
#include "turn/timer.h"

#include <errno.h>
#include <tickwheel/loop.h>

/* How soon to look again at a push that is not linked yet. */
#define LOOK_AGAIN_NS INT64_C(1000000)

static int loop_check(const struct tw_engine *engine)
{
	if (engine == NULL)
		return -EINVAL;
	if (twi_engine_of_parent(engine))
		return twi_misuse(engine, TWI_MISUSE_PARENTS, -ECHILD);
	return engine->worker.loop ? 0 : twi_misuse(engine, TWI_MISUSE_LOOP_NONE, -EINVAL);
}

/*
 * Whether the caller is in a callback of any engine, because a loop must not turn inside another's.
 */
static bool inside_callback(void)
{
	const struct twi_thread *thread = twi_thread();

	return thread->worker != NULL || thread->run != NULL;
}

static int own(struct tw_engine *engine)
{
	int error = twi_engine_own(engine);

	return error == -EBUSY ? twi_misuse(engine, TWI_MISUSE_LOOP_OTHER, error) : error;
}

/* Makes the caller the owner if there is none. */
static int owner_check(struct tw_engine *engine)
{
	int error = loop_check(engine);

	return error != 0 ? error : own(engine);
}

static int poll_check(struct tw_engine *engine)
{
	int error = loop_check(engine);

	if (error != 0)
		return error;
	return inside_callback() ? twi_misuse(engine, TWI_MISUSE_LOOP_INSIDE, -EDEADLK)
				 : own(engine);
}

TWI_WORKER_UNCHECKED int64_t tw_engine_poll(struct tw_engine *engine, uint64_t budget)
{
	int error = poll_check(engine);

	if (error != 0)
		return error;
	return twi_worker_poll(&engine->worker, twi_clock_now_ns(engine->worker.clock), budget);
}

TWI_WORKER_UNCHECKED int64_t tw_engine_poll_at(struct tw_engine *engine, int64_t now_ns,
					       uint64_t budget)
{
	int error = now_ns < 0 ? -EINVAL : poll_check(engine);

	return error != 0 ? error : twi_worker_poll(&engine->worker, now_ns, budget);
}

/*
 * Returns when the owner must poll next. If timeouts wait in the lanes, that is now, because they
 * may be due already. If a push is under way and cannot be seen yet, it is soon.
 */
static TWI_WORKER_UNCHECKED int64_t next_due_ns(struct twi_worker *worker)
{
	int64_t due_ns = twi_timer_due_ns(worker);
	int64_t again_ns;

	if (twi_sleep_rejected(worker, TWI_LEFT_NOTHING))
		return 0;
	if (twi_lanes_idle(worker))
		return due_ns;
	if ((worker->poll_left & (TWI_LEFT_CUT | TWI_LEFT_HIDDEN)) == 0)
		return 0;
	again_ns = twi_deadline_after(twi_clock_now_ns(worker->clock), LOOK_AGAIN_NS);
	return again_ns < due_ns ? again_ns : due_ns;
}

int64_t tw_engine_next_due(struct tw_engine *engine)
{
	int error = owner_check(engine);

	return error != 0 ? error : next_due_ns(&engine->worker);
}

TWI_WORKER_UNCHECKED int tw_engine_fd(struct tw_engine *engine)
{
	int error = owner_check(engine);

	if (error == 0)
		error = twi_poll_fd_make(&engine->worker);
	return error != 0 ? error : engine->worker.park.timer_fd;
}

int tw_engine_leave(struct tw_engine *engine)
{
	int error = loop_check(engine);

	if (error != 0)
		return error;
	if (inside_callback())
		return twi_misuse(engine, TWI_MISUSE_LOOP_INSIDE, -EDEADLK);
	if (!twi_engine_owned(engine))
		return twi_misuse(engine, TWI_MISUSE_LOOP_OTHER, -EBUSY);
	twi_engine_leave(engine);
	return 0;
}
