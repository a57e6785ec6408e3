/* SPDX-License-Identifier: MIT */
/*
 * The peer for libevent with its own locks: one thread runs the loop, and the others add and delete
 * events.
 *
 * A timer that becomes the earliest one wakes up the loop. In schedule-cancel each timer would do
 * that. A periodic timer of one second prevents this, because it is always due before them. The
 * loop's cached time is switched off. If it were on, other threads would read a time from before
 * the latest batch of callbacks, and their timers would fire early. The clock is libevent's default
 * (coarse, 4 ms, the cheapest). Only in `light`, which measures lateness, is it the precise one.
 */
#include <event2/event.h>
#include <event2/event_struct.h>
#include <event2/thread.h>

typedef struct event peer_timer;

#include "peer/linked/libevent.h"
#include "peer/shared.h"
#include "peer/table.h"

#include <pthread.h>
#include <semaphore.h>

static struct {
	struct event_base *base;
	struct event beat;
	sem_t begun;
	pthread_t thread;
} loop;

static void on_expire(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	shared_expired(arg);
}

static void on_begin(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	sem_post(&loop.begun);
}

static void on_beat(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static inline void peer_timer_init(peer_timer *timer)
{
	(void)evtimer_assign(timer, loop.base, on_expire, timer);
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	struct timeval delay = timeval_of_ns(delay_ns);

	return event_add(timer, &delay);
}

/* event_del returns 0 even if the event was not there. */
static inline bool peer_timer_cancel(peer_timer *timer)
{
	bool pending = !shared_asks(timer) || evtimer_pending(timer, NULL);

	return event_del(timer) == 0 && pending;
}

static void *thread_main(void *unused)
{
	(void)unused;
	event_base_loop(loop.base, EVLOOP_NO_EXIT_ON_EMPTY);
	return NULL;
}

static struct event_base *base_new(int flags)
{
	struct event_config *config = event_config_new();
	struct event_base *base = NULL;

	if (config && !event_config_set_flag(config, flags))
		base = event_base_new_with_config(config);
	if (config)
		event_config_free(config);
	return base;
}

/*
 * Starts the loop's thread, and waits until the loop has begun, because a loop that has not begun
 * yet would ignore a request to end.
 */
static int begin(void)
{
	const struct timeval now = {0, 0};
	int error;

	sem_init(&loop.begun, 0, 0);
	if (event_base_once(loop.base, -1, EV_TIMEOUT, on_begin, NULL, &now))
		return -EIO;
	error = pthread_create(&loop.thread, NULL, thread_main, NULL);
	while (!error && sem_wait(&loop.begun))
		;
	return -error;
}

static int open_loop(const struct peer_task *task)
{
	const struct timeval second = {.tv_sec = 1};
	bool precise = task->workload->kind == WORKLOAD_KIND_LIGHT;

	if (evthread_use_pthreads())
		return -ENOTSUP;
	loop.base = base_new(EVENT_BASE_FLAG_NO_CACHE_TIME |
			     (precise ? EVENT_BASE_FLAG_PRECISE_TIMER : 0));
	if (!loop.base)
		return -ENOMEM;
	if (event_assign(&loop.beat, loop.base, -1, EV_PERSIST, on_beat, NULL) ||
	    event_add(&loop.beat, &second))
		return -EIO;
	return begin();
}

static void close_loop(void)
{
	event_base_loopbreak(loop.base);
	pthread_join(loop.thread, NULL);
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = event_get_version, .open = open_loop, .close = close_loop};

	(void)self;
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_libevent_locked = {
	.name = "libevent-locked", .workloads = WORKLOAD_KIND_SHARED, .run = run};
