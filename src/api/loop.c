/* SPDX-License-Identifier: MIT */
/*
 * The public functions of loop mode. They check whether the calling thread may make the call, and
 * pass the call on.
 */
#include "base/atomic.h"
#include "base/tick.h"
#include "engine/misuse.h"
#include "ingress/lanes.h"
#include "turn/poll.h"
#include "turn/sleep.h"
#include "turn/timer.h"

#include <errno.h>
#include <tickwheel/loop.h>

/*
 * How soon the owner must poll again if another thread is in the middle of a push. The poll cannot
 * take such a push yet.
 */
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
 * One call in loop mode. The caller must be the loop's owner during the call. It is the owner
 * already if it has entered the loop before (tw_loop_enter). Otherwise the call enters the loop
 * itself, sets `begun`, and leaves the loop at its end.
 */
struct bracket {
	struct tw_engine *engine;
	bool begun;
};

static int own(struct tw_engine *engine)
{
	int error = twi_engine_own(engine);

	return error == -EBUSY ? twi_misuse(engine, TWI_MISUSE_LOOP_OTHER, error) : error;
}

static int bracket_begin(struct bracket *bracket)
{
	int error = loop_check(bracket->engine);

	if (error != 0)
		return error;
	bracket->begun = !twi_engine_owned(bracket->engine);
	return bracket->begun ? own(bracket->engine) : 0;
}

static void bracket_end(const struct bracket *bracket)
{
	if (bracket->begun)
		twi_engine_leave(bracket->engine);
}

/*
 * Begins a poll. If the poll itself makes the caller the owner, it first takes the entries that
 * this thread pushed before it was the owner.
 */
static int poll_begin(struct bracket *bracket)
{
	struct tw_engine *engine = bracket->engine;
	int error = loop_check(engine);

	if (error != 0)
		return error;
	if (twi_engine_inside(engine))
		return twi_misuse(engine, TWI_MISUSE_LOOP_INSIDE, -EDEADLK);
	error = bracket_begin(bracket);
	if (error == 0 && bracket->begun)
		twi_engine_pushed_take(engine);
	return error;
}

/*
 * Ends a poll. If the poll has completed the engine's stop (`expired` is an error then), it has
 * already left the loop. The engine may be freed at any time, so this function must not touch it.
 */
static int64_t poll_end(const struct bracket *bracket, int64_t expired)
{
	if (expired >= 0)
		bracket_end(bracket);
	return expired;
}

TWI_WORKER_UNCHECKED int64_t tw_engine_poll(struct tw_engine *engine, uint64_t budget)
{
	struct bracket bracket = {.engine = engine};
	int error = poll_begin(&bracket);

	if (error != 0)
		return error;
	return poll_end(&bracket,
			twi_worker_poll(&engine->worker, twi_clock_now_ns(engine->worker.clock),
					budget, INT64_MAX));
}

TWI_WORKER_UNCHECKED int64_t tw_engine_poll_at(struct tw_engine *engine, int64_t now_ns,
					       uint64_t budget)
{
	struct bracket bracket = {.engine = engine};
	int error = now_ns < 0 ? -EINVAL : poll_begin(&bracket);

	if (error != 0)
		return error;
	return poll_end(&bracket, twi_worker_poll(&engine->worker, now_ns, budget, INT64_MAX));
}

TWI_WORKER_UNCHECKED int64_t tw_engine_poll_for(struct tw_engine *engine, uint64_t budget,
						int64_t budget_ns)
{
	struct bracket bracket = {.engine = engine};
	int error = budget_ns < 0 ? -EINVAL : poll_begin(&bracket);
	int64_t now_ns;

	if (error != 0)
		return error;
	now_ns = twi_clock_now_ns(engine->worker.clock);
	return poll_end(&bracket, twi_worker_poll(&engine->worker, now_ns, budget,
						  twi_deadline_after(now_ns, budget_ns)));
}

/*
 * Returns the time when the owner must poll next; 0 means at once. If timeouts wait in the lanes,
 * the owner must poll at once, because they may be due already. But the last poll may have left
 * some of them, because a push was not linked yet or may be hidden (turn/sleep.c). Then the owner
 * must poll after LOOK_AGAIN_NS at the latest.
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
	struct bracket bracket = {.engine = engine};
	int64_t due_ns = bracket_begin(&bracket);

	if (due_ns != 0)
		return due_ns;
	due_ns = next_due_ns(&engine->worker);
	bracket_end(&bracket);
	return due_ns;
}

TWI_WORKER_UNCHECKED int tw_engine_fd(struct tw_engine *engine)
{
	struct bracket bracket = {.engine = engine};
	int fd = bracket_begin(&bracket);

	if (fd != 0)
		return fd;
	fd = twi_poll_fd_make(&engine->worker);
	if (fd == 0)
		fd = engine->worker.park.timer_fd;
	bracket_end(&bracket);
	return fd;
}

int tw_loop_enter(struct tw_engine *engine)
{
	int error = loop_check(engine);

	if (error != 0)
		return error;
	if (twi_engine_owned(engine))
		return twi_misuse(engine, TWI_MISUSE_LOOP_TWICE, -EBUSY);
	error = own(engine);
	if (error == 0)
		twi_engine_pushed_take(engine);
	return error;
}

int tw_loop_exit(struct tw_engine *engine)
{
	int error = loop_check(engine);

	if (error != 0)
		return error;
	if (twi_engine_inside(engine))
		return twi_misuse(engine, TWI_MISUSE_LOOP_INSIDE, -EDEADLK);
	if (!twi_engine_owned(engine))
		return twi_misuse(engine, TWI_MISUSE_LOOP_OUTSIDE, -EPERM);
	twi_engine_leave(engine);
	return 0;
}
