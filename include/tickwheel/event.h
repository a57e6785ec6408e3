/* SPDX-License-Identifier: MIT */
/**
 * @file event.h
 * Timers with the calls of libevent's timers, kept in a tickwheel engine. They are in the library
 * tickwheel-event (pkg-config tickwheel-event), which exists if tickwheel was built with the
 * feature `event`.
 *
 *     struct tw_events *events;
 *     tw_events_create(base, &events);
 *     tw_event_new(events, 0, on_timeout, NULL, &event);
 *     tw_event_add(event, &(struct timeval){5, 0});
 *     ...
 *     tw_event_free(event);
 *
 * One real timer of the event_base serves all of these timers, so the program runs the base as
 * before. docs/hosts.md compares the calls, and names the differences.
 *
 * Only the thread that uses the base at that time may call these functions, even if the base has
 * locks.
 */
#ifndef TICKWHEEL_EVENT_H
#define TICKWHEEL_EVENT_H

#include <tickwheel/export.h>

TW_BEGIN_DECLS

/** The timers of one event_base, made by tw_events_create and freed by tw_events_close. */
struct tw_events;
/** A timer, made by tw_event_new and freed by tw_event_free. */
struct tw_event;
struct event_base;
struct timeval;

/**
 * The callback of a timer, with the arguments of libevent's callbacks. `none` is -1. `what` is
 * EV_TIMEOUT, or the bits that were given to tw_event_active. The callback may free its event.
 */
typedef void tw_event_callback(int none, short what, void *arg);

/**
 * Creates the object that holds the timers of a base: an engine, and one event of libevent that is
 * added only while a timer waits.
 *
 * Units: none.
 * Threads: the base's.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_events_close, which must come before event_base_free.
 * Returns: 0 and `*ret_events`; -EINVAL (NULL); -ENOMEM; -EDEADLK (in a child that was forked
 *   in a callback).
 * Since: 0.1.0.
 */
TW_BESIDE_API TW_CHECKED int tw_events_create(struct event_base *base,
					      struct tw_events **ret_events);

/**
 * Frees the object that holds the timers of a base. All its timers must have been freed before.
 *
 * Units: none.
 * Threads: the base's, once.
 * In callback: yes, also in the callback that has freed the last timer.
 * Progress: waits for other threads' calls of the library that are under way.
 * Lifetime: the object exists until the call returns 0.
 * Returns: 0 (also for NULL); -EBUSY: a timer has not been freed, or this is a second call in the
 *   same callback.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_events_close(struct tw_events *events);

/**
 * Creates a timer, as evtimer_new does, or event_new with EV_PERSIST.
 *
 * Units: `what`: 0, or EV_PERSIST: the timer is added again before each run of its callback.
 * Threads: the base's.
 * In callback: yes.
 * Progress: allocates.
 * Lifetime: until tw_event_free.
 * Returns: 0 and `*ret_event`; -EINVAL (NULL, other bits, `events` that are closed); -ENOMEM.
 * Since: 0.1.0.
 */
TW_BESIDE_API TW_CHECKED int tw_event_new(struct tw_events *events, short what,
					  tw_event_callback *callback, void *arg,
					  struct tw_event **ret_event);

/**
 * Adds a timer, or adds it again, as event_add does. If its callback is about to run, the callback
 * does not run now, and the timer waits for the new time.
 *
 * Units: `timeout` counts from now. In the callback of a timer it counts from the time at which the
 *   loop began to run the timers that are due. NULL: nothing happens.
 * Threads: the base's.
 * In callback: yes.
 * Progress: wait-free, except that memory is allocated at times.
 * Lifetime: `timeout` during the call only.
 * Returns: 0; -EINVAL (NULL as the event); -ENOMEM (then the timer is not pending); -EBUSY (another
 *   thread uses the base); -ECHILD (in a forked child).
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_event_add(struct tw_event *event, const struct timeval *timeout);

/**
 * Removes a timer from the loop, as event_del does. Afterwards it is neither pending nor active.
 *
 * Units: none.
 * Threads: the base's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0, also if it was not pending; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_event_del(struct tw_event *event);

/**
 * Makes a timer active, as event_active does: its callback runs in this iteration of the loop.
 *
 * Units: `what`, the bits that the callback receives.
 * Threads: the base's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: 0; -EINVAL for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_event_active(struct tw_event *event, short what);

/**
 * Returns whether a timer is pending or active, as event_pending does.
 *
 * Units: `what`, the bits to ask for: EV_TIMEOUT, and those that were given to tw_event_active.
 *   `*ret_time`, the time of the wall clock at which the timer is due; it is written only if the
 *   result has EV_TIMEOUT.
 * Threads: the base's.
 * In callback: yes.
 * Progress: wait-free.
 * Lifetime: none.
 * Returns: the bits of `what` for which the timer is pending or active; 0 if there is none, and for
 *   NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_event_pending(const struct tw_event *event, short what,
				   struct timeval *ret_time);

/**
 * Removes a timer from the loop, and frees it.
 *
 * Units: none.
 * Threads: the base's, once.
 * In callback: yes, also in the timer's own callback.
 * Progress: wait-free.
 * Lifetime: the timer no longer exists after the call.
 * Returns: 0, also for NULL.
 * Since: 0.1.0.
 */
TW_BESIDE_API int tw_event_free(struct tw_event *event);

TW_END_DECLS

#endif
