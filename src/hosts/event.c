/* SPDX-License-Identifier: MIT */
/*
 * The library tickwheel-event: libevent's timer calls, served by an engine in loop mode.
 *
 * It uses only public headers: ours, and libevent's. One real timer of the base, the driver, wakes
 * the base. A run of the driver is a pass: it polls the engine, collects the due events in a list,
 * and runs them in order. Events that the program activates wait in the same list, in the order of
 * their activation, as in libevent's own queue.
 *
 * To file an event is to schedule it in the engine. An add that moves a filed event to a later time
 * touches neither the engine nor the driver. When the engine finds the event at its old time,
 * event_found files it again. The engine has a virtual clock that never advances by itself; each
 * poll gets the time of the pass. Times are microseconds of CLOCK_MONOTONIC, as in libevent.
 */
#include "hosts/due.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdlib.h>
#include <sys/time.h>
#include <tickwheel/clock.h>
#include <tickwheel/engine.h>
#include <tickwheel/event.h>
#include <tickwheel/loop.h>
#include <time.h>

enum { US_PER_S = 1000000, NS_PER_US = 1000, TICK_NS = 125000 };
enum flag { FLAG_FILED = 1, FLAG_DUE = 2 };

/* libevent rejects longer waits. */
#define WAIT_MOST_US (UINT64_C(86400) * US_PER_S)

struct tw_event {
	struct tw_events *events;
	tw_event_callback *callback;
	void *arg;
	struct twi_host_due_link due; /* its place in the list, while the event is due or active */
	struct tw_handle handle;
	uint64_t when_us;
	/* if FLAG_FILED: the time for which the engine has it, never after when_us */
	uint64_t filed_us;
	uint64_t interval_us;
	unsigned flags;
	short what;   /* EV_PERSIST or 0 */
	short result; /* if FLAG_DUE: the flags for the callback */
};

struct tw_events {
	struct event_base *base;
	struct event *driver;
	struct tw_engine *engine;
	struct tw_clock *clock;
	struct twi_host_due_list due;
	uint64_t armed_us; /* the driver's time, or UINT64_MAX if it is not set */
	uint64_t now_us;   /* the time of the pass */
	uint64_t queued;   /* polls and activations so far; the due list is sorted by this number */
	uint64_t opened;
	uint64_t waiting; /* events that are filed or due */
	bool running;     /* a pass is under way */
	bool closed;      /* closed during a pass, which frees it at its end */
};

static uint64_t monotonic_us(void)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * US_PER_S + (uint64_t)(now.tv_nsec / NS_PER_US);
}

static uint64_t now_us(const struct tw_events *events)
{
	return events->running ? events->now_us : monotonic_us();
}

static uint64_t us_of(const struct timeval *time)
{
	if (time->tv_sec < 0)
		return 0;
	if ((uint64_t)time->tv_sec > UINT64_MAX / 4 / US_PER_S)
		return UINT64_MAX / 4;
	return (uint64_t)time->tv_sec * US_PER_S + (uint64_t)time->tv_usec;
}

static struct timeval timeval_of(uint64_t us)
{
	return (struct timeval){(time_t)(us / US_PER_S), (suseconds_t)(us % US_PER_S)};
}

static void driver_stop(struct tw_events *events)
{
	events->armed_us = UINT64_MAX;
	(void)event_del(events->driver);
}

static void driver_set(struct tw_events *events, uint64_t when_us)
{
	uint64_t now = now_us(events);
	uint64_t wait_us = when_us > now ? when_us - now : 0;
	struct timeval wait = timeval_of(wait_us < WAIT_MOST_US ? wait_us : WAIT_MOST_US);

	events->armed_us = when_us;
	(void)event_add(events->driver, &wait);
}

/*
 * Uses EV_READ, not EV_TIMEOUT: event_add takes back the activation of an event that is active with
 * EV_TIMEOUT.
 */
static void driver_activate(struct tw_events *events)
{
	event_active(events->driver, EV_READ, 1);
}

/*
 * Makes the driver run no later than at when_us. Does nothing during a pass, because pass_end sets
 * the driver.
 */
static void driver_arm(struct tw_events *events, uint64_t when_us)
{
	if (events->running || (when_us >= events->armed_us && events->armed_us != UINT64_MAX))
		return;
	driver_set(events, when_us < UINT64_MAX ? when_us : UINT64_MAX - 1);
}

/*
 * Counts the event as waiting, or as no longer waiting, after a change of its flags. If no event
 * waits, stops the driver, so that the base can end its loop when it has nothing else to wait for.
 */
static void count(struct tw_event *event, unsigned before)
{
	struct tw_events *events = event->events;

	events->waiting += event->flags != 0;
	events->waiting -= before != 0;
	if (events->waiting == 0 && !events->running && events->armed_us != UINT64_MAX)
		driver_stop(events);
}

static void set_flags(struct tw_event *event, unsigned flags)
{
	unsigned before = event->flags;

	event->flags = flags;
	count(event, before);
}

static int64_t deadline_ns(uint64_t us)
{
	if (us > INT64_MAX / NS_PER_US)
		return TW_NEVER;
	return us == 0 ? 0 : (int64_t)us * NS_PER_US - 1;
}

static tw_callback event_found;

static const struct tw_kind event_kind = TW_KIND_OWNER_ONLY(event_found, NULL);

static int file_inside(struct tw_event *event)
{
	int64_t at_ns = deadline_ns(event->when_us);
	int result = (event->flags & FLAG_FILED) != 0
			     ? tw_reschedule_at(event->handle, at_ns)
			     : tw_schedule_at(event->events->engine, at_ns, &event_kind, event,
					      &event->handle);

	if (result != 0)
		return result;
	event->filed_us = event->when_us;
	set_flags(event, event->flags | FLAG_FILED);
	return 0;
}

/* Enters the engine's loop (tw_loop_enter), except during a pass, which has entered it. */
static int enter(const struct tw_events *events)
{
	return events->running ? 0 : tw_loop_enter(events->engine);
}

static void leave(const struct tw_events *events)
{
	if (!events->running)
		(void)tw_loop_exit(events->engine);
}

/*
 * Files the event. If it is already filed for an earlier time, nothing changes: event_found files
 * it again at that time.
 */
static int file(struct tw_event *event)
{
	int result;

	if ((event->flags & FLAG_FILED) != 0 && event->filed_us <= event->when_us)
		return 0;
	result = enter(event->events);
	if (result != 0)
		return result;
	result = file_inside(event);
	leave(event->events);
	return result;
}

static void unfile(struct tw_event *event)
{
	if ((event->flags & FLAG_FILED) == 0)
		return;
	if (enter(event->events) == 0) {
		(void)tw_cancel(event->handle);
		leave(event->events);
	}
	set_flags(event, event->flags & ~(unsigned)FLAG_FILED);
}

static void undue(struct tw_event *event)
{
	if ((event->flags & FLAG_DUE) == 0)
		return;
	twi_host_due_remove(&event->events->due, &event->due);
	set_flags(event, event->flags & ~(unsigned)FLAG_DUE);
}

/* Appends the event to the due list. Events of the same poll run by `order`. */
static void make_due(struct tw_event *event, uint64_t order, short result)
{
	event->due.when = event->events->queued;
	event->due.order = order;
	event->result = result;
	twi_host_due_append(&event->events->due, &event->due);
	set_flags(event, event->flags | FLAG_DUE);
}

/*
 * Makes a filed event due, or files it again. The engine calls this function in a poll, at the time
 * for which the event was filed. If the event must be filed again for a later time, and there is no
 * memory, the event becomes due too early.
 */
static void event_found(struct tw_handle self, void *argument)
{
	struct tw_event *event = argument;
	unsigned others = event->flags & ~(unsigned)FLAG_FILED;

	(void)self;
	event->flags = others;
	count(event, FLAG_FILED);
	if (event->when_us > event->events->now_us && file_inside(event) == 0)
		return;
	undue(event);
	/*
	 * Events with equal times keep the order in which the engine found them: that of their
	 * adds.
	 */
	make_due(event, event->when_us, EV_TIMEOUT);
}

/*
 * Files a persistent event for its next run: one interval after its time or, if the program has
 * activated it, one interval from now. If the next time has passed, files it for one interval from
 * now.
 */
static void persist(struct tw_event *event)
{
	struct tw_events *events = event->events;
	uint64_t from = (event->result & EV_TIMEOUT) != 0 ? event->when_us : events->now_us;

	if (event->interval_us == 0)
		return;
	event->when_us = from + event->interval_us;
	if (event->when_us < events->now_us)
		event->when_us = events->now_us + event->interval_us;
	(void)file(event);
}

/* Runs a due event. Does not use the event afterwards, because the callback may free it. */
static void event_run(struct tw_event *event)
{
	undue(event);
	if ((event->what & EV_PERSIST) == 0)
		unfile(event);
	else
		persist(event);
	event->callback(-1, event->result, event->arg);
}

static void run_due(struct tw_events *events)
{
	struct twi_host_due_link *link;

	while ((link = twi_host_due_first(&events->due)) != NULL) {
		event_run(
			(struct tw_event *)(void *)((char *)link - offsetof(struct tw_event, due)));
		if (event_base_got_break(events->base))
			return;
	}
}

static void events_free(struct tw_events *events)
{
	(void)tw_engine_stop(events->engine, NULL, NULL, TW_NEVER);
	(void)tw_engine_destroy(events->engine);
	(void)tw_clock_destroy(events->clock);
	event_free(events->driver);
	free(events);
}

/*
 * Ends a pass. If due events are left, makes the driver run again at once. Otherwise sets the
 * driver to the time of the next event.
 */
static void pass_end(struct tw_events *events)
{
	int64_t due_ns = tw_engine_next_due(events->engine);

	if (twi_host_due_first(&events->due) != NULL)
		driver_activate(events);
	else if (events->waiting > 0 && due_ns >= 0)
		driver_set(events, due_ns == TW_NEVER
					   ? UINT64_MAX - 1
					   : ((uint64_t)due_ns + NS_PER_US - 1) / NS_PER_US);
}

static void drive(evutil_socket_t none, short what, void *argument)
{
	struct tw_events *events = argument;

	(void)none;
	(void)what;
	driver_stop(events);
	if (tw_loop_enter(events->engine) != 0)
		return;
	events->now_us = monotonic_us();
	events->running = true;
	events->queued++;
	(void)tw_engine_poll_at(events->engine, (int64_t)events->now_us * NS_PER_US, 0);
	run_due(events);
	pass_end(events);
	events->running = false;
	(void)tw_loop_exit(events->engine);
	if (events->closed)
		events_free(events);
}

static int engine_make(struct tw_events *events)
{
	struct tw_options options;
	int result = tw_clock_create_virtual((int64_t)monotonic_us() * NS_PER_US, &events->clock);

	if (result != 0)
		return result;
	(void)tw_options_init(&options, sizeof options);
	options.flags = TW_ENGINE_LOOP | TW_ENGINE_ALIGNED;
	options.tick_ns = TICK_NS;
	options.clock = events->clock;
	result = tw_engine_create(&options, &events->engine);
	if (result != 0)
		(void)tw_clock_destroy(events->clock);
	return result;
}

int tw_events_create(struct event_base *base, struct tw_events **ret_events)
{
	struct tw_events *events;
	int result;

	if (base == NULL || ret_events == NULL)
		return -EINVAL;
	events = calloc(1, sizeof *events);
	if (events == NULL)
		return -ENOMEM;
	events->base = base;
	events->armed_us = UINT64_MAX;
	events->driver = event_new(base, -1, 0, drive, events);
	result = events->driver == NULL ? -ENOMEM : engine_make(events);
	if (result == 0) {
		*ret_events = events;
		return 0;
	}
	if (events->driver != NULL)
		event_free(events->driver);
	free(events);
	return result;
}

int tw_events_close(struct tw_events *events)
{
	if (events == NULL)
		return 0;
	if (events->opened != 0 || events->closed)
		return -EBUSY;
	if (events->running)
		events->closed = true;
	else
		events_free(events);
	return 0;
}

int tw_event_new(struct tw_events *events, short what, tw_event_callback *callback, void *arg,
		 struct tw_event **ret_event)
{
	struct tw_event *event;

	if (events == NULL || events->closed || callback == NULL || ret_event == NULL ||
	    (what & ~EV_PERSIST) != 0)
		return -EINVAL;
	event = calloc(1, sizeof *event);
	if (event == NULL)
		return -ENOMEM;
	event->events = events;
	event->what = what;
	event->callback = callback;
	event->arg = arg;
	events->opened++;
	*ret_event = event;
	return 0;
}

int tw_event_add(struct tw_event *event, const struct timeval *timeout)
{
	struct tw_events *events;
	int result;

	if (event == NULL)
		return -EINVAL;
	if (timeout == NULL)
		return 0;
	events = event->events;
	if ((event->what & EV_PERSIST) != 0)
		event->interval_us = us_of(timeout);
	if ((event->flags & FLAG_DUE) != 0 && (event->result & EV_TIMEOUT) != 0)
		undue(event);
	event->when_us = now_us(events) + us_of(timeout);
	result = file(event);
	if (result == 0)
		driver_arm(events, event->when_us);
	else
		unfile(event);
	return result;
}

int tw_event_del(struct tw_event *event)
{
	if (event == NULL)
		return -EINVAL;
	undue(event);
	unfile(event);
	return 0;
}

int tw_event_active(struct tw_event *event, short what)
{
	if (event == NULL)
		return -EINVAL;
	if ((event->flags & FLAG_DUE) != 0) {
		event->result |= what;
		return 0;
	}
	event->events->queued++;
	make_due(event, 0, what);
	if (!event->events->running)
		driver_activate(event->events);
	return 0;
}

/* Converts a time of CLOCK_MONOTONIC to the wall clock. */
static struct timeval wall_of(uint64_t us)
{
	struct timeval now;

	(void)gettimeofday(&now, NULL);
	return timeval_of(us_of(&now) + us - monotonic_us());
}

int tw_event_pending(const struct tw_event *event, short what, struct timeval *ret_time)
{
	int found;

	if (event == NULL)
		return 0;
	found = (event->flags & FLAG_FILED) != 0 ? EV_TIMEOUT : 0;
	if ((event->flags & FLAG_DUE) != 0)
		found |= event->result;
	found &= what;
	if (ret_time != NULL && (found & EV_TIMEOUT) != 0)
		*ret_time = wall_of(event->when_us);
	return found;
}

int tw_event_free(struct tw_event *event)
{
	if (event == NULL)
		return 0;
	(void)tw_event_del(event);
	event->events->opened--;
	free(event);
	return 0;
}
