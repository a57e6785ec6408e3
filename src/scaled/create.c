/* SPDX-License-Identifier: MIT */
/* Makes, stops and destroys a scaled kind (protocol: scaled.h). */
#include "base/atomic.h"
#include "base/test_point.h"
#include "engine/misuse.h"
#include "memory/memory.h"
#include "scaled/scaled.h"

#include <errno.h>
#include <tickwheel.h>

/*
 * Returns the options of the queue: those of the engine, with some changes. The queue has no
 * thread. It measures no lateness, because it would measure from the deadline at factor 1. Its
 * wheel is hierarchical, because such a wheel can pass much empty time at once.
 */
static struct tw_options queue_options(struct tw_scaled *scaled)
{
	struct tw_options options = scaled->engine->options;

	options.flags = (options.flags & TW_ENGINE_ALIGNED) | TW_ENGINE_LOOP;
	options.wheel = TW_WHEEL_HIERARCHICAL;
	options.clock = &scaled->clock.clock;
	if (options.transfer_batch > TWI_SCALED_BATCH)
		options.transfer_batch = TWI_SCALED_BATCH;
	options.cpu_set = NULL;
	options.cpu_set_bytes = 0;
	options.thread_name = NULL;
	options.thread = NULL;
	options.scheduling_policy = -1;
	options.scheduling_priority = 0;
	options.spin_ns = 0;
	options.late_ns = 0;
	options.on_late = NULL;
	options.measure = TW_MEASURE_NOTHING;
	return options;
}

static int queue_make(struct tw_scaled *scaled)
{
	struct tw_options options;
	int error;

	twi_clock_follow_init(&scaled->clock, scaled->engine->worker.clock);
	options = queue_options(scaled);
	error = tw_engine_create(&options, &scaled->queue);
	if (error == 0)
		scaled->queue->front = scaled->engine;
	return error;
}

static int timer_make(struct tw_scaled *scaled, const struct tw_kind *kind, int64_t first_ns,
		      struct tw_handle *ret_timer)
{
	struct tw_period period = TW_PERIOD_RATE(1);

	period.first_ns = first_ns;
	return tw_schedule_periodic(scaled->engine, &period, kind, scaled->seat, ret_timer);
}

/*
 * Makes the two timers. The first turn must come after the seat has both handles. So the driver,
 * like the relay, is first scheduled without a deadline, and is made due when the seat is filled.
 */
static int timers_make(struct tw_scaled *scaled)
{
	struct tw_handle driver, relay;
	int error = timer_make(scaled, &twi_scaled_driver_kind, TW_NEVER, &driver);

	if (error != 0)
		return error;
	error = timer_make(scaled, &twi_scaled_relay_kind, TW_NEVER, &relay);
	if (error != 0) {
		(void)tw_cancel(driver);
		return error;
	}
	twi_seat_fill(scaled->seat, driver, relay);
	TWI_TEST_POINT("scaled:filled");
	/*
	 * E151: this read-modify-write has a place in the order of all changes of the factor. The
	 * thread of a later change sees the seat. The first turn sees every earlier change.
	 */
	(void)twi_fetch_or_acq_rel(&scaled->engine->factor, 0);
	twi_seat_drive(scaled->seat);
	return 0;
}

static void scaled_release(struct tw_scaled *scaled)
{
	const struct tw_allocator *allocator = scaled->allocator;

	twi_release(allocator, scaled, sizeof *scaled, TWI_CACHE_LINE);
}

static int seat_make(struct tw_scaled *scaled)
{
	int error;

	scaled->seat = twi_seat_take(scaled);
	if (scaled->seat == NULL)
		return -ENOMEM;
	scaled->queue->seat = scaled->seat;
	twi_park_drive(&scaled->queue->worker.park, twi_seat_park_drive);
	error = timers_make(scaled);
	if (error != 0)
		twi_seat_give(scaled->seat);
	return error;
}

static int scaled_make(struct tw_scaled *scaled)
{
	int error = queue_make(scaled);

	if (error != 0)
		return error;
	error = seat_make(scaled);
	if (error != 0)
		(void)tw_engine_destroy(scaled->queue);
	return error;
}

static int64_t delay_bound(int64_t delay_ns)
{
	return delay_ns < TWI_SCALED_DELAY_MOST_NS ? delay_ns : TWI_SCALED_DELAY_MOST_NS;
}

static int arguments_check(struct tw_engine *engine, int64_t least_ns, int64_t most_ns,
			   struct tw_scaled **ret_scaled)
{
	int state = tw_engine_state(engine);

	if (ret_scaled == NULL)
		return -EINVAL;
	if (state < 0)
		return state;
	if (least_ns < 0 || most_ns == TW_NEVER)
		return -ERANGE;
	return least_ns <= most_ns ? 0 : -EINVAL;
}

int tw_scaled_create(struct tw_engine *engine, int64_t least_ns, int64_t most_ns,
		     struct tw_scaled **ret_scaled)
{
	int error = arguments_check(engine, least_ns, most_ns, ret_scaled);
	const struct tw_allocator *allocator;
	struct tw_scaled *scaled;

	if (error != 0)
		return error;
	allocator = engine->worker.allocator;
	scaled = twi_allocate_zeroed(allocator, sizeof *scaled, TWI_CACHE_LINE);
	if (scaled == NULL)
		return -ENOMEM;
	scaled->engine = engine;
	scaled->allocator = allocator;
	scaled->least_ns = delay_bound(least_ns);
	scaled->most_ns = delay_bound(most_ns);
	scaled->fork_epoch = twi_fork_epoch;
	error = scaled_make(scaled);
	if (error == 0)
		*ret_scaled = scaled;
	else
		scaled_release(scaled);
	return error;
}

int tw_scaled_stop(struct tw_scaled *scaled, tw_unexpired_hook *on_unexpired, void *context,
		   int64_t timeout_ns)
{
	if (scaled == NULL)
		return -EINVAL;
	return tw_engine_stop(scaled->queue, on_unexpired, context, timeout_ns);
}

/* Ends both timers. Afterwards no turn is under way, and none begins. */
static void timers_end(struct twi_seat *seat)
{
	(void)tw_cancel_wait(twi_seat_handle(seat->driver), TW_NEVER);
	(void)tw_cancel_wait(twi_seat_handle(seat->relay), TW_NEVER);
}

int tw_scaled_destroy(struct tw_scaled *scaled)
{
	if (scaled == NULL)
		return 0;
	if (!twi_scaled_of_parent(scaled)) {
		if (twi_engine_inside(scaled->queue))
			return twi_misuse(scaled->queue, TWI_MISUSE_DESTROY_INSIDE, -EDEADLK);
		if (!twi_engine_destroyable(scaled->queue))
			return twi_misuse(scaled->queue, TWI_MISUSE_DESTROY_RUNNING, -EBUSY);
		timers_end(scaled->seat);
		twi_seat_give(scaled->seat);
	}
	(void)tw_engine_destroy(scaled->queue);
	scaled_release(scaled);
	return 0;
}
