/* SPDX-License-Identifier: MIT */
/*
 * timerfd: the peer with a file descriptor for each timer. A thread waits for all of them in one
 * epoll set.
 *
 * The system limits the number of open files, so a million pending timers are not possible, nor
 * millions that fire. A cancel counts as successful if the timer had time left. That is right only
 * for timers that are not about to fire. Here a timer has 30 s left.
 */
typedef struct timerfd_timer {
	int fd;
} peer_timer;

#include "peer/shared.h"
#include "peer/table.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { NS_PER_S = 1000000000, EVENTS = 64 };

static struct {
	int epoll_fd;
	int stop_fd;
	/* The first error of making the timers. */
	int error;
	pthread_t worker;
} timers;

static struct itimerspec after(int64_t delay_ns)
{
	return (struct itimerspec){
		.it_value = {.tv_sec = delay_ns / NS_PER_S, .tv_nsec = delay_ns % NS_PER_S}};
}

/*
 * Adds a descriptor to the epoll set. If `fd` is -1, the descriptor could not be created, and errno
 * has the reason.
 */
static void watch(int fd, void *timer)
{
	struct epoll_event event = {.events = EPOLLIN, .data.ptr = timer};

	if (timers.error == 0 && (fd < 0 || epoll_ctl(timers.epoll_fd, EPOLL_CTL_ADD, fd, &event)))
		timers.error = -errno;
}

static inline void peer_timer_init(peer_timer *timer)
{
	timer->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	watch(timer->fd, timer);
}

static inline int peer_timer_start(peer_timer *timer, int64_t delay_ns)
{
	const struct itimerspec value = after(delay_ns);

	return timerfd_settime(timer->fd, 0, &value, NULL) ? -errno : 0;
}

static inline bool peer_timer_cancel(peer_timer *timer)
{
	const struct itimerspec never = {{0, 0}, {0, 0}};
	struct itimerspec left;

	if (timerfd_settime(timer->fd, 0, &never, &left))
		return false;
	return left.it_value.tv_sec != 0 || left.it_value.tv_nsec != 0;
}

/* Takes an expiry. Returns false if the event was the request to stop. */
static bool take(peer_timer *timer)
{
	uint64_t times;

	if (!timer)
		return false;
	if (read(timer->fd, &times, sizeof(times)) == sizeof(times))
		shared_expired(timer);
	return true;
}

static void *worker_main(void *unused)
{
	bool going = true;

	(void)unused;
	while (going) {
		struct epoll_event events[EVENTS];
		int count = epoll_wait(timers.epoll_fd, events, EVENTS, -1);

		for (int i = 0; i < count; i++)
			going &= take(events[i].data.ptr);
	}
	return NULL;
}

static int timerfd_open(const struct peer_task *task)
{
	(void)task;
	timers.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timers.stop_fd = eventfd(0, EFD_CLOEXEC);
	watch(timers.stop_fd, NULL);
	return timers.error ? timers.error
			    : -pthread_create(&timers.worker, NULL, worker_main, NULL);
}

static void timerfd_close(void)
{
	(void)eventfd_write(timers.stop_fd, 1);
	pthread_join(timers.worker, NULL);
}

/* Reports an error of peer_timer_init, which has no return value. */
static int thread_begin(struct producer *unused)
{
	(void)unused;
	return timers.error;
}

static const char *timerfd_version(void)
{
	return "the kernel's, epoll";
}

static void allow_open_files(void)
{
	struct rlimit files;

	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

static int run(const struct peer *self, const struct peer_task *task, struct sample *ret_sample)
{
	static const struct shared_hooks hooks = {
		.version = timerfd_version,
		.open = timerfd_open,
		.close = timerfd_close,
		.thread_begin = thread_begin,
	};

	(void)self;
	allow_open_files();
	return shared_run(&hooks, task, ret_sample);
}

const struct peer peer_timerfd = {
	.name = "timerfd",
	.workloads = WORKLOAD_KIND_SCHEDULE_CANCEL | WORKLOAD_KIND_LIGHT,
	.run = run,
};
