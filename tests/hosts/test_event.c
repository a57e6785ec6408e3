/* SPDX-License-Identifier: MIT */
/*
 * tickwheel-event: its shutdown and unusual inputs. event_random.c compares all other behaviour
 * with libevent's own timers.
 *
 * Seen to fail with these defects: timers are freed while the loop still runs due events of them; a
 * close succeeds although a timer is left; an add that fails leaves its timer pending.
 */
#include "check.h"
#include "child.h"
#include "clock.h"
#include "fault.h"

#include <errno.h>
#include <event2/event.h>
#include <stdlib.h>
#include <tickwheel/event.h>
#include <tickwheel/memory.h>

static int64_t now_ns;
static struct event_base *base;
static struct tw_events *events;
static struct tw_event *event;
static int runs;

static void on_run(int none, short what, void *arg)
{
	(void)none;
	(void)what;
	(void)arg;
	runs++;
}

static void open_all(tw_event_callback *callback)
{
	now_ns = INT64_C(5000) * NS_PER_S;
	clock_ns = &now_ns;
	base = event_base_new();
	check_int(tw_events_create(base, &events), 0);
	check_int(tw_event_new(events, 0, callback, NULL, &event), 0);
}

Test(event, rejects_what_is_no_timer)
{
	struct tw_event *other = NULL;
	struct timeval wait = {0, 5000};

	open_all(on_run);
	check_int(tw_events_create(NULL, &events), -EINVAL);
	check_int(tw_events_create(base, NULL), -EINVAL);
	check_int(tw_event_new(NULL, 0, on_run, NULL, &other), -EINVAL);
	check_int(tw_event_new(events, 0, NULL, NULL, &other), -EINVAL);
	check_int(tw_event_new(events, 0, on_run, NULL, NULL), -EINVAL);
	check_int(tw_event_new(events, EV_READ, on_run, NULL, &other), -EINVAL);
	check_int(tw_event_add(NULL, &wait), -EINVAL);
	check_int(tw_event_del(NULL), -EINVAL);
	check_int(tw_event_active(NULL, EV_TIMEOUT), -EINVAL);
	check_int(tw_event_pending(NULL, EV_TIMEOUT, NULL), 0);
	check_int(tw_event_free(NULL), 0);
	check_int(tw_events_close(NULL), 0);
	check_int(tw_event_add(event, NULL), 0);
	check_int(tw_event_pending(event, EV_TIMEOUT, NULL), 0);
	check_int(tw_events_close(events), -EBUSY);
	check_int(event_base_dispatch(base), 1);
	check_int(tw_event_free(event), 0);
	check_int(tw_events_close(events), 0);
	event_base_free(base);
}

static void end_all(int none, short what, void *arg)
{
	struct tw_event *other = NULL;

	on_run(none, what, arg);
	check_int(tw_event_free(event), 0);
	check_int(tw_events_close(events), 0);
	check_int(tw_events_close(events), -EBUSY);
	check_int(tw_event_new(events, 0, on_run, NULL, &other), -EINVAL);
}

Test(event, last_callback_frees_all)
{
	struct timeval wait = {0, 5000};

	open_all(end_all);
	check_int(tw_event_add(event, &wait), 0);
	check_int(event_base_dispatch(base), 1);
	check_int(runs, 1);
	event_base_free(base);
}

/* The longest time must keep the loop alive, and the timer can be deleted again. */
Test(event, longest_time_keeps_the_loop_alive)
{
	struct timeval far = {INT64_MAX, 0};
	struct timeval due;

	open_all(on_run);
	check_int(tw_event_add(event, &far), 0);
	check_int(event_base_loop(base, EVLOOP_NONBLOCK), 0);
	check_int(tw_event_pending(event, EV_TIMEOUT, &due), EV_TIMEOUT);
	check_at_least(due.tv_sec, INT64_MAX / 2000000);
	check_int(tw_event_del(event), 0);
	check_int(event_base_dispatch(base), 1);
	check_int(runs, 0);
	check_int(tw_event_free(event), 0);
	check_int(tw_events_close(events), 0);
	event_base_free(base);
}

/* If an add fails, its timer is not pending. The timers whose add succeeded run. */
Test(event, add_without_memory)
{
	enum { MANY = 20000 };
	struct tw_event **many = calloc(MANY, sizeof *many);
	struct timeval wait = {0, 5000};
	struct fault fault;
	int failed = 0;

	fault_init(&fault);
	check_int(tw_memory_allocator_set(&fault.allocator), 0);
	open_all(on_run);
	for (int i = 0; i < MANY; i++)
		check_int(tw_event_new(events, 0, on_run, NULL, &many[i]), 0);
	fault_arm(&fault, 1, INT64_MAX);
	for (int i = 0; i < MANY; i++) {
		int error = tw_event_add(many[i], &wait);

		check_true(error == 0 || error == -ENOMEM);
		check_int(tw_event_pending(many[i], EV_TIMEOUT, NULL), error == 0 ? EV_TIMEOUT : 0);
		failed += error != 0;
	}
	check_at_least(failed, 1);
	fault_disarm(&fault);
	check_int(event_base_dispatch(base), 1);
	check_int(runs, MANY - failed);
	for (int i = 0; i < MANY; i++)
		check_int(tw_event_free(many[i]), 0);
	free(many);
	check_int(tw_event_free(event), 0);
	check_int(tw_events_close(events), 0);
	event_base_free(base);
}

/* The parent's timers do not run in the child. They can be freed there. */
static void child_frees(void)
{
	struct timeval wait = {0, 1000};

	child_need(event_reinit(base), 0);
	child_need(tw_event_add(event, &wait), -ECHILD);
	child_need(tw_event_pending(event, EV_TIMEOUT, NULL), 0);
	child_need(event_base_loop(base, 0), 1);
	child_need(runs, 0);
	child_need(tw_event_free(event), 0);
	child_need(tw_events_close(events), 0);
	event_base_free(base);
}

Test(event, in_a_forked_child)
{
	struct timeval wait = {0, 5000};

	open_all(on_run);
	check_int(tw_event_add(event, &wait), 0);
	in_child(child_frees);
	check_int(event_base_dispatch(base), 1);
	check_int(runs, 1);
	check_int(tw_event_free(event), 0);
	check_int(tw_events_close(events), 0);
	event_base_free(base);
}
